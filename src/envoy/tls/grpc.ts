import type { ClientTls } from '../../model/traffic-policy.ts';
import type { CommonTlsContext, TransportSocket } from '../gen/types.gen.ts';
import { any } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';

/** Under this name, Istio's agent puts the workload's certificate and the mesh's roots into gRPC's bootstrap. */
const instanceName = 'default';

/** gRPC's own clients have no certificates but those of the mesh, and only speak mutual TLS where a rule says so. */
export function grpcUpstreamTls(
  tls: ClientTls | undefined,
  peerNames: readonly string[],
): TransportSocket | 'plaintext' | 'impossible' {
  if (tls === undefined || tls.mode === 'DISABLE') return 'plaintext';
  if (tls.mode !== 'ISTIO_MUTUAL') return 'impossible';
  const names = tls.subjectAltNames.length > 0 ? tls.subjectAltNames : peerNames;
  return {
    name: 'envoy.transport_sockets.tls',
    typedConfig: any(types.upstreamTls, { commonTlsContext: meshContext(names), sni: tls.sni }),
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
