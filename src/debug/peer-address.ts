import type { PeerIdentity } from '../clustermesh/peer-identities.ts';

/** Who has an address in another cluster of a ClusterMesh. */
export interface PeerAddress extends PeerIdentity {
  readonly cluster: string;
}
