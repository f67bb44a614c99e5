import { type KeyObject, X509Certificate, createPrivateKey, sign, verify } from 'node:crypto';
import { readIssuer } from './certificate.ts';
import { type Listed, findChain, nameOf } from './chain.ts';
import { readPem, writePem } from './pem.ts';
import { canSign } from './signing-key.ts';

/** What certificates are signed with: checked, see `readMaterial`. Certificates are PEM, one in each text. */
export interface SigningMaterial {
  readonly certificate: string;
  readonly key: KeyObject;
  /** What peers need between leaf and root: begins with `certificate`, unless that is itself a root. */
  readonly intermediates: readonly string[];
  readonly roots: readonly string[];
  /** The root that its chain ends in. */
  readonly root: string;
  /** When the first certificate of the chain expires, the root included. */
  readonly expires: Date;
  /** When the first certificate of the chain has only 20 % of its life left. */
  readonly ageingFrom: Date;
}

export type Read<T> = T | { readonly problem: string };

/** Secrets `istio-ca-secret` and `cacerts`; and Secret `cacerts` as cert-manager writes it. */
const ISTIO = { certificate: 'ca-cert.pem', key: 'ca-key.pem', chain: 'cert-chain.pem', roots: 'root-cert.pem' };
const TLS = { certificate: 'tls.crt', key: 'tls.key', chain: 'tls.crt', roots: 'ca.crt' };

/** Of the clocks of two machines. */
const skew = 5 * 60 * 1000;

/**
 * The entries of Istio's Secrets for CAs: `ca-cert.pem`, `ca-key.pem`, `root-cert.pem`, `cert-chain.pem`; or, if
 * `tls.crt` exists, `tls.crt`, `tls.key`, `ca.crt`. An empty entry is an absent one. Without roots, a self-signed
 * certificate is its own root. Only the certificates between leaf and root must be valid now: other roots may be old
 * or new ones. A problem is one sentence that names the entry, and never contains any of it.
 */
export function readMaterial(
  entries: Readonly<Record<string, string>>,
  now: Date,
): Read<{ readonly material: SigningMaterial }> {
  const layout = entries[TLS.certificate] ? TLS : ISTIO;
  const files: { [file in keyof typeof layout]?: readonly Listed[] } = {};
  for (const file of ['certificate', 'chain', 'roots'] as const) {
    const read = certificatesOf(layout[file], entries[layout[file]]);
    if ('problem' in read) return read;
    files[file] = read;
  }
  const { certificate: [signing, ...rest] = [], chain: more = [], roots: others = [] } = files;
  if (signing === undefined) return { problem: `${layout.certificate} is missing` };

  const read = privateKeyOf(layout.key, entries[layout.key]);
  if ('problem' in read) return read;
  const { key } = read;
  if (!isKeyOf(signing.certificate, key))
    return { problem: `${layout.key} is not the key of the certificate in ${layout.certificate}` };

  const roots =
    others.length > 0 ? others : [signing].filter(({ certificate }) => certificate.checkIssued(certificate));
  if (roots.length === 0) return { problem: `${layout.roots} is missing` };
  const chain = findChain(signing, [...rest, ...more], roots);
  if (chain === undefined)
    return {
      problem: `${layout.certificate} is not issued by a root in ${layout.roots}; add the certificates between them to ${layout.chain}`,
    };
  for (const [below, listed] of chain.entries()) {
    const problem = problemOfIssuer(listed, below, now);
    if (problem !== undefined) return { problem };
  }

  const pems = chain.map(pemOf);
  return {
    material: {
      certificate: pemOf(signing),
      key,
      intermediates: pems.slice(0, -1),
      roots: roots.map(pemOf),
      root: pems.at(-1)!,
      expires: momentOf(chain, 1),
      ageingFrom: momentOf(chain, 0.8),
    },
  };
}

/** A certificate of the chain is in the last 20 % of its life. */
export function isAgeing({ ageingFrom }: SigningMaterial, now: Date): boolean {
  return now >= ageingFrom;
}

function certificatesOf(entry: string, text: string | undefined): Read<readonly Listed[]> {
  if (!text) return [];
  const blocks = readPem(text)?.filter(({ label }) => label === 'CERTIFICATE') ?? [];
  if (blocks.length === 0) return { problem: `${entry} contains no certificate in PEM` };
  const listed: Listed[] = [];
  for (const [index, { der }] of blocks.entries()) {
    const where = blocks.length === 1 ? entry : `${entry}, certificate ${index + 1}`;
    try {
      const certificate = new X509Certificate(der);
      // Not only the outside is read.
      void certificate.publicKey;
      listed.push({ certificate, where });
    } catch {
      return { problem: `${where}: not a valid X.509 certificate` };
    }
  }
  return listed;
}

function privateKeyOf(entry: string, text: string | undefined): Read<{ readonly key: KeyObject }> {
  if (!text) return { problem: `${entry} is missing` };
  if (text.includes('ENCRYPTED')) return { problem: `${entry} is encrypted; store the key without a passphrase` };
  const [block, ...others] = readPem(text)?.filter(({ label }) => /(^|RSA |EC )PRIVATE KEY$/.test(label)) ?? [];
  if (block === undefined || others.length > 0) return { problem: `${entry} must contain one private key in PEM` };
  try {
    const key = createPrivateKey(writePem(block.label, block.der));
    return canSign(key) ? { key } : { problem: `${entry} must be RSA with at least 2048 bits, P-256, P-384 or P-521` };
  } catch {
    // The parser's message is not shown: it is about the content.
    return { problem: `${entry} is not a valid private key` };
  }
}

/** Tried out: the public part of a damaged private key may well be that of the certificate. */
function isKeyOf({ publicKey }: X509Certificate, key: KeyObject): boolean {
  const probe = Buffer.from('probe');
  try {
    return verify('sha256', probe, publicKey, sign('sha256', probe, key));
  } catch {
    return false;
  }
}

/** `below`: number of CA certificates between this one and a leaf. */
function problemOfIssuer({ certificate, where }: Listed, below: number, now: Date): string | undefined {
  const subject = `${where} (${nameOf(certificate)})`;
  if (!certificate.ca) return `${subject} is not a CA certificate with the key usage for signing certificates`;
  if (certificate.validFromDate.getTime() > now.getTime() + skew)
    return `${subject} is not valid before ${certificate.validFromDate.toISOString()}`;
  if (certificate.validToDate.getTime() < now.getTime() - skew)
    return `${subject} expired at ${certificate.validToDate.toISOString()}`;
  if (readIssuer(certificate.raw).pathLength < below)
    return `${subject} allows fewer than the ${below} CA certificates below it`;
  return undefined;
}

/** When the first certificate has used up this part of its life. */
function momentOf(chain: readonly Listed[], part: number): Date {
  const moments = chain.map(({ certificate: { validFromDate, validToDate } }) => {
    const [from, to] = [validFromDate.getTime(), validToDate.getTime()];
    return from + (to - from) * part;
  });
  return new Date(Math.min(...moments));
}

function pemOf({ certificate }: Listed): string {
  return writePem('CERTIFICATE', certificate.raw);
}
