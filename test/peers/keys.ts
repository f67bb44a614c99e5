import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

/** A certificate with its key, both PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

export interface Authority {
  readonly certificate: string;
  /** For these names, e.g. `10.96.0.1` or `localhost`. */
  server(names: readonly string[]): Promise<KeyPair>;
  /** For a Kubernetes user and its groups. */
  client(user: string, ...groups: string[]): Promise<KeyPair>;
  /** For a workload of the mesh: `spiffe://cluster.local/ns/shop/sa/default`. */
  workload(id: string): Promise<KeyPair>;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY = 24 * 60 * 60 * 1000;

/** A certificate authority that is valid for two days and never written to disk. */
export async function createAuthority(): Promise<Authority> {
  const keys = await createKeys();
  const name = 'CN=fairlead-test-ca';
  const validity = { notBefore: new Date(Date.now() - DAY), notAfter: new Date(Date.now() + DAY) };
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    name,
    keys,
    ...validity,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
    ],
  });
  const issue = async (subject: x509.JsonName, extensions: x509.Extension[]): Promise<KeyPair> => {
    const { publicKey, privateKey } = await createKeys();
    const certificate = await x509.X509CertificateGenerator.create({
      issuer: name,
      subject: new x509.Name(subject).toString(),
      publicKey,
      signingKey: keys.privateKey,
      ...validity,
      signingAlgorithm: ALGORITHM,
      extensions,
    });
    return { certificate: certificate.toString('pem'), key: await privateKeyPem(privateKey) };
  };
  return {
    certificate: root.toString('pem'),
    server: (names) =>
      issue(
        [{ CN: ['server'] }],
        [
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
          new x509.SubjectAlternativeNameExtension(
            names.map((value) => ({ type: /^[\d.]+$/.test(value) ? ('ip' as const) : ('dns' as const), value })),
          ),
        ],
      ),
    client: (user, ...groups) =>
      issue(
        [...groups.map((group) => ({ O: [group] })), { CN: [user] }],
        [new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth])],
      ),
    workload: (id) =>
      issue(
        [{ CN: ['workload'] }],
        [
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
          new x509.SubjectAlternativeNameExtension([{ type: 'url', value: id }]),
        ],
      ),
  };
}

/** Key pair for signing and verifying ServiceAccount tokens. */
export async function createSigningKey(): Promise<{ readonly publicKey: string; readonly privateKey: string }> {
  const keys = await createKeys();
  const spki = await webcrypto.subtle.exportKey('spki', keys.publicKey);
  return {
    publicKey: x509.PemConverter.encode(spki, 'PUBLIC KEY'),
    privateKey: await privateKeyPem(keys.privateKey),
  };
}

function createKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

async function privateKeyPem(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}
