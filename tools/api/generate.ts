// node tools/api/generate.ts [--check]
//
// Writes crds/ and src/api/gen/ from tools/api/schemas/ and tools/api/own/. With --check it writes nothing, and fails if a
// file differs. crds/ leads into the chart: Helm complains about links that lead out of one, and others leave them out.
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { printCrd } from './crd.ts';
import { printMeshSchemas, printSchemas } from './runtime-schemas.ts';
import { fileName, readSource } from './source.ts';
import { printSharedTypes, printTypes } from './types.ts';

const root = join(import.meta.dirname, '../..');
const source = readSource(join(import.meta.dirname, 'schemas'));
const files = new Map<string, string>([
  ['src/api/gen/shared.gen.ts', printSharedTypes(source)],
  ['src/api/gen/schemas.gen.ts', printSchemas(source)],
  ['src/api/gen/mesh-config.gen.ts', printMeshSchemas(source)],
]);
for (const kind of source.kinds) {
  const crd = printCrd(kind, source);
  files.set(`crds/${kind.plural}.yaml`, crd);
  files.set(`src/api/gen/${fileName(kind.kind)}.gen.ts`, printTypes(kind, source));
}
// Kinds of our own, which nobody writes by hand.
for (const name of readdirSync(join(import.meta.dirname, 'own'))) {
  const crd = readFileSync(join(import.meta.dirname, 'own', name), 'utf8');
  files.set(`crds/${name}`, crd);
}

const orphans = ['crds', 'src/api/gen']
  .filter((directory) => existsSync(join(root, directory)))
  .flatMap((directory) => readdirSync(join(root, directory)).map((file) => `${directory}/${file}`))
  .filter((path) => /\.(yaml|gen\.ts)$/.test(path) && !files.has(path));
const stale = [...files].filter(
  ([path, content]) => !existsSync(join(root, path)) || readFileSync(join(root, path), 'utf8') !== content,
);

if (process.argv.includes('--check')) {
  for (const path of [...stale.map(([path]) => path), ...orphans])
    console.error(`${path} is out of date: run make gen`);
  if (stale.length + orphans.length > 0) process.exitCode = 1;
} else {
  for (const [path, content] of stale) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  for (const path of orphans) rmSync(join(root, path));
  console.log(`${stale.length} of ${files.size} files written`);
}
