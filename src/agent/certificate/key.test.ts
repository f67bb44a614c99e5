import { createPublicKey } from 'node:crypto';
import { expect, test } from 'vitest';
import { readRequest } from '../../identity/certificate-request.ts';
import { OpenSsl } from '../../identity/testing/openssl.ts';
import { newKey } from './key.ts';

const IDENTITY = 'spiffe://cluster.local/ns/shop/sa/reviews';

test('a CSR is what OpenSSL and the authority expect', async () => {
  const { key, csr } = await newKey(IDENTITY);
  const openssl = new OpenSsl();
  openssl.write('request.pem', csr);
  const text = openssl.run('req -in request.pem -noout -text -verify');
  expect(text).toContain(`URI:${IDENTITY}`);
  expect(text).toContain('X509v3 Subject Alternative Name: critical');
  const read = await readRequest(csr, IDENTITY);
  expect(read).toEqual({ request: { publicKey: createPublicKey(key).export({ type: 'spki', format: 'der' }) } });
});

test('an identity of any length fits', async () => {
  const identity = `spiffe://${'d'.repeat(200)}/ns/${'n'.repeat(63)}/sa/${'a'.repeat(253)}`;
  const { csr } = await newKey(identity);
  expect(await readRequest(csr, identity)).toHaveProperty('request');
  expect(await readRequest(csr, IDENTITY)).toHaveProperty('problem');
});

test('keys are never used twice', async () => {
  const [a, b] = [await newKey(IDENTITY), await newKey(IDENTITY)];
  expect(a.key).not.toBe(b.key);
});
