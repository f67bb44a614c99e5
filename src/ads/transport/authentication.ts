import type { PeerIdentity } from '../types.ts';
import type { ClientCertificate } from './secure-port.ts';

/** What a call on the secure port says about its caller. */
export interface Caller {
  /** IP address. */
  readonly address: string;
  readonly certificate: ClientCertificate;
  /** From `authorization: Bearer …`, or undefined if there is none. */
  readonly token: string | undefined;
  /** Metadata `clusterid`: where the token was issued; empty: not said. */
  readonly cluster: string;
}

/** Why a caller is nobody. */
export interface Unauthenticated {
  readonly code: 'UNAUTHENTICATED' | 'UNAVAILABLE';
  /** One word, for the metric. */
  readonly reason: string;
  /** For the caller. */
  readonly message: string;
}

/** Never rejects. */
export type Authenticate = (caller: Caller) => Promise<PeerIdentity | Unauthenticated>;
