import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../directory/testing/temporary-directory.ts';
import type { Injector } from '../injection/injector.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { InjectionFiles, type LoadInjection } from './injection-files.ts';

/** Says in the reason which files it is made of. */
const load: LoadInjection = (files) => {
  const bad = [...files].find(([, text]) => text.includes('bad'));
  if (bad !== undefined) return { problems: [{ file: bad[0], line: 3, message: 'is bad' }] };
  const injector: Injector = { inject: () => ({ untouched: JSON.stringify([...files]), warnings: [] }) };
  return { injector };
};

async function follow() {
  const directory = await temporaryDirectory();
  const lines: { readonly message: string; readonly fields: object }[] = [];
  const say = (message: string, fields: object): void => void lines.push({ message, fields });
  const clock = new FakeClock();
  const files = new InjectionFiles({
    ...{ directory, load, clock, log: { info: say, warn: say }, signal: AbortSignal.abort() },
  });
  const used = (): unknown => {
    const result = files.injector?.inject({
      pod: {},
      namespace: { name: '', labels: {} },
      meshConfig: {},
      parameters: { env: {} },
    });
    return result !== undefined && 'untouched' in result ? JSON.parse(result.untouched) : undefined;
  };
  return { directory, files, lines, used };
}

test('the files of a directory are used, without those that are hidden', async () => {
  const { directory, files, used } = await follow();
  writeFileSync(join(directory, 'sidecar.yaml'), 'a');
  writeFileSync(join(directory, '.hidden'), 'bad');
  await files.look();
  expect(used()).toEqual([['sidecar.yaml', 'a']]);
});

test('those that cannot be used leave the former in place, and the log says so once', async () => {
  const { directory, files, lines, used } = await follow();
  writeFileSync(join(directory, 'sidecar.yaml'), 'a');
  await files.look();
  writeFileSync(join(directory, 'sidecar.yaml'), 'bad');
  for (let i = 0; i < 3; i++) await files.look();
  expect(used()).toEqual([['sidecar.yaml', 'a']]);
  expect(files.problems).toHaveLength(1);
  writeFileSync(join(directory, 'sidecar.yaml'), 'b');
  await files.look();
  expect([used(), files.problems]).toEqual([[['sidecar.yaml', 'b']], []]);
  expect(lines).toEqual([
    { message: 'Injection templates are in use', fields: { directory } },
    {
      message: 'Injection templates cannot be used',
      fields: { inUse: 'former', problems: ['sidecar.yaml:3: is bad'] },
    },
    { message: 'Injection templates are in use', fields: { directory } },
  ]);
});

test('a ConfigMap that the kubelet replaces is seen as a whole', async () => {
  const { directory, files, used } = await follow();
  const version = (name: string, text: string): void => {
    mkdirSync(join(directory, name));
    for (const file of ['a.yaml', 'b.yaml']) writeFileSync(join(directory, name, file), text);
    symlinkSync(name, join(directory, '..new'));
    renameSync(join(directory, '..new'), join(directory, '..data'));
  };
  version('..1', 'one');
  for (const file of ['a.yaml', 'b.yaml']) symlinkSync(join('..data', file), join(directory, file));
  writeFileSync(join(directory, 'c.yaml'), 'not of the ConfigMap');
  await files.look();
  expect(used()).toEqual([
    ['a.yaml', 'one'],
    ['b.yaml', 'one'],
  ]);
  version('..2', 'two');
  await files.look();
  expect(used()).toEqual([
    ['a.yaml', 'two'],
    ['b.yaml', 'two'],
  ]);
});

test('a directory that is not there, or holds too much, is said and not read', async () => {
  const { directory, files, used } = await follow();
  writeFileSync(join(directory, 'a.yaml'), 'a');
  await files.look();
  rmSync(directory, { recursive: true });
  await files.look();
  expect(files.problems).toEqual([
    { file: directory, line: 0, message: expect.stringMatching(/^cannot be read: /) as string },
  ]);
  mkdirSync(directory);
  writeFileSync(join(directory, 'a.yaml'), 'x'.repeat(1024 * 1024 + 1));
  await files.look();
  expect(files.problems).toEqual([
    { file: directory, line: 0, message: expect.stringContaining('has more than 1048576 bytes') as string },
  ]);
  expect(used()).toEqual([['a.yaml', 'a']]);
});
