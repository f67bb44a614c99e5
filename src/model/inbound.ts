import type { ObjectRef } from '../api/object.ts';
import type { ServerTls } from './gateway.ts';
import type { Protocol } from './service.ts';
import type { ConnectionPool } from './traffic-policy.ts';

/**
 * A port of the workload that its proxy serves: because Services select the workload, or because a Sidecar's ingress
 * says so.
 */
export interface InboundTarget {
  /** Port on which the workload is reached: the target port of the Services, or the port of the ingress listener. */
  readonly port: number;
  /** The protocol from the first service, or from the ingress listener. */
  readonly protocol: Protocol;
  /** The service ports that lead here, oldest service first: the first one provides names and policy. Never empty. */
  readonly services: readonly InboundService[];
  /** Settled from the DestinationRule of the first service, Sidecar.inboundConnectionPool and the ingress listener. */
  readonly connectionPool?: ConnectionPool;
  readonly ingress?: SidecarIngress;
  readonly origins: readonly ObjectRef[];
}

export interface InboundService {
  readonly host: string;
  readonly name: string;
  readonly namespace: string;
  readonly registry: 'Kubernetes' | 'External';
  /** Number and name of the service port. */
  readonly port: number;
  readonly portName: string;
}

/** What a Sidecar's ingress listener changes about a port. */
export interface SidecarIngress {
  /** Address to bind to; empty: the same as for other inbound ports. */
  readonly bind: string;
  /** `captureMode: NONE`: the listener binds its port instead of receiving redirected connections. */
  readonly bindToPort: boolean;
  readonly endpoint: IngressEndpoint;
  /** What the proxy terminates for clients outside the mesh, where it terminates no mutual TLS (mode DISABLE). */
  readonly tls?: IngressTls;
}

export interface IngressTls extends ServerTls {
  /** `spec.ingress[0].tls` */
  readonly field: string;
}

/** `defaultEndpoint`: what the proxy connects to. */
export type IngressEndpoint =
  /** Unset: the address that the client connected to. */
  | { readonly kind: 'originalDestination' }
  /** `127.0.0.1:port` or `[::1]:port`; the other family is used if the proxy has only that one. */
  | { readonly kind: 'loopback'; readonly family: 'v4' | 'v6'; readonly port: number }
  /** `0.0.0.0:port` or `[::]:port`: an address of the workload. */
  | { readonly kind: 'workload'; readonly family: 'v4' | 'v6'; readonly port: number }
  /** `unix://path`, or `unix://@name` for an abstract socket. */
  | { readonly kind: 'unix'; readonly path: string };
