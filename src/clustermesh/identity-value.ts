import { quote } from '../api/quote.ts';
import { type Decoded, decoded, LONGEST_JSON, Wrong } from './member.ts';
import { identityRange, type MeshCluster } from './names.ts';

/** A security identity of another cluster: what Pods with the same labels have in common. */
export interface RemoteIdentity {
  readonly id: number;
  /** With their source, as in `k8s:app`. */
  readonly labels: Readonly<Record<string, string>>;
}

const CLUSTER = 'k8s:io.cilium.k8s.policy.cluster';
const MOST_LABELS = 1_000;

/**
 * `suffix`: of the key. The value is `k8s:app=web;k8s:io.cilium.k8s.policy.cluster=east;`, and a cluster can give
 * identities of its own range only.
 */
export function decodeIdentity(suffix: string, bytes: Uint8Array, cluster: MeshCluster): Decoded<RemoteIdentity> {
  return decoded(() => {
    const { first, last } = identityRange(cluster);
    const id = Number(suffix);
    if (!/^[1-9]\d{0,8}$/.test(suffix) || id < first || id > last)
      throw new Wrong(`${quote(suffix)} is not an identity of cluster ${cluster.name}, which has ${first} to ${last}`);
    if (bytes.length > LONGEST_JSON) throw new Wrong(`has more than ${LONGEST_JSON} bytes`);
    const labels = readLabels(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
    const said = labels[CLUSTER];
    if (said !== cluster.name) throw new Wrong(`names cluster ${quote(said ?? '')}, but belongs to ${cluster.name}`);
    return { id, labels };
  });
}

function readLabels(text: string): Readonly<Record<string, string>> {
  if (!text.endsWith(';')) throw new Wrong('does not end with a semicolon');
  const labels = text.slice(0, -1).split(';', MOST_LABELS + 1);
  if (labels.length > MOST_LABELS) throw new Wrong(`has more than ${MOST_LABELS} labels`);
  return Object.fromEntries(
    labels.map((label) => {
      const equals = label.indexOf('=');
      if (equals < 1) throw new Wrong(`${quote(label)} is not a label`);
      return [label.slice(0, equals), label.slice(equals + 1)];
    }),
  );
}
