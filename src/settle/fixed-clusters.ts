import type { FixedCluster } from '../model/cluster.ts';
import type { ClusterSettings, OutboundPolicy } from '../model/mesh-config.ts';
import type { Traits } from '../model/traits.ts';
import { upstreamSockets } from './upstream-sockets.ts';

export interface FixedClustersInput {
  readonly traits: Traits;
  readonly settings: ClusterSettings;
  /** From the Sidecar, or else from the mesh. */
  readonly outboundPolicy: OutboundPolicy;
}

/** The clusters that every proxy of a kind has, whatever the mesh contains. */
export function settleFixedClusters({ traits, settings, outboundPolicy }: FixedClustersInput): readonly FixedCluster[] {
  if (traits.family === 'grpc') return [{ kind: 'grpcBlackHole' }];
  const secrets: readonly FixedCluster[] = traits.credentialSocket ? [{ kind: 'secretProvider' }] : [];
  if (traits.proxyType === 'router') return [{ kind: 'blackHole' }, ...secrets];
  const unknown = outboundPolicy === 'ALLOW_ANY_DYNAMIC_DNS' ? [unknownHosts(traits, settings)] : [];
  return [{ kind: 'blackHole' }, { kind: 'passthrough' }, ...unknown, { kind: 'inboundPassthrough' }, ...secrets];
}

/** Source: Istio's AllowAnyDynamicDNSCluster. */
function unknownHosts(traits: Traits, { unknownHostsTls: tls }: ClusterSettings): FixedCluster {
  const sockets = upstreamSockets({ tls, ...ofNobody, traits });
  // Envoy wants to bind certificates to the host of the request, or to be told that nobody does.
  const bindsCertificate = sockets.kind !== 'plaintext' && tls?.insecureSkipVerify === false;
  return { kind: 'unknownHosts', sockets, bindsCertificate };
}

/** What services say of their peers. */
const ofNobody = { autoMtls: false, peerNames: [], meshSni: '', entryNames: [], hasMarks: false } as const;
