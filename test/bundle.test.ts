import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundle } from '../tools/build.ts';
import { plainEnvironment } from './peers/process.ts';

const directory = mkdtempSync(join(tmpdir(), 'fairlead-bundle-'));
const env = plainEnvironment();
const run = (...args: string[]) =>
  promisify(execFile)(process.execPath, ['--disable-warning=DEP0040', join(directory, 'dist/main.js'), ...args], {
    env,
  });

beforeAll(() => bundle(join(directory, 'dist')));
afterAll(() => rmSync(directory, { recursive: true }));

test('the bundle runs away from its dependencies and says nothing that is not asked for', async () => {
  const { stdout, stderr } = await run('version');
  expect(stdout).toMatch(/^fairlead \d/);
  expect(stderr).toBe('');
});

test('the bundle loads the whole program', async () => {
  const mesh = join(directory, 'mesh.yaml');
  writeFileSync(mesh, 'apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n');
  expect(await run('check', mesh)).toEqual({ stdout: '', stderr: '1 object: 0 errors, 0 warnings\n' });
});

test('our own functions are made without a call to name them, which takes twenty times as long', () => {
  const dist = join(directory, 'dist');
  const code = readdirSync(dist).flatMap((file) =>
    file.endsWith('.js') ? [readFileSync(join(dist, file), 'utf8')] : [],
  );
  /** Sections, each below the path of its source. */
  const sections = code.flatMap((text) => text.split(/^\s*\/\/ (?=\S+\.[cm]?[jt]s$)/m).slice(1));
  const named = sections.filter((section) => section.includes('__name')).map((section) => section.split('\n', 1)[0]!);
  expect(named.some((path) => path.startsWith('node_modules/asn1js/'))).toBe(true);
  expect(named.filter((path) => path.startsWith('src/'))).toEqual([]);
});

test('the bundle has the templates of Pods', async () => {
  const pod = join(directory, 'pod.yaml');
  writeFileSync(pod, 'apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a}]}\n');
  const { stdout, stderr } = await run('inject', '-f', pod);
  expect(stdout).toContain('name: istio-proxy');
  expect(stderr).toBe('');
});

test('a mistake ends the process with 1 and one line', async () => {
  await expect(run('serve', '--grpc-address', '127.0.0.1:0', '--directory', '/no/such')).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/(^|\n)error: \/no\/such: no such file or directory\n$/),
  });
});

test('an agent does not load the fetch of Node, which takes 6 MB', async () => {
  const report = "process.on('exit', () => console.log(process.moduleLoadList.join('\\n')))";
  const file = join(directory, 'file');
  writeFileSync(file, '');
  const program = join(directory, 'dist/main.js');
  const loaded = await promisify(execFile)(
    process.execPath,
    ['--import', `data:text/javascript,${report}`, program, 'agent', 'sidecar', '--root', file],
    { env },
  ).catch((error: unknown) => error as { readonly stdout: string; readonly stderr: string });
  // Nothing can be written below a file. By then all of it is loaded.
  expect(loaded.stderr).toContain('mount an emptyDir there');
  expect(loaded.stdout).toContain('NativeModule http2');
  expect(loaded.stdout).not.toContain('undici');
});
