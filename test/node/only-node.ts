import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lock } from '../peers/lock.ts';
import { type NodeOptions, type RunningNode, startNode } from './node.ts';

/** Held by whoever runs a node: more of them would need more memory than machines for tests have. */
export const LOCK = join(tmpdir(), 'fairlead-node.lock');

/** `startNode`, once no other node runs on this machine. */
export async function startOnlyNode(options: NodeOptions = {}): Promise<RunningNode> {
  const unlock = await lock(LOCK, { signal: options.signal, timeoutMs: 300_000 }).catch((error: unknown) => {
    throw new Error('Another node runs on this machine. If it is that of make cluster: make cluster DOWN=1', {
      cause: error,
    });
  });
  try {
    const node = await startNode(options);
    return { ...node, stop: () => node.stop().finally(unlock) };
  } catch (error) {
    unlock();
    throw error;
  }
}
