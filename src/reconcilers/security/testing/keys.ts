import { generateKeyPairSync } from 'node:crypto';

const curve = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve });
const p256 = curve('P-256');

/** Keys as in a key set. */
export const keys = {
  p256: p256.publicKey.export({ format: 'jwk' }),
  private: p256.privateKey.export({ format: 'jwk' }),
  p384: curve('P-384').publicKey.export({ format: 'jwk' }),
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' }),
  ed25519: generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }),
  hmac: { kty: 'oct', k: 'c2VjcmV0' },
};

export const keySet = (...some: readonly unknown[]): string => JSON.stringify({ keys: some });
