import { type KeyObject, createPublicKey, hash } from 'node:crypto';
import { AlgorithmIdentifier } from '@peculiar/asn1-x509';

/** How a key signs. */
export interface SignatureAlgorithm {
  readonly keyType: 'rsa' | 'ec';
  /** As node:crypto has it. */
  readonly hash: 'sha256' | 'sha384' | 'sha512';
}

/** By OID: RFC 4055, 5 and RFC 5758, 3.2. RSA is PKCS#1 v1.5. SHA-1 is missing because it is broken. */
export const SIGNATURE_ALGORITHMS: ReadonlyMap<string, SignatureAlgorithm> = new Map<string, SignatureAlgorithm>([
  ['1.2.840.113549.1.1.11', { keyType: 'rsa', hash: 'sha256' }],
  ['1.2.840.113549.1.1.12', { keyType: 'rsa', hash: 'sha384' }],
  ['1.2.840.113549.1.1.13', { keyType: 'rsa', hash: 'sha512' }],
  ['1.2.840.10045.4.3.2', { keyType: 'ec', hash: 'sha256' }],
  ['1.2.840.10045.4.3.3', { keyType: 'ec', hash: 'sha384' }],
  ['1.2.840.10045.4.3.4', { keyType: 'ec', hash: 'sha512' }],
]);

export interface SigningKey {
  readonly key: KeyObject;
  readonly hash: SignatureAlgorithm['hash'];
  readonly algorithm: AlgorithmIdentifier;
}

/** A curve is used with the hash of its strength. */
const HASHES: Readonly<Record<string, SignatureAlgorithm['hash']>> = {
  prime256v1: 'sha256',
  secp384r1: 'sha384',
  secp521r1: 'sha512',
};

/** RSA with at least 2048 bits, or on a curve that Envoy can verify; it does not verify Ed25519 by default. */
export function canSign({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): boolean {
  const { modulusLength = 0, namedCurve = '' } = asymmetricKeyDetails;
  return asymmetricKeyType === 'rsa' ? modulusLength >= 2048 : HASHES[namedCurve] !== undefined;
}

/** Of a key that can sign. */
export function signingKeyOf(key: KeyObject): SigningKey {
  const { asymmetricKeyType: keyType, asymmetricKeyDetails = {} } = key;
  const digest = HASHES[asymmetricKeyDetails.namedCurve ?? ''] ?? 'sha256';
  const [oid] = [...SIGNATURE_ALGORITHMS].find(([, of]) => of.keyType === keyType && of.hash === digest)!;
  const parameters = keyType === 'rsa' ? { parameters: null } : {};
  return { key, hash: digest, algorithm: new AlgorithmIdentifier({ algorithm: oid, ...parameters }) };
}

/** SubjectPublicKeyInfo, DER. */
export function publicKeyOf(key: KeyObject): Buffer<ArrayBuffer> {
  return Buffer.from((key.type === 'public' ? key : createPublicKey(key)).export({ type: 'spki', format: 'der' }));
}

/** Any value that is unique to the key will do: RFC 5280, 4.2.1.2. */
export function keyIdentifier(publicKey: Uint8Array): Buffer {
  return hash('sha256', publicKey, 'buffer').subarray(0, 20);
}
