import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { JwtIssuer, JwtRule } from '../model/request-authentication.ts';
import { keptHeaders } from './headers.ts';
import type { Header } from './request.ts';
import { authenticate } from './tokens.ts';

const NOW = 1_000_000;
const secret = Buffer.from('secret');
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const keys = [{ kty: 'oct', kid: 'a', k: secret.toString('base64url') }, ec.publicKey.export({ format: 'jwk' })];

const issuer = (name: string, rule: Partial<JwtRule> = {}): JwtIssuer => ({
  rule: {
    field: '',
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
    ...rule,
  },
  jwks: JSON.stringify({ keys }),
  source: { object: { source: '', group: '', kind: '', namespace: '', name }, field: '' },
});

const part = (json: object): string => Buffer.from(JSON.stringify(json)).toString('base64url');
const byHmac = (text: string): Buffer => createHmac('sha256', secret).update(text).digest();
const byEc = (text: string): Buffer =>
  sign('sha256', Buffer.from(text), { key: ec.privateKey, dsaEncoding: 'ieee-p1363' });

function token(claims: object, header: object = { alg: 'HS256' }, signed = byHmac): string {
  const text = `${part(header)}.${part({ iss: 'i', ...claims })}`;
  return `${text}.${signed(text).toString('base64url')}`;
}

function ask(issuers: readonly JwtIssuer[], headers: readonly Header[], path = '/') {
  return authenticate(issuers, { method: 'GET', path, host: 'h', headers: keptHeaders(headers) }, NOW);
}

const bearer = (text: string): Header => ['Authorization', `Bearer ${text}`];
const status = (claims: object, rule?: Partial<JwtRule>): number | undefined =>
  ask([issuer('i', rule)], [bearer(token(claims))]).refusal?.status;

describe('a token', () => {
  test('may be off by a minute', () => {
    expect([status({ exp: NOW - 60 }), status({ exp: NOW - 61 })]).toEqual([undefined, 401]);
    expect([status({ nbf: NOW + 60 }), status({ nbf: NOW + 61 })]).toEqual([undefined, 401]);
  });

  test('for others is refused with another status than one that is not valid', () => {
    expect(status({ aud: 'https://shop/' }, { audiences: ['shop'] })).toBeUndefined();
    expect(status({ aud: ['x', 'shop'] }, { audiences: ['http://shop'] })).toBeUndefined();
    expect(status({ aud: 'x' }, { audiences: ['shop'] })).toBe(403);
    expect(status({}, { audiences: ['shop'] })).toBe(403);
    expect(status({ iss: 'j' })).toBe(401);
  });

  test('is verified as its key needs, whatever it says of itself', () => {
    const refusal = (text: string) => ask([issuer('i')], [bearer(text)]).refusal;
    expect(refusal(token({}, { alg: 'ES256' }, byEc))).toBeUndefined();
    expect(refusal(token({}, { alg: 'HS256' }, byEc))).toBeUndefined();
    expect(refusal(token({}, { alg: 'HS256', kid: 'b' }))).toMatchObject({ status: 401 });
    expect(refusal(token({}, { alg: 'none' }))).toMatchObject({ status: 401 });
  });

  test('that comes twice in a header is one that nobody can read', () => {
    const good = bearer(token({}));
    expect(ask([issuer('i')], [good, good]).refusal).toMatchObject({ status: 401 });
  });

  test('leaves its claims, and goes unless it is to stay', () => {
    const rule = { outputClaimToHeaders: [{ header: 'x-team', claim: 'nested.team' }] };
    const [found, kept] = [rule, { ...rule, forwardOriginalToken: true }].map((each) =>
      ask([issuer('i', each)], [bearer(token({ scope: 'a b', nested: { team: 't' } })), ['x-team', 'forged']]),
    );
    expect(found!.claims).toMatchObject({ iss: 'i', scope: ['a', 'b'] });
    expect(found!.headers).toEqual([['x-team', 't']]);
    expect(kept!.headers.map(([name]) => name)).toEqual(['authorization', 'x-team']);
  });

  test('is found where the rule says, and nowhere else', () => {
    const rule = { fromHeaders: [{ name: 'X-Jwt', prefix: 'Token ' }], fromParams: ['t'], fromCookies: ['c'] };
    const claims = (headers: readonly Header[], path?: string) => ask([issuer('i', rule)], headers, path).claims;
    expect(claims([['x-jwt', `Token ${token({})}`]])).toBeDefined();
    expect(claims([['cookie', `a=b; c=${token({})}`]])).toBeDefined();
    expect(claims([], `/?t=${token({})}`)).toBeDefined();
    expect(claims([bearer(token({}))], `/?access_token=${token({})}`)).toBeUndefined();
  });
});

test('of several issuers, one is enough; without a token, none is needed unless it is required', () => {
  const both = [issuer('i'), issuer('j')];
  expect(ask(both, [bearer(token({ iss: 'j' }))]).refusal).toBeUndefined();
  expect(ask(both, []).refusal).toBeUndefined();
  expect(ask(both, [bearer(token({ iss: 'k' }))]).refusal).toMatchObject({ status: 401 });
  expect(ask([issuer('i', { required: true })], []).refusal).toMatchObject({ status: 401 });
});
