import type { ObjectRef } from '../api/object.ts';
import type { Aged } from './age.ts';
import { isWildcard } from './host.ts';
import { coverOf, coveredIn } from './host-set.ts';
import { remembered } from './remembered.ts';
import type { Labels } from './labels.ts';
import type { L4Target } from './listener.ts';
import type { Protocol } from './service.ts';

/** A Gateway as parsed: every value checked. */
export interface GatewayModel extends Aged {
  /** `source/namespace/name` */
  readonly key: string;
  readonly ref: ObjectRef;
  /** Labels of the routers that it applies to, in any namespace. Empty: all routers. */
  readonly selector: Labels;
  readonly servers: readonly GatewayServer[];
}

export interface GatewayServer {
  /** `spec.servers[0]` */
  readonly field: string;
  /** For statistics, and for routes that are attached to it alone; may be empty. */
  readonly name: string;
  readonly port: ServerPort;
  /** IP address or `unix://path`; empty: every address. */
  readonly bind: string;
  readonly hosts: readonly ServerHost[];
  /** Plaintext requests get a redirect to https. */
  readonly httpsRedirect: boolean;
  readonly serves: ServerKind;
}

export interface ServerPort {
  /** 0 for a unix socket. */
  readonly number: number;
  /** Unique within its Gateway. */
  readonly name: string;
  readonly protocol: Protocol;
}

export interface ServerHost {
  /** Namespace of the VirtualServices that may use it; `*`: any. */
  readonly namespace: string;
  /** Exact or wildcard. */
  readonly host: string;
}

export type ServerKind =
  /** Requests. */
  | { readonly kind: 'http' }
  /** Requests over TLS, which is terminated here. */
  | { readonly kind: 'https'; readonly tls: ServerTls }
  /** Connections. */
  | { readonly kind: 'tcp' }
  /** Connections over TLS, which is terminated here. */
  | { readonly kind: 'tls'; readonly tls: ServerTls }
  /** TLS forwarded by server name: as VirtualServices say, or to the service named. */
  | { readonly kind: 'passthrough' | 'autoPassthrough' };

/** How TLS is terminated. Source: Istio ServerTLSSettings. */
export interface ServerTls {
  readonly mode: 'SIMPLE' | 'MUTUAL' | 'OPTIONAL_MUTUAL' | 'ISTIO_MUTUAL';
  readonly certificates: ServerCertificates;
  /** Names accepted in client certificates; empty: any. */
  readonly subjectAltNames: readonly string[];
  readonly verifyCertificateSpki: readonly string[];
  readonly verifyCertificateHash: readonly string[];
  /** File of revoked client certificates; may be empty. */
  readonly caCrl: string;
  /** Client certificates from any authority are accepted. */
  readonly insecureSkipVerify: boolean;
  readonly minProtocolVersion?: TlsVersion;
  readonly maxProtocolVersion?: TlsVersion;
  /** The suites that Envoy knows, distinct. Empty: the mesh's. */
  readonly cipherSuites: readonly string[];
  /** The curves that Envoy knows, distinct. Empty: the mesh's. */
  readonly ecdhCurves: readonly string[];
  /** Application protocols to offer. Empty: those that the server speaks. */
  readonly alpnProtocols: readonly string[];
}

export type TlsVersion = 'TLSV1_0' | 'TLSV1_1' | 'TLSV1_2' | 'TLSV1_3';

export type ServerCertificates =
  /** The certificates that Istio's agent obtained for the workload. */
  | { readonly kind: 'mesh' }
  /**
   * Kubernetes Secrets; at least one. `roots`: the Secret with the client CA certificates; empty: those in the first
   * Secret.
   */
  | { readonly kind: 'credentials'; readonly names: readonly string[]; readonly roots: string }
  /** Files on the router's disk; at least one pair. */
  | {
      readonly kind: 'files';
      readonly files: readonly { readonly certificate: string; readonly key: string }[];
      readonly roots: string;
    };

/** A Gateway's server on a router port. */
export interface BoundServer {
  /** `namespace/name` */
  readonly gateway: string;
  /** Age of the Gateway. */
  readonly age: Aged;
  readonly ref: ObjectRef;
  readonly server: GatewayServer;
  /** Name of its route table; empty if it forwards connections. */
  readonly routes: string;
}

/** What Gateways ask of one address and port of a router, with conflicts settled. */
export interface MergedListener {
  /** `0.0.0.0_80` */
  readonly name: string;
  readonly address: string;
  /** The port that the router opens. */
  readonly port: number;
  /** All HTTP servers share one route table; server names tell TLS servers apart; TCP has one server. */
  readonly kind: 'http' | 'tcp' | 'tls';
  /** Oldest Gateway first. Never empty. */
  readonly servers: readonly BoundServer[];
}

/** The hosts of a server that VirtualServices in a namespace may use. */
export function hostsFor(server: Pick<GatewayServer, 'hosts'>, namespace: string): readonly string[] {
  return server.hosts.filter((host) => host.namespace === '*' || host.namespace === namespace).map(({ host }) => host);
}

/** The hosts that both lists cover: if one of two patterns is within the other, the more specific one. */
export function intersectHosts(a: readonly string[], b: readonly string[]): readonly string[] {
  return intersectionWith(b)(a);
}

/** The same for many lists, each in as many steps as it is long. */
export const intersectionWith = remembered((b: readonly string[]): ((a: readonly string[]) => readonly string[]) => {
  const isCovered = coverOf(b);
  const covered = coveredIn(b);
  return (a) => {
    const found = new Set<string>();
    for (const left of a) {
      if (isCovered(left)) found.add(left);
      if (isWildcard(left)) for (const right of covered(left)) found.add(right);
    }
    return [...found];
  };
});

/** Whether requests reach the server over TLS, or are redirected until they do. */
export function isSecure({ serves, httpsRedirect }: GatewayServer): boolean {
  return serves.kind === 'https' || httpsRedirect;
}

/** A router's listener, with everything about it decided. */
export interface SettledGatewayListener extends Pick<MergedListener, 'name' | 'address' | 'port'> {
  /** Empty if no server has anything to serve, such as a TCP server without a route. */
  readonly chains: readonly GatewayChain[];
  /** The Gateways of servers with AUTO_PASSTHROUGH, whose chains ({@link SniChain}) come in addition. */
  readonly forwardsFor: readonly ObjectRef[];
}

/** The connections for some server names, or for any. */
export interface GatewayChain {
  /** Empty or with `*`: any. */
  readonly serverNames: readonly string[];
  /** The router terminates TLS. */
  readonly tls?: ServerTls;
  readonly serves:
    | {
        readonly kind: 'http';
        /** Name of the route table. */
        readonly routes: string;
        /** Name of the server, for statistics. Empty: several servers share the chain. */
        readonly statName: string;
        readonly grpcWeb: boolean;
      }
    | { readonly kind: 'l4'; readonly target: L4Target };
  /** The Gateway, and the objects that decide where its connections go. */
  readonly origins: readonly ObjectRef[];
}

/** Where a server with AUTO_PASSTHROUGH forwards the connections with a server name. */
export interface SniChain {
  readonly serverName: string;
  readonly target: L4Target;
}
