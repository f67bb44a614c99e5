import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

export interface LockOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long to wait for its holder; absent: without end. */
  readonly timeoutMs?: number;
}

/**
 * Waits until no other process holds the lock; returns a function that releases it. The file contains the id of its
 * holder, so that a dead one is detected: two processes that detect it at once may both get the lock.
 */
export async function lock(path: string, { signal, timeoutMs = Infinity }: LockOptions = {}): Promise<() => void> {
  const start = performance.now();
  for (;;) {
    signal?.throwIfAborted();
    try {
      const file = openSync(path, 'wx');
      writeSync(file, `${process.pid}`);
      closeSync(file);
      return () => rmSync(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const holder = holderOf(path);
    if (!isAlive(holder)) rmSync(path, { force: true });
    else if (performance.now() - start > timeoutMs) {
      throw new Error(`${path} is held by process ${holder}, still after ${timeoutMs / 1000} s`);
    } else await delay(200, undefined, { signal });
  }
}

function holderOf(path: string): number | undefined {
  try {
    // Empty for a moment between creation of the file and its first byte.
    return Number(readFileSync(path, 'utf8')) || process.pid;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
