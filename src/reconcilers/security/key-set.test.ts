import { describe, expect, test } from 'vitest';
import { readKeySet } from './key-set.ts';
import { keySet, keys } from './testing/keys.ts';

const { p256, p384, rsa, ed25519, hmac } = keys;

test.each<[string, unknown]>([
  ['P-256', p256],
  ['P-256 with its algorithm', { ...p256, alg: 'ES256', use: 'sig', kid: 'a' }],
  ['P-256 without its curve', { ...p256, crv: undefined }],
  ['P-384', { ...p384, alg: 'ES384' }],
  ['RSA', rsa],
  ['RSA-PSS', { ...rsa, alg: 'PS512' }],
  ['Ed25519', { ...ed25519, alg: 'EdDSA' }],
  ['a secret', { ...hmac, alg: 'HS256' }],
])('a set with one key of %s is taken as it is written', (_, key) => {
  const text = `\n ${keySet(key)} `;
  expect(readKeySet(text)).toMatchObject({ text, isPrivate: false });
});

/** Envoy rejects a listener for each of these sets. */
test.each<[string, unknown]>([
  ['nothing', undefined],
  ['a number', 1],
  ['an unknown type', { kty: 'x' }],
  ['RSA without modulus', { ...rsa, n: undefined }],
  ['RSA with a modulus that is not base64url', { ...rsa, n: '!!' }],
  ['RSA with a modulus of three bytes', { ...rsa, n: 'aaaa' }],
  ['RSA with an algorithm of elliptic curves', { ...rsa, alg: 'ES256' }],
  ['RSA with an algorithm that is a number', { ...rsa, alg: 5 }],
  ['P-256 with another algorithm', { ...p256, alg: 'ECDH-ES' }],
  ['P-256 with the algorithm of P-384', { ...p256, alg: 'ES384' }],
  ['a curve that is not known', { ...p256, crv: 'P-999' }],
  ['a curve that is null', { ...p256, crv: null }],
  ['a point that is not on the curve', { ...p256, x: p256.y, y: p256.x }],
  ['a point that is not base64url', { ...p256, x: '!!' }],
  ['Ed25519 without curve', { ...ed25519, crv: undefined }],
  ['a secret with the algorithm none', { ...hmac, alg: 'none' }],
  ['a secret that is not base64url', { ...hmac, k: 'a' }],
])('a key that is %s verifies nothing; beside another one it does not matter', (_, key) => {
  expect(readKeySet(keySet(key))).toEqual({ problem: 'has no key that can verify a token' });
  expect(readKeySet(keySet(key, p256))).toHaveProperty('text');
});

test.each([
  ['', 'is not JSON'],
  ['keys', 'is not JSON'],
  ['\ufeff{"keys":[]}', 'is not JSON'],
  ['null', 'is not a key set: it needs a list "keys"'],
  ['[]', 'is not a key set: it needs a list "keys"'],
  ['{"keys":{}}', 'is not a key set: it needs a list "keys"'],
  ['{"keys":[]}', 'has no key that can verify a token'],
])('%j %s', (text, problem) => {
  expect(readKeySet(text)).toEqual({ problem });
});

test('at most 256 KiB, and 200 keys', () => {
  const padded = (length: number) => keySet(p256).padEnd(length);
  expect(readKeySet(padded(256 * 1024))).toHaveProperty('text');
  expect(readKeySet(padded(256 * 1024 + 1))).toEqual({ problem: 'is longer than 256 KiB' });
  expect(readKeySet('"' + 'ü'.repeat(200 * 1024) + '"')).toEqual({ problem: 'is longer than 256 KiB' });
  const many = (count: number) => keySet(...Array.from({ length: count }, () => p256));
  expect(readKeySet(many(200))).toHaveProperty('text');
  expect(readKeySet(many(201))).toEqual({ problem: 'has more than 200 keys' });
});

test.each(['d', 'p', 'q', 'dp', 'dq', 'qi'])('the member %s makes it private, and does not get on', (member) => {
  const found = readKeySet(keySet({ ...p256, [member]: 'secret' }));
  expect(found).toMatchObject({ isPrivate: true, essence: expect.not.stringContaining('secret') });
});

describe('what Envoy reads otherwise than JavaScript is written anew', () => {
  const with_ = (more: string) => keySet(p256).replace(/\}$/, `,${more}}`);
  test.each([
    ['a name that occurs twice', with_(`"keys":${JSON.stringify([p256])}`)],
    ['a number out of range', with_('"a":1e999')],
    ['half a surrogate pair', with_('"a":"\\ud800"')],
    ['deep nesting', with_(`"a":${'['.repeat(300)}${']'.repeat(300)}`)],
  ])('%s', (_, text) => {
    const found = readKeySet(text);
    expect(found).toMatchObject({ text: expect.not.stringContaining('"a"') });
    expect(JSON.parse('text' in found ? found.text : '')).toEqual({ keys: [expect.objectContaining({ x: p256.x })] });
  });
});

test('the essence has nothing that does not verify tokens', () => {
  const found = readKeySet(keySet({ ...p256, kid: 'a', x5c: ['secret'], note: 'secret' }, 'secret'));
  expect(found).toMatchObject({ essence: keySet({ kty: 'EC', kid: 'a', crv: 'P-256', x: p256.x, y: p256.y }) });
});

test('a long list beside the keys is read like anything else', () => {
  const list = Array.from({ length: 125_000 }, () => 0);
  expect(readKeySet(JSON.stringify({ keys: [p256], list }))).toHaveProperty('text');
});

test.each([
  ['YQ', true],
  ['YQ==', true],
  ['YQ=', false],
  ['YWI=', true],
  ['YWI==', false],
  ['YWJj', true],
  ['YWJj=', false],
  ['Y', false],
])('Envoy takes the bytes %s: %s', (k, isTaken) => {
  expect('text' in readKeySet(keySet({ kty: 'oct', k }))).toBe(isTaken);
});

test.each([
  ['the exponent 3', { e: 'Aw' }, true],
  ['the exponent 17', { e: 'EQ' }, false],
  ['the exponent 65539', { e: 'AQAD' }, false],
  ['an even modulus', { n: Buffer.alloc(256, 0xf2).toString('base64url') }, false],
])('Envoy reads an RSA key with %s', (_, members, isTaken) => {
  const key = { kty: 'RSA', n: Buffer.alloc(256, 0xf3).toString('base64url'), e: 'AQAB', ...members };
  expect('text' in readKeySet(keySet(key))).toBe(isTaken);
});
