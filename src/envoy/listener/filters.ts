import type { Any, Filter, HttpFilter, ListenerFilter } from '../gen/types.gen.ts';
import { constantAny } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';

/** The mark of connections that the proxy makes with the client's address, which the rules of iptables know. */
const ORIGINAL_SRC_MARK = 1337;

const listener = (name: string, typedConfig: Any): ListenerFilter => ({
  name: `envoy.filters.listener.${name}`,
  typedConfig,
});

const http = (name: string, typedConfig: Any): HttpFilter => ({ name: `envoy.filters.http.${name}`, typedConfig });

/** HTTP filters whose configuration is always the same. */
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

/** The same for filters of listeners. */
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

/** By this name a filter and a cluster that look up the hosts of a DYNAMIC_DNS ServiceEntry find each other's cache. */
export function dnsCacheName(host: string): string {
  return `${host}_dfp_dns_cache`;
}
