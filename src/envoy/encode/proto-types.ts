import type { MessageTypes } from '../gen/types.gen.ts';

/** Full names of the types that are encoded by name. */
export const types = {
  cluster: 'envoy.config.cluster.v3.Cluster',
  endpoint: 'envoy.config.endpoint.v3.ClusterLoadAssignment',
  listener: 'envoy.config.listener.v3.Listener',
  filterChain: 'envoy.config.listener.v3.FilterChain',
  route: 'envoy.config.route.v3.RouteConfiguration',
  virtualHost: 'envoy.config.route.v3.VirtualHost',
  routeEntry: 'envoy.config.route.v3.Route',
  secret: 'envoy.extensions.transport_sockets.tls.v3.Secret',

  discoveryRequest: 'envoy.service.discovery.v3.DiscoveryRequest',
  deltaDiscoveryRequest: 'envoy.service.discovery.v3.DeltaDiscoveryRequest',

  httpConnectionManager: 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
  tcpProxy: 'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy',
  mongoProxy: 'envoy.extensions.filters.network.mongo_proxy.v3.MongoProxy',

  router: 'envoy.extensions.filters.http.router.v3.Router',
  fault: 'envoy.extensions.filters.http.fault.v3.HTTPFault',
  cors: 'envoy.extensions.filters.http.cors.v3.Cors',
  corsPolicy: 'envoy.extensions.filters.http.cors.v3.CorsPolicy',
  rbac: 'envoy.extensions.filters.http.rbac.v3.RBAC',
  networkRbac: 'envoy.extensions.filters.network.rbac.v3.RBAC',
  extAuthz: 'envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
  networkExtAuthz: 'envoy.extensions.filters.network.ext_authz.v3.ExtAuthz',
  jwtAuthn: 'envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication',
  headerMutation: 'envoy.extensions.filters.http.header_mutation.v3.HeaderMutation',
  grpcStats: 'envoy.extensions.filters.http.grpc_stats.v3.FilterConfig',

  tlsInspector: 'envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector',
  httpInspector: 'envoy.extensions.filters.listener.http_inspector.v3.HttpInspector',
  originalDst: 'envoy.extensions.filters.listener.original_dst.v3.OriginalDst',
  originalSrc: 'envoy.extensions.filters.listener.original_src.v3.OriginalSrc',
  proxyProtocol: 'envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol',

  downstreamTls: 'envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext',
  upstreamTls: 'envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
  rawBuffer: 'envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer',
  upstreamProxyProtocol: 'envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport',

  httpProtocolOptions: 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',

  fileAccessLog: 'envoy.extensions.access_loggers.file.v3.FileAccessLog',

  previousHosts: 'envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate',
  previousPriorities: 'envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig',
  uuidRequestId: 'envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig',
} as const satisfies Record<string, keyof MessageTypes>;
