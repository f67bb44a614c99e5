import type { GrpcCluster } from '../../model/cluster.ts';
import type { CommonTlsContext, TransportSocket } from '../gen/types.gen.ts';
import { any } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';

/** Under this name, Istio's agent puts the workload's certificate and the mesh's roots into gRPC's bootstrap. */
const instanceName = 'default';

/** The mesh's mutual TLS. */
export function grpcUpstreamTls({ sni, names }: NonNullable<GrpcCluster['mtls']>): TransportSocket {
  return {
    name: 'envoy.transport_sockets.tls',
    typedConfig: any(types.upstreamTls, { commonTlsContext: meshContext(names), sni }),
  };
}

/** For servers; these cannot tell trust domains apart: whoever the mesh's roots vouch for is a peer. */
export function grpcDownstreamTls(): TransportSocket {
  return {
    name: 'envoy.transport_sockets.tls',
    typedConfig: any(types.downstreamTls, {
      commonTlsContext: meshContext([]),
      requireClientCertificate: { value: true },
    }),
  };
}

/** @param names of peers; empty: any that the mesh's roots vouch for. Older libraries read no other kind of matcher. */
function meshContext(names: readonly string[]): CommonTlsContext {
  return {
    tlsCertificateProviderInstance: { instanceName, certificateName: 'default' },
    validationContext: {
      caCertificateProviderInstance: { instanceName, certificateName: 'ROOTCA' },
      ...(names.length > 0 && { matchSubjectAltNames: names.map((exact) => ({ exact })) }),
    },
  };
}
