import { readFileSync } from 'node:fs';
import { outputOf } from '../peers/parts.ts';
import { type PeerName, peer } from '../peers/peer.ts';
import { mirror } from './base-images.ts';

/** Of Debian, for the base image of Node. */
const RELEASE = 'bookworm';

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
  if (mirror(RELEASE) === undefined) return `skipped: no node. Needs a source of packages of Debian ${RELEASE} for apt`;
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
