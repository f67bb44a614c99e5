import type { PeerAtNode } from '../clustermesh/reader.ts';

/** Who has an address in another cluster of a ClusterMesh. */
export interface PeerAddress extends PeerAtNode {
  readonly cluster: string;
}
