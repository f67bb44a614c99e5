import { X509Certificate } from 'node:crypto';
import type { Authenticate } from '../ads/transport/authentication.ts';
import type { PortCertificate } from '../ads/transport/secure-port.ts';
import type { UnaryService } from '../ads/transport/server-options.ts';
import type { Clock } from '../base/clock.ts';
import { spiffeId } from '../identity/spiffe.ts';
import { Authority } from '../identity/authority.ts';
import { type AuthenticatorOptions, createAuthenticator, unitOf } from './authenticator.ts';
import { readRequest } from '../identity/certificate-request.ts';
import { type Sign, certificateService } from './certificate-service.ts';
import { mergeRoots } from '../identity/roots.ts';
import type { SigningMaterial } from '../identity/signing-material.ts';

export interface CredentialsOptions extends Omit<AuthenticatorOptions, 'now' | 'date'> {
  /** DNS names under which proxies reach the control plane. */
  readonly names: readonly string[];
  /** Of certificates whose requests name none; milliseconds. Absent: a day. */
  readonly lifetime?: number;
  readonly clock: Clock;
  readonly log: { warn(message: string, fields: object): void };
  /** Told of each certificate that is handed out, and to which tenant: see `PeerIdentity`. */
  readonly audit: (tenant: string, signed: Audited) => void;
  /** Settles when a certificate that expires then may be handed out. */
  readonly allow: (expires: Date) => Promise<void>;
  /** What the secure port presents from now on. */
  readonly present: (certificate: PortCertificate) => void;
  readonly signal: AbortSignal;
}

/** Whose a certificate is, and until when. */
export interface Audited {
  readonly identity: string;
  /** The cluster that vouches for the account: others may have an account of the same name. */
  readonly cluster: string;
  readonly until: string;
  readonly serial: string;
}

/** Seconds. Renewed after half of it, without ending connections. */
const SERVER_LIFETIME = 24 * 3600;
/** Between two looks at whether it is due: the wall clock may be set, and a machine may stand still. */
const LOOK_MS = 60_000;

/** Who is who: authenticates callers, and signs certificates for them. */
export class Credentials {
  readonly authenticate: Authenticate;
  readonly services: readonly UnaryService[];
  readonly #options: CredentialsOptions;
  #authority: Authority | undefined;
  #roots = '';
  /** On the wall clock; undefined: the secure port needs a certificate. */
  #signedAt: number | undefined;
  /** The problem that was last logged; empty: there is none. */
  #said = '';
  #cancel = (): void => undefined;

  constructor(options: CredentialsOptions) {
    this.#options = options;
    const { clock } = options;
    this.authenticate = createAuthenticator({ ...options, now: () => clock.now(), date: () => clock.date() });
    this.services = [certificateService((csr, identity, seconds) => this.#sign(csr, identity, seconds))];
    options.signal.addEventListener('abort', () => this.#cancel());
  }

  /** The roots, PEM; empty until there is an authority. */
  get pem(): string {
    return this.#roots;
  }

  /** Signs with this from now on, and trusts its roots. */
  async use(material: SigningMaterial): Promise<void> {
    this.#authority = new Authority(material, this.#options.lifetime);
    this.#roots = mergeRoots(material.roots);
    await this.#renew();
  }

  /** The certificate of the secure port. */
  async #renew(): Promise<void> {
    const { clock, names, present, signal } = this.#options;
    const authority = this.#authority;
    if (authority === undefined || signal.aborted) return;
    this.#signedAt = undefined;
    this.#lookLater();
    const now = clock.date();
    const signed = await authority.signServer(names, SERVER_LIFETIME, now);
    // Another authority, or the end, may have come meanwhile.
    if (authority !== this.#authority || signal.aborted) return;
    if ('problem' in signed) return this.#warn(signed.problem);
    this.#said = '';
    present({ certificate: signed.chain.slice(0, -1).join(''), key: signed.key, roots: this.#roots });
    this.#signedAt = now.getTime();
  }

  #lookLater(): void {
    const { clock } = this.#options;
    this.#cancel();
    this.#cancel = clock.after(LOOK_MS, () => {
      this.#lookLater();
      const age = clock.date().getTime() - (this.#signedAt ?? Infinity);
      if (age >= 0 && age < (SERVER_LIFETIME * 1000) / 2) return;
      this.#renew().catch((error: unknown) => this.#warn(error instanceof Error ? error.message : String(error)));
    });
  }

  /** It is tried again each minute, for as long as it takes: a problem is logged once. */
  #warn(problem: string): void {
    if (problem !== this.#said) this.#options.log.warn('No certificate for the secure port', { problem });
    this.#said = problem;
  }

  readonly #sign: Sign = async (csr, { trustDomain, namespace, serviceAccount, cluster, tenant }, seconds) => {
    const authority = this.#authority;
    if (authority === undefined) return { code: 'UNAVAILABLE', message: 'there is no authority yet; try again' };
    const identity = spiffeId(trustDomain, namespace, serviceAccount);
    const read = await readRequest(csr, identity);
    if ('problem' in read) return { code: 'INVALID_ARGUMENT', message: read.problem };
    const { clock, clusterId } = this.#options;
    const unit = unitOf(cluster, clusterId);
    const signed = await authority.sign(read.request, identity, seconds, clock.date(), unit);
    if ('chain' in signed) {
      try {
        const { validToDate, serialNumber } = new X509Certificate(signed.chain[0]!);
        await this.#options.allow(validToDate);
        this.#options.audit(tenant, { identity, cluster, until: validToDate.toISOString(), serial: serialNumber });
        return signed;
      } catch {
        return { code: 'UNAVAILABLE', message: 'this lifetime cannot be recorded now; try again' };
      }
    }
    return { code: signed.reason === 'Lifetime' ? 'INVALID_ARGUMENT' : 'UNAVAILABLE', message: signed.problem };
  };
}
