import type { Authorizer } from './authorization.ts';
import type { LabelSelector } from './label-selector.ts';
import type { ClientTls, LocalityLbSetting, TrafficPolicy } from './traffic-policy.ts';

/**
 * The settled mesh config, in sections by reader, so that a change to one section marks only its readers. Source: Istio
 * MeshConfig; defaults are Istio's. Durations are in milliseconds.
 */
export interface MeshConfig {
  readonly visibility: VisibilitySettings;
  readonly clusters: ClusterSettings;
  readonly routes: RouteSettings;
  readonly listeners: ListenerSettings;
  readonly security: SecuritySettings;
  /** Which namespaces are of the mesh: none means all. Source: discoverySelectors. */
  readonly discoverySelectors: readonly LabelSelector[];
}

export interface SecuritySettings {
  readonly trustDomain: string;
  readonly trustDomainAliases: readonly string[];
  /** The extensionProviders that decide about requests, and can be used. */
  readonly authorizers: readonly Authorizer[];
  /** Of the extension provider `sds`, which has the secrets of servers with names that begin with `sds://`. */
  readonly secretProvider?: ProviderService & { readonly name: string };
}

/** A service that an extension provider names. */
export interface ProviderService {
  /** `host`, or `namespace/host`. */
  readonly service: string;
  readonly port: number;
}

/** mesh.tlsDefaults: for TLS other than the mesh's own. */
export interface TlsDefaults {
  readonly cipherSuites: readonly string[];
  readonly ecdhCurves: readonly string[];
  /** Absent: Envoy's default. For servers only. */
  readonly minProtocolVersion?: 'TLSV1_2' | 'TLSV1_3';
}

export interface VisibilitySettings {
  readonly rootNamespace: string;
  readonly trustDomain: string;
  readonly defaultServiceExportTo: readonly string[];
  readonly defaultVirtualServiceExportTo: readonly string[];
  readonly defaultDestinationRuleExportTo: readonly string[];
  /** serviceSettings with clusterLocal, most specific host first. */
  readonly clusterLocalHosts: readonly { readonly host: string; readonly clusterLocal: boolean }[];
}

export interface ClusterSettings {
  readonly connectTimeout: number;
  readonly dnsRefreshRate: number;
  readonly enableAutoMtls: boolean;
  readonly trustDomainAliases: readonly string[];
  readonly h2Upgrade: boolean;
  readonly inboundTrafficPolicy: 'PASSTHROUGH' | 'LOCALHOST';
  readonly tcpKeepalive?: { readonly probes?: number; readonly time?: number; readonly interval?: number };
  readonly tlsDefaults: TlsDefaults;
  /** The blocks connectionPool and outlierDetection of mesh.defaultTrafficPolicy. */
  readonly defaultTrafficPolicy?: TrafficPolicy;
  /** outboundTrafficPolicy.tls: to hosts that nobody knows, with ALLOW_ANY_DYNAMIC_DNS. */
  readonly unknownHostsTls?: ClientTls;
  /** Absent if disabled. */
  readonly localityLb?: LocalityLbSetting;
  readonly outboundClusterStatName: string;
  readonly inboundClusterStatName: string;
}

export interface RouteSettings {
  /** Absent: Istio's built-in policy. */
  readonly defaultHttpRetryPolicy?: RetrySetting;
}

/** An HTTP retry policy as users write it (HTTPRetry). `attempts` 0 or less: no retries. */
export interface RetrySetting {
  readonly attempts: number;
  readonly perTryTimeout?: number;
  readonly retryOn: string;
  readonly retryRemoteLocalities: boolean;
  readonly retryIgnorePreviousHosts?: boolean;
  readonly backoff?: number;
}

/** What becomes of traffic to hosts that nobody knows. A Sidecar cannot ask for ALLOW_ANY_DYNAMIC_DNS. */
export type OutboundPolicy = 'ALLOW_ANY' | 'ALLOW_ANY_DYNAMIC_DNS' | 'REGISTRY_ONLY';

/** What routers tell the next hop about their client's certificate; the names are Envoy's. */
export type ForwardClientCertDetails = (typeof forwardClientCertDetails)[number];

export const forwardClientCertDetails = [
  'SANITIZE',
  'FORWARD_ONLY',
  'APPEND_FORWARD',
  'SANITIZE_SET',
  'ALWAYS_FORWARD_ONLY',
] as const;

export interface ListenerSettings {
  readonly proxyListenPort: number;
  readonly proxyInboundListenPort: number;
  readonly proxyHttpPort: number;
  readonly protocolDetectionTimeout: number;
  readonly outboundTrafficPolicy: OutboundPolicy;
  readonly inboundTrafficPolicy: 'PASSTHROUGH' | 'LOCALHOST';
  readonly pathNormalization: 'NONE' | 'BASE' | 'MERGE_SLASHES' | 'DECODE_AND_MERGE_SLASHES';
  /** Empty: no access log. */
  readonly accessLogFile: string;
  /** Empty: Istio's default format. */
  readonly accessLogFormat: string;
  readonly accessLogEncoding: 'TEXT' | 'JSON';
  /** Whether connections that match no filter chain are logged too. */
  readonly listenerAccessLog: boolean;
  /** Percentage of requests to trace, if the proxy's bootstrap names a tracer. Absent: tracing is off. */
  readonly tracingSampling?: number;
  readonly trustDomain: string;
  readonly trustDomainAliases: readonly string[];
  /** meshMTLS.minProtocolVersion: for mutual TLS between workloads. */
  readonly minTlsVersion: 'TLSV1_2' | 'TLSV1_3';
  /** meshMTLS.cipherSuites; empty: Istio's. */
  readonly meshCipherSuites: readonly string[];
  readonly tlsDefaults: TlsDefaults;
  readonly inboundClusterStatName: string;
  readonly outboundClusterStatName: string;
  /** For routers whose node does not say otherwise. */
  readonly gatewayTopology: GatewayTopology;
}

/** ProxyConfig gatewayTopology: what is in front of routers. */
export interface GatewayTopology {
  readonly numTrustedProxies: number;
  readonly forwardClientCertDetails: ForwardClientCertDetails;
  /** Connections start with the PROXY protocol. */
  readonly proxyProtocol: boolean;
}
