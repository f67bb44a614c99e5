import { createHash, createPublicKey } from 'node:crypto';
import { expect, test } from 'vitest';
import type { JwtIssuer, JwtRule } from '../../model/request-authentication.ts';
import { tokenChecks } from '../../settle/token-checks.ts';
import { jwtAuthentication, keyOfNobody } from './jwt.ts';

const issuer = (name: string, more: Partial<JwtRule> = {}, jwks: string | undefined = 'keys'): JwtIssuer => ({
  rule: {
    field: 'spec.jwtRules[0]',
    issuer: name,
    audiences: [],
    keys: { kind: 'none' },
    fromHeaders: [],
    fromParams: [],
    fromCookies: [],
    outputPayloadToHeader: '',
    forwardOriginalToken: false,
    outputClaimToHeaders: [],
    spaceDelimitedClaims: [],
    required: false,
    ...more,
  },
  jwks,
  source: { object: { source: 's', group: 'g', kind: 'RequestAuthentication', namespace: 'n', name: 'p' }, field: '' },
});

const config = (issuers: readonly JwtIssuer[], choosesRoute = false) =>
  jwtAuthentication(issuers, tokenChecks(issuers), choosesRoute).typedConfig!.value as unknown as {
    readonly providers: Readonly<Record<string, object>>;
    readonly rules: readonly [{ readonly match: object; readonly requires: object }];
    readonly bypassCorsPreflight: boolean;
  };

const provider = (more: Partial<JwtRule>, choosesRoute = false) =>
  config([issuer('i', more)], choosesRoute).providers['origins-0'];

const plain = {
  issuer: 'i',
  localJwks: { inlineString: 'keys' },
  payloadInMetadata: 'payload',
  normalizePayloadInMetadata: { spaceDelimitedClaims: ['permission', 'scope'] },
};

test.each<[Partial<JwtRule>, object]>([
  [{}, {}],
  [{ audiences: ['a'] }, { audiences: ['a'] }],
  [{ forwardOriginalToken: true }, { forward: true }],
  [
    {
      fromHeaders: [
        { name: 'a', prefix: 'b ' },
        { name: 'c', prefix: '' },
      ],
    },
    { fromHeaders: [{ name: 'a', valuePrefix: 'b ' }, { name: 'c' }] },
  ],
  [{ fromParams: ['p'] }, { fromParams: ['p'] }],
  [{ fromCookies: ['c'] }, { fromCookies: ['c'] }],
  [{ outputPayloadToHeader: 'x-p' }, { forwardPayloadHeader: 'x-p' }],
  [
    { outputClaimToHeaders: [{ header: 'x-s', claim: 'sub' }] },
    { claimToHeaders: [{ headerName: 'x-s', claimName: 'sub' }] },
  ],
  [
    { spaceDelimitedClaims: ['roles', 'scope', 'a'] },
    { normalizePayloadInMetadata: { spaceDelimitedClaims: ['a', 'permission', 'roles', 'scope'] } },
  ],
])('%j is %j', (rule, expected) => {
  expect(provider(rule)).toEqual({ ...plain, ...expected });
});

test('routes are chosen again where they may depend on claims', () => {
  expect(provider({}, true)).toEqual({ ...plain, clearRouteCache: true });
});

test('it is for all paths, and not for preflights', () => {
  expect(config([issuer('i')])).toMatchObject({ rules: [{ match: { prefix: '/' } }], bypassCorsPreflight: true });
});

const p = (i: number) => ({ providerName: `origins-${i}` });
const anyOf = (...requirements: object[]) => ({ requiresAny: { requirements } });
const allOf = (...requirements: object[]) => ({ requiresAll: { requirements } });
const missing = { allowMissing: {} };
const [free, required] = [issuer('a'), issuer('b', { required: true })];

test.each<[string, JwtIssuer[], object]>([
  ['one: its token, or none', [free], anyOf(p(0), missing)],
  ['one that is required: its token', [required], p(0)],
  ['two: a token of one, or none', [free, free], anyOf(p(0), p(1), allOf(anyOf(p(0), missing), anyOf(p(1), missing)))],
  [
    'two of which one is required: its token, whatever the other makes of it',
    [free, required],
    anyOf(allOf(anyOf(p(0), missing), p(1)), p(1)),
  ],
  [
    'three of which two are required: both of theirs',
    [required, free, required],
    anyOf(allOf(p(0), anyOf(p(1), missing), p(2)), allOf(p(0), p(2))),
  ],
  ['two that are required: both', [required, required], allOf(p(0), p(1))],
])('%s', (_, issuers, requires) => {
  const found = config(issuers);
  expect(found.rules[0].requires).toEqual(requires);
  expect(JSON.stringify(found)).not.toContain('allowMissingOrFailed');
});

test('where another issuer looks for tokens, too, there is nothing but tokens of either', () => {
  const inHeader = issuer('b', {
    fromHeaders: [
      { name: 'Authorization', prefix: 'JWT ' },
      { name: 'x-b', prefix: '' },
    ],
    outputClaimToHeaders: [{ header: 'x-s', claim: 'sub' }],
  });
  const { providers, rules } = config([free, inHeader]);
  const place = (i: number, j: number) => ({ providerName: `places-${i}-${j}` });
  const enough = anyOf(p(0), p(1), allOf(anyOf(p(0), missing), anyOf(p(1), missing)));
  expect(rules[0].requires).toEqual(
    allOf(anyOf(place(0, 0), place(0, 1), missing), anyOf(place(1, 0), missing), anyOf(place(2, 0), missing), enough),
  );
  const verified = (name: string, more: object) => ({
    ...{ issuer: name, localJwks: { inlineString: 'keys' }, forward: true },
    ...more,
  });
  expect(providers).toMatchObject({
    'places-0-0': verified('a', { fromHeaders: [{ name: 'authorization', valuePrefix: 'Bearer ' }] }),
    'places-0-1': verified('b', { fromHeaders: [{ name: 'Authorization', valuePrefix: 'JWT ' }] }),
    'places-1-0': verified('a', { fromParams: ['access_token'] }),
    'places-2-0': verified('b', { fromHeaders: [{ name: 'x-b' }] }),
    'origins-1': { claimToHeaders: [{ headerName: 'x-s' }] },
  });
  for (const [name, content] of Object.entries(providers))
    if (name.startsWith('places')) expect(Object.keys(content)).not.toContain('claimToHeaders');
});

test('without keys, no token is accepted: those of a key that nobody has', () => {
  expect(config([{ ...issuer('i'), jwks: undefined }]).providers['origins-0']).toMatchObject({
    localJwks: { inlineString: keyOfNobody },
  });
});

test('nobody has that key: its x is a hash, found by counting up, and it is on the curve', () => {
  const x = createHash('sha256').update('Nobody has the private key of this point (3).').digest('base64url');
  const { keys } = JSON.parse(keyOfNobody) as { readonly keys: readonly [{ readonly x: string; readonly y: string }] };
  expect(keys).toEqual([{ kty: 'EC', crv: 'P-256', alg: 'ES256', x, y: keys[0].y }]);
  // y² = x³ - 3x + b mod p; source: FIPS 186-5, SP 800-186, 3.2.1.3.
  const number = (base64url: string) => BigInt(`0x${Buffer.from(base64url, 'base64url').toString('hex')}`);
  const prime = 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n;
  const b = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn;
  const [x1, y1] = [number(x), number(keys[0].y)];
  expect((y1 * y1) % prime).toBe((x1 ** 3n - 3n * x1 + b) % prime);
  expect(() => createPublicKey({ format: 'jwk', key: keys[0] })).not.toThrow();
});
