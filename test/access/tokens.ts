import { type KeyObject, createHmac, generateKeyPairSync, sign } from 'node:crypto';
import fc from 'fast-check';

/** Issuers, each with one key of another kind. */
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ed = generateKeyPairSync('ed25519');
const secret = Buffer.from('secret of the issuer');
const jwk = (key: KeyObject, more: object) => ({ ...key.export({ format: 'jwk' }), ...more });

interface Issuer {
  readonly issuer: string;
  readonly kid: string;
  readonly key: object;
  readonly alg: string;
  readonly sign: (text: Buffer) => Buffer;
}

const issuers: readonly Issuer[] = [
  {
    issuer: 'https://a.example',
    kid: 'a',
    key: jwk(rsa.publicKey, { kid: 'a', alg: 'RS256' }),
    alg: 'RS256',
    sign: (text) => sign('sha256', text, rsa.privateKey),
  },
  {
    issuer: 'b',
    kid: 'b',
    key: jwk(ec.publicKey, { kid: 'b' }),
    alg: 'ES256',
    sign: (text) => sign('sha256', text, { key: ec.privateKey, dsaEncoding: 'ieee-p1363' }),
  },
  {
    issuer: 'c/d',
    kid: 'c',
    key: { kty: 'oct', kid: 'c', alg: 'HS256', k: secret.toString('base64url') },
    alg: 'HS256',
    sign: (text) => createHmac('sha256', secret).update(text).digest(),
  },
  {
    issuer: 'e',
    kid: '',
    key: jwk(ed.publicKey, {}),
    alg: 'EdDSA',
    sign: (text) => sign(null, text, ed.privateKey),
  },
];

export const names = issuers.map(({ issuer }) => issuer);

const oneOf = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values);
const rarely = <T>(arbitrary: fc.Arbitrary<T>, freq = 4) => fc.option(arbitrary, { nil: undefined, freq });
const list = <T>(arbitrary: fc.Arbitrary<T>, maxLength = 2) => fc.array(arbitrary, { minLength: 1, maxLength });
const defined = (object: object): object => JSON.parse(JSON.stringify(object)) as object;

/** A rule of a RequestAuthentication. */
export const jwtRule = fc
  .record({
    issuer: oneOf(...issuers),
    keys: oneOf('own', 'own', 'own', 'own', 'none', 'all'),
    audiences: rarely(list(oneOf('shop', 'https://shop.example/', 'shop.example'))),
    fromHeaders: rarely(
      list(oneOf({ name: 'x-jwt' }, { name: 'X-JWT', prefix: 'Token ' }, { name: 'authorization', prefix: 'Bearer ' })),
    ),
    fromParams: rarely(list(oneOf('token', 'access_token'))),
    fromCookies: rarely(list(oneOf('session', 'other')), 6),
    forwardOriginalToken: rarely(fc.boolean(), 1),
    outputClaimToHeaders: rarely(
      list(oneOf({ header: 'x-role', claim: 'role' }, { header: 'x-team', claim: 'nested.team' })),
    ),
    outputPayloadToHeader: rarely(oneOf('x-payload'), 8),
    spaceDelimitedClaims: rarely(list(oneOf('groups', 'role'))),
    presence: rarely(oneOf('REQUIRED', 'OPTIONAL', 'PRESENCE_UNSPECIFIED'), 3),
  })
  .map(({ issuer, keys, ...rule }) => {
    const set = keys === 'own' ? [issuer.key] : issuers.map(({ key }) => key);
    return defined({
      ...rule,
      issuer: issuer.issuer,
      ...(keys === 'none' ? {} : { jwks: JSON.stringify({ keys: set }) }),
    });
  });

const now = Math.floor(Date.now() / 1000);
const part = (json: unknown): string => Buffer.from(JSON.stringify(json)).toString('base64url');

/** Far enough from Envoy's limit, which is 60 seconds. */
const claims = fc.record(
  {
    sub: oneOf<unknown>(
      'alice',
      'bob',
      'alice',
      'al',
      '',
      7,
      'team/alice',
      'e',
      'x/team/alice',
      'a\nb',
      'd/alice',
      '*',
    ),
    aud: oneOf<unknown>('shop', ['shop', 'other'], 'https://shop.example', 'http://shop.example/', 'other', []),
    azp: oneOf<unknown>('app', 'web'),
    exp: oneOf<unknown>(now + 86_400, now + 86_400, now + 86_400, now - 20, now - 3_600, 'soon', 1.5),
    nbf: oneOf<unknown>(now - 10, now - 10, now + 20, now + 86_400, -1),
    scope: oneOf<unknown>('read write', 'read', ['read', 'write'], ''),
    groups: oneOf<unknown>('admins users', ['admins'], ['users', 3], { admins: true }),
    role: oneOf<unknown>(
      'admin',
      'user',
      true,
      false,
      5,
      -0.5,
      55,
      1e21,
      '5',
      'a\nb',
      '',
      null,
      [],
      [5],
      [true],
      { a: 1 },
      [[5]],
    ),
    nested: oneOf<unknown>({ team: 'a' }, { team: ['a', 'b'] }, 'a'),
  },
  { requiredKeys: [] },
);

/** A token as it may arrive. */
export const token = fc
  .record({
    issuer: oneOf(...issuers),
    named: rarely(oneOf<unknown>('stranger', ...names, 3), 12),
    claims,
    kid: oneOf('own', 'own', 'none', 'other'),
    fault: oneOf('', '', '', '', '', '', 'signature', 'alg', 'none', 'short', 'text', 'payload'),
  })
  .map(({ issuer, named, claims: own, kid, fault }) => {
    const header = {
      alg: fault === 'alg' ? 'HS256' : fault === 'none' ? 'none' : issuer.alg,
      ...(kid === 'none' ? {} : { kid: kid === 'own' ? issuer.kid : 'another' }),
    };
    const body = fault === 'payload' ? part([own]) : part({ iss: named ?? issuer.issuer, ...own });
    const signed = `${part(header)}.${body}`;
    const signature = issuer.sign(Buffer.from(signed));
    if (fault === 'signature') signature[0]! ^= 1;
    if (fault === 'text') return 'nonsense';
    return fault === 'short' ? signed : `${signed}.${signature.toString('base64url')}`;
  });
