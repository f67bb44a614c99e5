import { type KeyObject, X509Certificate, generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import {
  AttributeTypeAndValue,
  AttributeValue,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
} from '@peculiar/asn1-x509';
import { basicConstraints, keyUsage, readIssuer, subjectKeyIdentifier, writeCertificate } from './certificate.ts';
import { keyIdentifier, publicKeyOf, signingKeyOf } from './signing-key.ts';
import type { SigningMaterial } from './signing-material.ts';

/** The entries of Secret `istio-ca-secret`; the last two are empty, as Istio leaves them. */
export type SelfSignedEntries = Readonly<
  Record<'ca-cert.pem' | 'ca-key.pem' | 'root-cert.pem' | 'cert-chain.pem' | 'key.pem', string>
>;

/** CITADEL_SELF_SIGNED_CA_CERT_TTL. */
const lifetime = 10 * 365 * 24 * 60 * 60 * 1000;

const ORGANIZATION = '2.5.4.10';

/** A new RSA key, and a root `O=<trustDomain>` of 10 years for it. */
export async function selfSigned(trustDomain: string, now: Date): Promise<SelfSignedEntries> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
  const value = new AttributeValue({ utf8String: trustDomain });
  const organization = new AttributeTypeAndValue({ type: ORGANIZATION, value });
  return entriesOf(privateKey, new Name([new RelativeDistinguishedName([organization])]), undefined, now);
}

/**
 * A new root of 10 years with the key, the subject and the key identifier of a self-signed one: what either of them
 * signs can be verified with both.
 */
export function renewed({ certificate, key }: SigningMaterial, now: Date): Promise<SelfSignedEntries> {
  const old = readIssuer(new X509Certificate(certificate).raw);
  return entriesOf(key, old.subject, old.keyIdentifier, now);
}

async function entriesOf(
  key: KeyObject,
  subject: Name,
  identifier: Buffer | undefined,
  now: Date,
): Promise<SelfSignedEntries> {
  const publicKey = publicKeyOf(key);
  const certificate = await writeCertificate(
    {
      issuer: subject,
      subject,
      publicKey,
      now,
      notAfter: new Date(now.getTime() + lifetime),
      extensions: [
        keyUsage(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign),
        basicConstraints(true),
        subjectKeyIdentifier(identifier ?? keyIdentifier(publicKey)),
      ],
    },
    signingKeyOf(key),
  );
  return {
    'ca-cert.pem': certificate,
    // `RSA PRIVATE KEY` or `EC PRIVATE KEY`, as Istio writes it.
    'ca-key.pem': String(key.export({ type: key.asymmetricKeyType === 'rsa' ? 'pkcs1' : 'sec1', format: 'pem' })),
    'root-cert.pem': certificate,
    'cert-chain.pem': '',
    'key.pem': '',
  };
}
