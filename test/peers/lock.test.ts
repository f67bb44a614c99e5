import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { lock } from './lock.ts';
import { run } from './process.ts';

describe('a lock', () => {
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'fairlead-lock-'));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  test('is given to one at a time', async () => {
    const path = join(directory, 'one');
    const order: string[] = [];
    const unlock = await lock(path);
    const second = lock(path).then((done) => {
      order.push('second');
      return done;
    });
    order.push('first');
    unlock();
    (await second)();
    expect(order).toEqual(['first', 'second']);
    expect(existsSync(path)).toBe(false);
  });

  test('of a process that has ended is taken over', async () => {
    const path = join(directory, 'dead');
    const { stdout } = await run(process.execPath, ['-p', 'process.pid']);
    await writeFile(path, stdout.trim());
    (await lock(path))();
  });

  test('is not waited for longer than allowed, and the holder is named', async () => {
    const path = join(directory, 'held');
    const unlock = await lock(path);
    await expect(lock(path, { timeoutMs: 0 })).rejects.toThrow(`is held by process ${process.pid}`);
    unlock();
  });

  test('is not waited for after an abort', async () => {
    const path = join(directory, 'aborted');
    const unlock = await lock(path);
    await expect(lock(path, { signal: AbortSignal.abort() })).rejects.toThrow('aborted');
    unlock();
  });
});
