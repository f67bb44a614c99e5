import type { Unknown } from './truth.ts';

/** A connection, as the filters of the proxy that takes it see it. */
export interface Connection {
  /** SPIFFE ID in the peer's certificate, or undefined if there is none. */
  readonly peer: string | Unknown | undefined;
  /** The port on which the workload itself listens. */
  readonly port: number;
  /** Address of the direct peer. */
  readonly sourceIp: string | Unknown;
  readonly destinationIp: string | Unknown;
  /** Server name in the handshake; empty in plaintext. */
  readonly sni: string | Unknown;
}

/** What arrives at a workload's proxy. */
export interface AccessRequest extends Connection {
  readonly peer: string | undefined;
  /** Undefined: a connection on which no HTTP is spoken. */
  readonly http: HttpRequest | undefined;
}

export interface HttpRequest {
  readonly method: string;
  /** With the query, as it is sent. */
  readonly path: string;
  readonly host: string | Unknown;
  /** Names in any case; a name may occur several times. */
  readonly headers: readonly Header[];
}

export type Header = readonly [name: string, value: string];
