import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { OnEnd } from '../../testing/on-end.ts';

/** A temporary directory, removed after the test. */
export async function temporaryDirectory(onEnd: OnEnd = onTestFinished): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'fairlead-'));
  onEnd(() => rm(path, { recursive: true, force: true }));
  return path;
}
