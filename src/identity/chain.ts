import type { X509Certificate } from 'node:crypto';
import { quote } from '../api/quote.ts';

/** A certificate, and where it is from: an entry, and the number in it if there are several. */
export interface Listed {
  readonly certificate: X509Certificate;
  readonly where: string;
}

/** The shortest chain from a certificate to a root, both included; undefined if none of these lead there. */
export function findChain(
  start: Listed,
  pool: readonly Listed[],
  roots: readonly Listed[],
): readonly Listed[] | undefined {
  const isRoot = new Set(roots.map(({ certificate }) => certificate.fingerprint256));
  const seen = new Set([start.certificate.fingerprint256]);
  const candidates = [...roots, ...pool];
  // Grows while it is read.
  const chains: Listed[][] = [[start]];
  for (const chain of chains) {
    const { certificate } = chain.at(-1)!;
    if (isRoot.has(certificate.fingerprint256)) return chain;
    for (const issuer of candidates) {
      if (seen.has(issuer.certificate.fingerprint256) || !isIssuedBy(certificate, issuer.certificate)) continue;
      seen.add(issuer.certificate.fingerprint256);
      chains.push([...chain, issuer]);
    }
  }
  return undefined;
}

/** For messages. */
export function nameOf({ subject }: X509Certificate): string {
  return quote((subject ?? '').replaceAll('\n', ', '));
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}
