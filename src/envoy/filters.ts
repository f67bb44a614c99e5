import type { Any, Filter, HttpFilter, ListenerFilter } from './gen/types.gen.ts';
import { type Protos, typeUrl } from './proto.ts';
import { types } from './proto-types.ts';

/** Filters whose configuration is always the same. */
export interface Filters {
  readonly protos: Protos;
  readonly http: {
    readonly grpcWeb: HttpFilter;
    readonly grpcStats: HttpFilter;
    readonly fault: HttpFilter;
    readonly cors: HttpFilter;
    readonly router: HttpFilter;
  };
  readonly listener: {
    readonly tlsInspector: ListenerFilter;
    readonly httpInspector: ListenerFilter;
    readonly originalDst: ListenerFilter;
    readonly originalSrc: ListenerFilter;
    readonly proxyProtocol: ListenerFilter;
  };
  /** Of `request_id_extension`. */
  readonly requestId: Any;
}

/** The mark of connections that the proxy makes with the client's address, which the rules of iptables know. */
const ORIGINAL_SRC_MARK = 1337;

/** Cheap: most of the configurations are empty messages. */
export function createFilters(protos: Protos): Filters {
  const listener = (name: string, typedConfig: Any): ListenerFilter => ({
    name: `envoy.filters.listener.${name}`,
    typedConfig,
  });
  const http = (name: string, typedConfig: Any): HttpFilter => ({ name: `envoy.filters.http.${name}`, typedConfig });
  return {
    protos,
    http: {
      grpcWeb: http('grpc_web', emptyAny('envoy.extensions.filters.http.grpc_web.v3.GrpcWeb')),
      grpcStats: http(
        'grpc_stats',
        protos.any(types.grpcStats, { emitFilterState: true, statsForAllMethods: { value: false } }),
      ),
      fault: http('fault', emptyAny(types.fault)),
      cors: http('cors', emptyAny(types.cors)),
      router: http('router', emptyAny(types.router)),
    },
    listener: {
      tlsInspector: listener(
        'tls_inspector',
        protos.any(types.tlsInspector, { initialReadBufferSize: { value: 512 } }),
      ),
      httpInspector: listener('http_inspector', emptyAny(types.httpInspector)),
      originalDst: listener('original_dst', emptyAny(types.originalDst)),
      originalSrc: listener('original_src', protos.any(types.originalSrc, { mark: ORIGINAL_SRC_MARK })),
      proxyProtocol: listener('proxy_protocol', emptyAny(types.proxyProtocol)),
    },
    requestId: protos.any(types.uuidRequestId, { useRequestIdForTraceSampling: { value: true } }),
  };
}

/** A message without members. */
export function emptyAny(type: string): Any {
  return { typeUrl: typeUrl(type), value: new Uint8Array() };
}

export function networkFilter(name: string, typedConfig: Any): Filter {
  return { name: `envoy.filters.network.${name}`, typedConfig };
}

/** By this name a filter and a cluster that look up the hosts of a DYNAMIC_DNS ServiceEntry find each other's cache. */
export function dnsCacheName(host: string): string {
  return `${host}_dfp_dns_cache`;
}
