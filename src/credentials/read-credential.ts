import { type KeyObject, X509Certificate, createPrivateKey } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { type PemBlock, readPem, writePem } from '../identity/pem.ts';
import type { KeyPair, TrustedRoots } from '../model/credential.ts';

/** The entries of a Secret or ConfigMap, decoded. */
export type Entries = Readonly<Record<string, Buffer>>;

/** What an entry contains, or a clause about what is wrong. It names entries, and never shows any of them. */
export type Read<Content> =
  { readonly content: Content; readonly expires: Date } | { readonly problem: string; readonly isAbsent?: true };

export interface ReadCredential {
  readonly pair: Read<KeyPair>;
  readonly roots: Read<TrustedRoots>;
}

/** Layouts of Istio and of Kubernetes; the first one that is there counts. */
const pairLayouts = [
  ['cert', 'key'],
  ['tls.crt', 'tls.key'],
] as const;
const rootLayouts = [
  ['cacert', 'crl'],
  ['ca.crt', 'ca.crl'],
] as const;

/** All entries that are read. */
export const credentialEntries: readonly string[] = [...pairLayouts, ...rootLayouts].flat();

/** A bundle of all public authorities has 150. */
const mostCertificates = 1_000;

/**
 * Reads the entries of a Secret. An empty entry is an absent one. Whatever Envoy would refuse is found here: it refuses
 * good secrets together with a bad one. What is given back is written anew from what was understood.
 */
export function readCredential(entries: Entries): ReadCredential {
  return { pair: readPair(entries), roots: readRoots(entries) };
}

function readPair(entries: Entries): Read<KeyPair> {
  const layout = pairLayouts.find(([certificate, key]) => has(entries, certificate) && has(entries, key));
  if (layout === undefined) return { problem: 'has neither tls.crt with tls.key nor cert with key', isAbsent: true };
  const [certificateEntry, keyEntry] = layout;
  const chain = certificatesOf(entries, certificateEntry);
  if ('problem' in chain) return chain;
  const read = privateKeyOf(entries, keyEntry);
  if ('problem' in read) return read;
  const [leaf] = chain.certificates;
  if (!leaf!.checkPrivateKey(read.key))
    return { problem: `has a ${keyEntry} that is not the key of the first certificate in ${certificateEntry}` };
  return { content: { certificates: chain.pem, key: read.pem }, expires: leaf!.validToDate };
}

function readRoots(entries: Entries): Read<TrustedRoots> {
  const layout = rootLayouts.find(([certificates]) => has(entries, certificates));
  if (layout === undefined) return { problem: 'has neither ca.crt nor cacert', isAbsent: true };
  const [certificateEntry, listEntry] = layout;
  const roots = certificatesOf(entries, certificateEntry);
  if ('problem' in roots) return roots;
  const lists = has(entries, listEntry) ? revocationListsOf(entries, listEntry) : { pem: '' };
  if ('problem' in lists) return lists;
  const expires = new Date(Math.max(...roots.certificates.map(({ validToDate }) => validToDate.getTime())));
  return { content: { certificates: roots.pem, revoked: lists.pem }, expires };
}

function has(entries: Entries, entry: string): boolean {
  return Object.hasOwn(entries, entry) && entries[entry]!.length > 0;
}

function blocksOf(entries: Entries, entry: string, isWanted: (label: string) => boolean): readonly PemBlock[] {
  return readPem(entries[entry]!.toString('latin1'))?.filter(({ label }) => isWanted(label)) ?? [];
}

function certificatesOf(
  entries: Entries,
  entry: string,
): { readonly certificates: readonly X509Certificate[]; readonly pem: string } | { readonly problem: string } {
  const blocks = blocksOf(entries, entry, (label) => label === 'CERTIFICATE');
  if (blocks.length === 0) return { problem: `has no certificate in PEM in ${entry}` };
  if (blocks.length > mostCertificates)
    return { problem: `has ${blocks.length} certificates in ${entry}; at most ${mostCertificates} are read` };
  const certificates: X509Certificate[] = [];
  for (const [index, { der }] of blocks.entries()) {
    try {
      const certificate = new X509Certificate(der);
      // Not only the outside is read.
      void certificate.publicKey;
      certificates.push(certificate);
    } catch {
      const which = blocks.length === 1 ? 'a certificate' : `certificate ${index + 1}`;
      return { problem: `has ${which} in ${entry} that is not valid X.509` };
    }
  }
  return { certificates, pem: blocks.map(({ label, der }) => writePem(label, der)).join('') };
}

function privateKeyOf(
  entries: Entries,
  entry: string,
): { readonly key: KeyObject; readonly pem: string } | { readonly problem: string } {
  if (entries[entry]!.includes('ENCRYPTED'))
    return { problem: `has an encrypted ${entry}; store the key without a passphrase` };
  const [block, ...others] = blocksOf(entries, entry, (label) => /(^|RSA |EC )PRIVATE KEY$/.test(label));
  if (block === undefined || others.length > 0) return { problem: `must have one private key in PEM in ${entry}` };
  const pem = writePem(block.label, block.der);
  try {
    const key = createPrivateKey(pem);
    if (isForEnvoy(key)) return { key, pem };
  } catch {
    // The parser's message is not shown: it is about the content.
    return { problem: `has a ${entry} that is not a valid private key` };
  }
  return { problem: `has a ${entry} that is not RSA with at least 2048 bits, P-256, P-384, P-521 or Ed25519` };
}

/** Tried with Envoy 1.40. */
function isForEnvoy({ asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject): boolean {
  if (type === 'rsa') return (details.modulusLength ?? 0) >= 2048;
  if (type === 'ec') return ['prime256v1', 'secp384r1', 'secp521r1'].includes(details.namedCurve ?? '');
  return type === 'ed25519';
}

function revocationListsOf(entries: Entries, entry: string): { readonly pem: string } | { readonly problem: string } {
  const blocks = blocksOf(entries, entry, (label) => label === 'X509 CRL');
  if (blocks.length === 0) return { problem: `has no certificate revocation list in PEM in ${entry}` };
  const lists = blocks.map(({ label, der }) => writePem(label, der));
  try {
    // The only parser of Node.js for them. Lists may be long.
    createSecureContext({ ca: [], crl: lists });
  } catch {
    return { problem: `has a certificate revocation list in ${entry} that is not valid X.509` };
  }
  return { pem: lists.join('') };
}
