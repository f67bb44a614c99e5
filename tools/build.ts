/**
 * Bundles the program into a directory (dist/ by default). `main.js` is small and loads the rest, so that even an old
 * Node can load it and be refused by its version.
 */
import { cpSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Plugin, build, transform } from 'esbuild';

const ROOT = join(import.meta.dirname, '..');
const TARGET = 'node22';

/** CommonJS dependencies call `require`, which an ES module does not have. The names must not clash with any other. */
const banner = `import { createRequire as createRequireOfBundle } from 'node:module';
const require = createRequireOfBundle(import.meta.url);`;

/**
 * Who imports `node:http` as an ES module has Node read all that it exports, for which it loads its `fetch`: 6 MB of its own
 * memory, and 8 MB of pages of its binary, in every agent. `require` only takes what is asked for.
 */
const httpWithoutFetch: Plugin = {
  name: 'http without fetch',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(node:)?http$/ }, ({ path, kind }) =>
      kind === 'require-call' ? { path, external: true } : { path: 'http', namespace: 'required' },
    );
    onLoad({ filter: /^http$/, namespace: 'required' }, () => ({ contents: "module.exports = require('node:http');" }));
  },
};

/**
 * Some packages go by the names of their classes, which esbuild changes where two are the same. Keeping a name takes a call for
 * each function that is made while the program runs, and our own code makes several for each response. The two packages that
 * are left out, for what they would cost, go by no names.
 */
const namesOfPackages: Plugin = {
  name: 'names of packages',
  setup({ onLoad }) {
    onLoad({ filter: /\/node_modules\/.*\.[cm]?js$/ }, async ({ path }) => {
      if (/\/node_modules\/(@kubernetes\/client-node|@grpc\/grpc-js)\//.test(path)) return undefined;
      const { code } = await transform(await readFile(path, 'utf8'), { keepNames: true, target: TARGET });
      return { contents: code };
    });
  },
};

export async function bundle(outdir: string): Promise<void> {
  rmSync(outdir, { recursive: true, force: true });
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/main.ts'],
    outdir,
    bundle: true,
    splitting: true,
    chunkNames: '[name]-[hash]',
    format: 'esm',
    platform: 'node',
    target: TARGET,
    legalComments: 'linked',
    banner: { js: banner },
    plugins: [httpWithoutFetch, namesOfPackages],
    logLevel: 'warning',
  });
  // The templates that `fairlead inject` uses by default.
  cpSync(join(ROOT, 'charts/fairlead/files/injection'), join(resolve(ROOT, outdir), 'injection'), { recursive: true });
}

if (process.argv[1] === import.meta.filename) await bundle(resolve(ROOT, process.argv[2] ?? 'dist'));
