import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

test('no change costs more work than is recorded', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['bench/work.ts'], { timeout: 60_000 });
  const more = stdout.split('\n').filter((line) => line.includes('MORE'));
  expect(more, 'if that is meant: make work').toEqual([]);
  expect(stdout).toContain('above the recorded figures: 0');
}, 60_000);
