// node tools/newest.ts
//
// What the newest release of istio.io/api lets users write that the pinned one does not, and the reverse.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { added, fieldsOfCrds } from './api/crd-fields.ts';

const MODULE = 'istio.io/api';
const pins = join(import.meta.dirname, 'peers/istio-api');

function go(...args: readonly string[]): string {
  return execFileSync('go', args, { cwd: pins, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
}

/** Downloads a version. */
function crdsOf(version: string): ReturnType<typeof fieldsOfCrds> {
  const { Dir } = JSON.parse(go('mod', 'download', '-json', `${MODULE}@${version}`)) as { readonly Dir: string };
  return fieldsOfCrds(readFileSync(join(Dir, 'kubernetes/customresourcedefinitions.gen.yaml'), 'utf8'));
}

function print(title: string, lines: readonly string[]): void {
  if (lines.length > 0) console.log(`\n${title}:\n${lines.map((line) => `  ${line}`).join('\n')}`);
}

const pinned = go('list', '-m', '-f', '{{.Version}}', MODULE);
// Without pre-releases, as long as there is a release.
const newest = go('list', '-m', '-f', '{{.Version}}', `${MODULE}@latest`);
if (newest === pinned) console.log(`${MODULE} ${pinned} is pinned, and the newest.`);
else {
  console.log(`${MODULE} ${pinned} is pinned; ${newest} is the newest.`);
  const [before, after] = [crdsOf(pinned), crdsOf(newest)];
  print('New', added(before, after));
  print('Gone', added(after, before));
  console.log(`\nTo pin it: go get -C tools/peers/istio-api ${MODULE}@${newest}, then make peers and make test.`);
}
