import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

test('nothing is executed as often as the product of two lists', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['test/robustness/doubling.ts'], {
    maxBuffer: 64 * 1024 * 1024,
  });
  expect(stdout.split('\n').filter((line) => line.includes('PRODUCT'))).toEqual([]);
  expect(stdout).toMatch(/^\d{2,} cases$/m);
}, 120_000);
