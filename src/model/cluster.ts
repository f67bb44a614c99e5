import type { SettledLocality } from './assignment.ts';
import type { Endpoint } from './endpoint.ts';
import type { InboundService } from './inbound.ts';
import type { MeshService, ServicePort } from './service.ts';
import type { ClientTls, ConnectionPool, DestinationRuleModel, TrafficPolicy } from './traffic-policy.ts';

/**
 * What a cluster speaks to its endpoints: HTTP/2, or the client's protocol. Undefined: HTTP/1.1 if it matters, which is
 * Envoy's default.
 */
export type UpstreamProtocol = 'http2' | 'downstream' | undefined;

/** A cluster through which clients reach a service port, or a subset of its endpoints. */
export type SettledCluster = OutboundCluster | GrpcCluster;

/** For Envoy. */
export interface OutboundCluster {
  readonly family: 'envoy';
  readonly name: string;
  readonly service: MeshService;
  readonly port: ServicePort;
  /** Name of the subset; absent: the host itself. */
  readonly subset?: string | undefined;
  /** The rule that clients use for the service. */
  readonly rule?: Pick<DestinationRuleModel, 'namespace' | 'name'> | undefined;
  /** The policy in force for the port and subset. */
  readonly policy: TrafficPolicy;
  readonly protocol: UpstreamProtocol;
  /** HTTP/1.1 headers keep the client's case. */
  readonly preservesHeaderCase: boolean;
  readonly discovery: Discovery;
  /** Absent: each request names its own endpoint. */
  readonly balancing?: Balancing;
  readonly sockets: UpstreamSockets;
  /** Connections begin with the PROXY header. */
  readonly proxyProtocol?: 'V1' | 'V2' | undefined;
  /** The rule has it originate TLS, so that ALPN is not the mesh's. */
  readonly originatesTls: boolean;
}

/** Where the endpoints of a cluster come from. */
export type Discovery =
  /** From the assignment of the same name. */
  | { readonly kind: 'assignment' }
  /** Where the client wanted to connect to; on this port, if there is one. */
  | { readonly kind: 'originalDestination'; readonly port?: number | undefined }
  /** From DNS: the names are in the cluster itself. */
  | {
      readonly kind: 'dns';
      readonly localities: readonly SettledLocality<DnsEndpoint>[];
      /** All addresses of the name are one endpoint: Envoy then rejects a second name. */
      readonly oneName: boolean;
    }
  /** From DNS, for the host that each request names; whether the certificate must be that host's. */
  | { readonly kind: 'dynamicDns'; readonly bindsCertificate: boolean };

export interface DnsEndpoint {
  readonly endpoint: Endpoint;
  /** It is marked for mutual TLS. */
  readonly mtls: boolean;
}

export interface Balancing {
  /** In percent of healthy endpoints: with fewer, Envoy also uses those that are not. */
  readonly panicThreshold: number;
  /** Localities have weights, and not only endpoints. */
  readonly weighsLocalities: boolean;
}

/** What a cluster's connections speak below HTTP and TCP. */
export type UpstreamSockets =
  | { readonly kind: 'plaintext' }
  /** The mesh's mutual TLS, with the certificate that Istio's agent got for the workload. */
  | {
      readonly kind: 'mesh';
      readonly sni: string;
      /** Names that peers prove; empty: any of the mesh. */
      readonly names: readonly string[];
      /** Only to endpoints that are marked for it; in plaintext to the others. */
      readonly toMarked: boolean;
    }
  /** TLS to a server outside the mesh, or with the owner's own certificates. */
  | {
      readonly kind: 'originated';
      readonly tls: ClientTls;
      /** Accepted names; empty: any, or those that follow from the request. */
      readonly names: readonly string[];
      /** Whether the client has a certificate of its own. */
      readonly mutual: boolean;
      /** The server name follows the request; so do the accepted names. */
      readonly autoSni: boolean;
      readonly autoSanValidation: boolean;
    };

/** For gRPC's own clients, without an Envoy. */
export interface GrpcCluster {
  readonly family: 'grpc';
  readonly name: string;
  readonly policy: TrafficPolicy;
  /** From the assignment of the same name; none; or a single name, for DNS. */
  readonly endpoints: 'assignment' | 'none' | Endpoint;
  /** Absent: plaintext. */
  readonly mtls?: { readonly sni: string; readonly names: readonly string[] };
}

/** A cluster that proxies of a kind have, whatever the mesh contains. */
export type FixedCluster =
  /** For what leads nowhere. */
  | { readonly kind: 'blackHole' | 'grpcBlackHole' }
  /** To wherever clients wanted to connect to. */
  | { readonly kind: 'passthrough' }
  /** The same for what arrives: to the workload, on ports that no service names. */
  | { readonly kind: 'inboundPassthrough' }
  /** To the host of each request, which no object names. */
  | { readonly kind: 'unknownHosts'; readonly sockets: UpstreamSockets; readonly bindsCertificate: boolean }
  /** A provider of secrets in the proxy's Pod. */
  | { readonly kind: 'secretProvider' };

/** A cluster through which a sidecar reaches a port of its own workload. */
export interface InboundCluster {
  readonly name: string;
  /** Port on which the workload is reached. */
  readonly port: number;
  /** The service ports that lead there and have the number of the first: it provides the name for statistics. */
  readonly services: readonly InboundService[];
  readonly connectionPool?: ConnectionPool | undefined;
  readonly protocol: UpstreamProtocol;
  /** HTTP/1.1 headers keep the client's case. */
  readonly preservesHeaderCase: boolean;
  readonly endpoint: InboundEndpoint;
}

/** What a sidecar connects to. */
export type InboundEndpoint =
  /** The address that the client connected to. */
  | { readonly kind: 'originalDestination' }
  /** Connections to loopback are not intercepted. */
  | { readonly kind: 'address'; readonly address: string; readonly port: number; readonly isLoopback: boolean }
  | { readonly kind: 'unix'; readonly path: string };
