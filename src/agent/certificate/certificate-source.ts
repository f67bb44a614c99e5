import type { Certificate } from './verdict.ts';

/** Where the certificate of this workload comes from: the control plane, mounted files, or a provider. */
export interface CertificateSource {
  readonly current: Certificate | undefined;
  /** All roots that peers may have, PEM; empty until there is a certificate. */
  readonly roots: string;
  /** Why there is no certificate, or undefined if there is one. */
  readonly problem: string | undefined;
  /** Calls it when the certificate or the roots change. */
  onChange(listener: () => unknown): () => void;
  /**
   * Trusts these roots besides those of the certificate. Settles once there is a certificate that all who trust them
   * accept, as far as that can be known, or the signal has fired. Rejects, and changes nothing, if they cannot be read.
   */
  trust(roots: readonly string[]): Promise<void>;
  /** Settles once there is a certificate, or the signal has fired. */
  first(): Promise<void>;
  /** Keeps it good until the signal fires. */
  keep(): Promise<void>;
}

/** Envoy has its certificate from a provider, which knows its roots, too. This agent has none. */
export const fromProvider: CertificateSource = {
  current: undefined,
  roots: '',
  problem: undefined,
  onChange: () => () => {},
  trust: () => Promise.resolve(),
  first: () => Promise.resolve(),
  keep: () => Promise.resolve(),
};
