import type { MessageTypes } from './gen/types.gen.ts';

/** Full names of the types that are encoded by name. */
export const types = {
  cluster: 'envoy.config.cluster.v3.Cluster',
  endpoint: 'envoy.config.endpoint.v3.ClusterLoadAssignment',
  listener: 'envoy.config.listener.v3.Listener',
  route: 'envoy.config.route.v3.RouteConfiguration',
  virtualHost: 'envoy.config.route.v3.VirtualHost',
  secret: 'envoy.extensions.transport_sockets.tls.v3.Secret',
  extensionConfig: 'envoy.config.core.v3.TypedExtensionConfig',
  bootstrap: 'envoy.config.bootstrap.v3.Bootstrap',

  discoveryRequest: 'envoy.service.discovery.v3.DiscoveryRequest',
  discoveryResponse: 'envoy.service.discovery.v3.DiscoveryResponse',
  deltaDiscoveryRequest: 'envoy.service.discovery.v3.DeltaDiscoveryRequest',
  deltaDiscoveryResponse: 'envoy.service.discovery.v3.DeltaDiscoveryResponse',

  httpConnectionManager: 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
  tcpProxy: 'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy',
  mongoProxy: 'envoy.extensions.filters.network.mongo_proxy.v3.MongoProxy',
  redisProxy: 'envoy.extensions.filters.network.redis_proxy.v3.RedisProxy',
  sniCluster: 'envoy.extensions.filters.network.sni_cluster.v3.SniCluster',
  networkRbac: 'envoy.extensions.filters.network.rbac.v3.RBAC',
  networkLocalRateLimit: 'envoy.extensions.filters.network.local_ratelimit.v3.LocalRateLimit',
  connectionLimit: 'envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit',

  router: 'envoy.extensions.filters.http.router.v3.Router',
  fault: 'envoy.extensions.filters.http.fault.v3.HTTPFault',
  cors: 'envoy.extensions.filters.http.cors.v3.Cors',
  corsPolicy: 'envoy.extensions.filters.http.cors.v3.CorsPolicy',
  grpcStats: 'envoy.extensions.filters.http.grpc_stats.v3.FilterConfig',
  httpRbac: 'envoy.extensions.filters.http.rbac.v3.RBAC',
  jwtAuthentication: 'envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication',
  httpLocalRateLimit: 'envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit',
  statefulSession: 'envoy.extensions.filters.http.stateful_session.v3.StatefulSession',
  statefulSessionPerRoute: 'envoy.extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute',
  cookieBasedSessionState: 'envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState',

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
  tcpProtocolOptions: 'envoy.extensions.upstreams.tcp.v3.TcpProtocolOptions',

  fileAccessLog: 'envoy.extensions.access_loggers.file.v3.FileAccessLog',
  httpGrpcAccessLog: 'envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig',
  tcpGrpcAccessLog: 'envoy.extensions.access_loggers.grpc.v3.TcpGrpcAccessLogConfig',
  openTelemetryAccessLog: 'envoy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig',

  previousHosts: 'envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate',
  previousPriorities: 'envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig',
  uuidRequestId: 'envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig',
} as const satisfies Record<string, keyof MessageTypes>;
