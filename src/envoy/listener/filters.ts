import type { Any, Filter, HttpFilter, ListenerFilter } from '../gen/types.gen.ts';
import { constantAny } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';

/** The mark on connections that the proxy opens with the client's address. The iptables rules know it. */
const ORIGINAL_SRC_MARK = 1337;

const listener = (name: string, typedConfig: Any): ListenerFilter => ({
  name: `envoy.filters.listener.${name}`,
  typedConfig,
});

const http = (name: string, typedConfig: Any): HttpFilter => ({ name: `envoy.filters.http.${name}`, typedConfig });

/** HTTP filters whose configuration never changes. */
export const httpFilters = {
  grpcWeb: http('grpc_web', constantAny('envoy.extensions.filters.http.grpc_web.v3.GrpcWeb', {})),
  grpcStats: http(
    'grpc_stats',
    constantAny(types.grpcStats, { emitFilterState: true, statsForAllMethods: { value: false } }),
  ),
  fault: http('fault', constantAny(types.fault, {})),
  cors: http('cors', constantAny(types.cors, {})),
  router: http('router', constantAny(types.router, {})),
} as const;

/** Listener filters whose configuration never changes. */
export const listenerFilters = {
  tlsInspector: listener('tls_inspector', constantAny(types.tlsInspector, { initialReadBufferSize: { value: 512 } })),
  httpInspector: listener('http_inspector', constantAny(types.httpInspector, {})),
  originalDst: listener('original_dst', constantAny(types.originalDst, {})),
  originalSrc: listener('original_src', constantAny(types.originalSrc, { mark: ORIGINAL_SRC_MARK })),
  proxyProtocol: listener('proxy_protocol', constantAny(types.proxyProtocol, {})),
} as const;

export function networkFilter(name: string, typedConfig: Any): Filter {
  return { name: `envoy.filters.network.${name}`, typedConfig };
}
