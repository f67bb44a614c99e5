import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { describe, test } from 'vitest';
import { lock } from '../peers/lock.ts';
import { type PeerName, peer, peersAreRequired } from '../peers/peer.ts';
import { outputOf } from '../peers/parts.ts';
import { type NodeOptions, type RunningNode, startNode } from './node.ts';

/**
 * A suite that needs a real node. Where the machine cannot run one, its tests are reported as skipped, with the reason in
 * the title; with FAIRLEAD_REQUIRE_PEERS=1 it fails instead. The body also runs for a skipped suite: it must not start
 * anything outside of hooks and tests.
 */
export function withNode(title: string, body: () => void): void {
  const missing = whyNoNode();
  if (missing === undefined) describe(title, body);
  else if (peersAreRequired()) {
    test(title, () => {
      throw new Error(missing);
    });
  } else describe.skip(`${title} (${missing})`, body);
}

const PROGRAMS: readonly PeerName[] = [
  ...(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'] as const),
  ...(['kubelet', 'kube-scheduler', 'kube-proxy', 'coredns', 'helm'] as const),
  ...(['containerd', 'ctr', 'runc', 'ptp', 'nft', 'busybox', 'buildah', 'debootstrap', 'envoy'] as const),
];

/** Why this machine cannot run a node: a sentence for the report of a skipped test. */
export function whyNoNode(): string | undefined {
  if (process.platform !== 'linux') return 'skipped: no node. Needs Linux';
  if (process.getuid?.() !== 0) return 'skipped: no node. Needs root';
  const missing = CAPABILITIES.filter(({ bit }) => ((capabilities() >> bit) & 1n) === 0n).map(({ name }) => name);
  if (missing.length > 0) return `skipped: no node. Needs the capabilities ${missing.join(', ')}`;
  for (const tool of ['unshare', 'nsenter', 'ip', 'ldconfig'])
    if (outputOf(tool, '--version') === undefined && outputOf(tool, '-V') === undefined)
      return `skipped: no node. Needs ${tool} on PATH`;
  return PROGRAMS.map(peer).find((found) => 'missing' in found)?.missing;
}

const CAPABILITIES = [
  { name: 'CAP_NET_ADMIN', bit: 12n },
  { name: 'CAP_SYS_ADMIN', bit: 21n },
];

/** The effective ones of this process, as a set of bits. */
function capabilities(): bigint {
  const [, bits = '0'] = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return BigInt(`0x${bits}`);
}

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
