import { X509Certificate } from 'node:crypto';
import { readPem, writePem } from './pem.ts';

/**
 * One bundle of all roots in `pems`, each of which may hold several: distinct, in the order of first appearance. For
 * old and new roots side by side. Throws on malformed PEM: the texts were checked when they were loaded.
 */
export function mergeRoots(pems: readonly string[]): string {
  const distinct = new Set<string>();
  for (const pem of pems) {
    const blocks = readPem(pem);
    if (blocks === undefined) throw new Error('root certificates are not valid PEM');
    for (const { label, der } of blocks) if (label === 'CERTIFICATE') distinct.add(writePem(label, der));
  }
  return [...distinct].join('');
}

/** The certificates of a text that others have written, PEM; without those that cannot be read. */
export function readableRoots(pem: string): readonly string[] {
  const found = (readPem(pem) ?? []).filter(({ label }) => label === 'CERTIFICATE');
  return [...new Set(found.map(({ label, der }) => writePem(label, der)))].filter(isCertificate);
}

export function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).publicKey.type === 'public';
  } catch {
    return false;
  }
}

/** The name and the key: a root with both of another one, as a renewed one, verifies whatever that one does. */
export function signerOf(pem: string): string {
  const { subject, publicKey } = new X509Certificate(pem);
  return `${publicKey.export({ type: 'spki', format: 'der' }).toString('base64')} ${subject ?? ''}`;
}
