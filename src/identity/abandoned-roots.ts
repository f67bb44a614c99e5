import { X509Certificate } from 'node:crypto';
import { nameOf } from './chain.ts';
import { bundleId } from './rotation.ts';
import { readableRoots, signerOf } from './roots.ts';

/** Roots that peers trust, and that nobody here can sign under. */
export interface AbandonedRoots {
  /** A short text that is different for other roots. */
  readonly id: string;
  /** The names of the first of them, for people. */
  readonly names: readonly string[];
  /** A namespace that publishes them. */
  readonly namespace: string;
}

const MOST_NAMES = 3;

/**
 * What would be given up if this root signed from now on: bundles that do not verify what it signs. Undefined: nothing.
 * @param root PEM; undefined: one with a new key.
 */
export function abandonedBy(
  root: string | undefined,
  published: readonly { readonly namespace: string; readonly pem: string }[],
): AbandonedRoots | undefined {
  const signer = root === undefined ? undefined : signerOf(root);
  const abandoned = published
    .map(({ namespace, pem }) => ({ namespace, roots: readableRoots(pem) }))
    .filter(({ roots }) => roots.length > 0 && !roots.some((each) => signerOf(each) === signer));
  const [first] = abandoned;
  if (first === undefined) return undefined;
  const all = [...new Set(abandoned.flatMap(({ roots }) => roots))].sort();
  return {
    id: bundleId(all.join('')),
    names: first.roots.slice(0, MOST_NAMES).map((pem) => nameOf(new X509Certificate(pem))),
    namespace: first.namespace,
  };
}
