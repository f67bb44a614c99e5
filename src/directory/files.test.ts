import { truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readText } from './files.ts';
import { temporaryDirectory } from './testing/temporary-directory.ts';

const found = (path: string, size = 0) => ({ path, size, stamp: '', modified: 0 });

test('a file is read whole, whatever size was seen before', async () => {
  const path = join(await temporaryDirectory(), 'a.yaml');
  const text = 'ä'.repeat(100_000);
  await writeFile(path, text);
  for (const size of [0, 1, 200_000, 300_000]) expect(readText(found(path, size))).toEqual({ text });
  await writeFile(path, '');
  expect(readText(found(path))).toEqual({ text: '' });
});

test('a file that has grown too large is not read', async () => {
  const path = join(await temporaryDirectory(), 'a.yaml');
  await writeFile(path, '');
  await truncate(path, (32 << 20) + 1);
  const refused = { reason: 'is larger than 32 MiB and is not read; split it' };
  for (const size of [10, (32 << 20) + 1]) expect(readText(found(path, size))).toEqual(refused);
});

test('what cannot be read now is read later, and what is gone is gone', async () => {
  const directory = await temporaryDirectory();
  expect(readText(found(directory))).toMatchObject({ passing: true });
  expect(readText(found(join(directory, 'nothing')))).toBeUndefined();
});

test.runIf(process.platform === 'linux')('a file that says that it is empty, and has no end, is not read', () => {
  expect(readText(found('/proc/self/pagemap'))).toHaveProperty('reason');
});
