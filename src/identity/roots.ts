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
