import { X509Certificate, createPrivateKey } from 'node:crypto';
import { readPem, writePem } from '../../identity/pem.ts';

/** PEM. */
export interface Certificate {
  /** The certificate and its intermediates. */
  readonly chain: string;
  readonly key: string;
  /** The roots that came with it. */
  readonly roots: string;
}

export interface Life {
  readonly expires: string;
  /** When it is due to be renewed, as milliseconds since 1970. */
  readonly renew: number;
}

/**
 * Undefined unless it is good now.
 * @param due the part of its life, since it was received, after which it is renewed.
 */
export function lifeOf(
  { chain }: Certificate,
  identity: string,
  now: Date,
  due: { readonly part: number; readonly received: Date | undefined },
): Life | undefined {
  const [leaf] = parse(chain) ?? [];
  if (leaf === undefined || !isFor(leaf, identity) || !isNow(leaf, now)) return undefined;
  const [from, to] = [leaf.validFromDate.getTime(), leaf.validToDate.getTime()];
  const since = Math.min(Math.max(from, due.received?.getTime() ?? from), to);
  return { expires: leaf.validToDate.toISOString(), renew: since + (to - since) * due.part };
}

/** Why nobody can use it; undefined: its files belong together. */
export function pairProblem({ chain, key, roots }: Certificate): string | undefined {
  const [leaf] = parse(chain) ?? [];
  if (leaf === undefined) return UNREADABLE;
  return isKeyOf(leaf, key) ? rootsProblem(roots) : 'the certificate is for another key';
}

/** Why a workload with this identity cannot use it; undefined: it can. */
export function problemOf(certificate: Certificate, identity: string, now: Date): string | undefined {
  const [leaf] = parse(certificate.chain) ?? [];
  if (leaf === undefined) return UNREADABLE;
  if (!isFor(leaf, identity))
    return `the certificate is for ${leaf.subjectAltName ?? 'nobody'} instead of ${identity}; check the trust domain`;
  if (!isNow(leaf, now))
    return `the certificate is good from ${leaf.validFrom} to ${leaf.validTo}, but the clock of this machine says ${now.toISOString()}`;
  return pairProblem(certificate);
}

const UNREADABLE = 'the certificate chain cannot be read';

/** Why nobody can be verified with these; undefined: somebody can. */
export const rootsProblem = (roots: string): string | undefined =>
  parse(roots) === undefined ? 'the root certificates cannot be read' : undefined;

/** All of them, one at least; undefined if one cannot be read. */
function parse(pem: string): readonly X509Certificate[] | undefined {
  const blocks = readPem(pem)?.filter(({ label }) => label === 'CERTIFICATE') ?? [];
  if (blocks.length === 0) return undefined;
  try {
    return blocks.map(({ label, der }) => new X509Certificate(writePem(label, der)));
  } catch {
    return undefined;
  }
}

function isKeyOf(leaf: X509Certificate, key: string): boolean {
  try {
    return leaf.checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

const isFor = (leaf: X509Certificate, identity: string): boolean =>
  leaf.subjectAltName?.split(', ').includes(`URI:${identity}`) === true;

const isNow = ({ validFromDate, validToDate }: X509Certificate, now: Date): boolean =>
  now.getTime() >= validFromDate.getTime() && now.getTime() < validToDate.getTime();
