import type { BarrierTimes } from '../protocol/barrier-times.ts';
import type { AdsLimits } from './limits.ts';
import type { Authenticate } from './authentication.ts';
import type { Rollouts } from '../rollouts/rollouts.ts';
import type { TenantOf } from '../tenant.ts';
import type { AdsEvents, PeerIdentity, Questions, ResourceTypes } from '../types.ts';

export interface AdsLog {
  info(message: string, fields: object): void;
  warn(message: string, fields: object): void;
}

export interface ListenAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

/** TLS with client certificates or tokens. Until it has a certificate to present, it closes connections. */
export interface SecureOptions extends ListenAddress {
  readonly authenticate: Authenticate;
  /** Other services on the same port. */
  readonly services: readonly UnaryService[];
  /** A handshake failed, a caller is not who it must be, or asks for what it may not have: a word for the metric. */
  readonly refused: (reason: string, address: string) => void;
}

/** A method that takes one message and returns another, both as bytes. */
export interface UnaryService {
  /** `/package.Service/Method` */
  readonly path: string;
  /** Never rejects. */
  readonly call: (request: Uint8Array, identity: PeerIdentity, signal: AbortSignal) => Promise<UnaryResult>;
}

export type UnaryResult =
  | { readonly response: Uint8Array }
  | { readonly code: 'INVALID_ARGUMENT' | 'PERMISSION_DENIED' | 'UNAVAILABLE' | 'INTERNAL'; readonly message: string };

export interface AdsServerOptions {
  /** A port where clients are believed; absent: none. */
  readonly plaintext?: ListenAddress;
  readonly types: ResourceTypes;
  readonly events: AdsEvents;
  /** Absent: there are no such requests. */
  readonly questions?: Questions;
  readonly log: AdsLog;
  /** Streams are refused with UNAVAILABLE while this returns false. */
  readonly ready: () => boolean;
  /** Milliseconds; only differences count. */
  readonly now: () => number;
  /** Milliseconds in which the event loop has waited; only differences count. Absent: it always has. */
  readonly idle?: () => number;
  /** Overrides of the defaults. */
  readonly limits?: Partial<AdsLimits>;
  /** Overrides of the defaults: shorter in tests. */
  readonly times?: Partial<BarrierTimes>;
  /** Only for the test that shows what the barrier is good for: without it. */
  readonly unguarded?: boolean;
  /** How often timers are checked. */
  readonly tickMs?: number;
  /** A port for clients that prove who they are; absent: none. */
  readonly secure?: SecureOptions;
  /** Calls back once, after this many milliseconds; absent: by the system's clock. */
  readonly after?: (ms: number, work: () => void) => void;
  /** What clients may reject goes to one client of a build first; absent: true. */
  readonly canaries?: boolean;
  /** Absent: as its identity says. */
  readonly tenantOf?: TenantOf;
  /** What is waited for; absent: nothing. */
  readonly rollouts?: Rollouts;
  /** Ends the server. */
  readonly signal: AbortSignal;
}
