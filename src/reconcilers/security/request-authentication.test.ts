import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RequestAuthentication } from '../../api/gen/request-authentication.gen.ts';
import { reconcileRequestAuthentication } from './request-authentication.ts';
import { anyJson } from './testing/any-json.ts';
import { keySet, keys } from './testing/keys.ts';
import { runs } from '../../testing/runs.ts';

function reconcile(spec: unknown) {
  const metadata = { name: 'r', namespace: 'shop' };
  const object = { apiVersion: 'security.istio.io/v1', kind: 'RequestAuthentication', metadata, spec };
  return reconcileRequestAuthentication(object as RequestAuthentication, 'test');
}

const issuer = 'https://i.example.com';
const jwks = keySet(keys.p256);
const jwksUri = 'https://k.example.com/keys';
const rule = (more: object) => ({ jwtRules: [{ issuer, jwks, ...more }] });
const first = (spec: unknown) => reconcile(spec).model.rules[0]!;

test('all parts of a rule', () => {
  const { model, problems } = reconcile({
    selector: { matchLabels: { app: 'a' } },
    jwtRules: [
      {
        issuer,
        audiences: ['a', 'b'],
        jwks,
        fromHeaders: [{ name: 'x-a', prefix: 'Bearer ' }, { name: 'x-b' }],
        fromParams: ['p'],
        fromCookies: ['c'],
        outputPayloadToHeader: 'x-payload',
        forwardOriginalToken: true,
        outputClaimToHeaders: [{ header: 'x-sub', claim: 'sub' }],
        spaceDelimitedClaims: ['roles'],
        presence: 'REQUIRED',
        timeout: '2s',
      },
    ],
  });
  expect(problems).toEqual([]);
  expect(model).toMatchObject({
    key: 'test/shop/r',
    target: { kind: 'labels', labels: { app: 'a' } },
    rules: [
      {
        issuer,
        audiences: ['a', 'b'],
        keys: { kind: 'inline', jwks },
        fromHeaders: [
          { name: 'x-a', prefix: 'Bearer ' },
          { name: 'x-b', prefix: '' },
        ],
        fromParams: ['p'],
        fromCookies: ['c'],
        outputPayloadToHeader: 'x-payload',
        forwardOriginalToken: true,
        outputClaimToHeaders: [{ header: 'x-sub', claim: 'sub' }],
        spaceDelimitedClaims: ['roles'],
        required: true,
      },
    ],
  });
});

test.each<[string, object, object]>([
  ['jwksUri', { issuer, jwksUri }, { issuer, uri: jwksUri, timeout: 5_000 }],
  ['the older spelling', { issuer, jwks_uri: jwksUri }, { issuer, uri: jwksUri, timeout: 5_000 }],
  ['no issuer', { jwksUri, timeout: '1ms' }, { issuer: '', uri: jwksUri, timeout: 1 }],
  ['discovery', { issuer, timeout: '2h' }, { issuer, uri: '', timeout: 60_000 }],
])('keys are fetched: %s', (_, content, source) => {
  const { model, problems } = reconcile({ jwtRules: [content] });
  expect(problems).toEqual([]);
  expect(model.rules).toMatchObject([{ keys: { kind: 'fetched', source } }]);
});

describe('no token is accepted', () => {
  test.each<[string, object, string, string]>([
    ['neither issuer nor keys', {}, 'spec.jwtRules[0]', 'Invalid'],
    ['inline keys without an issuer: any would do', { jwks }, 'spec.jwtRules[0].issuer', 'Invalid'],
    ['an issuer that is not a URL', { issuer: 'me' }, 'spec.jwtRules[0]', 'RefNotFound'],
    ['a URI that is not http', { issuer, jwksUri: 'file:///etc/passwd' }, 'spec.jwtRules[0].jwksUri', 'Invalid'],
    ['a URI that is none', { issuer, jwksUri: 'http://' }, 'spec.jwtRules[0].jwksUri', 'Invalid'],
    ['keys that are not JSON', { issuer, jwks: 'x' }, 'spec.jwtRules[0].jwks', 'Invalid'],
    ['no keys', { issuer, jwks: '{"keys":[]}' }, 'spec.jwtRules[0].jwks', 'Invalid'],
    ['keys above 256 KiB', { issuer, jwks: jwks.padEnd(262_145) }, 'spec.jwtRules[0].jwks', 'Invalid'],
    [
      '201 keys',
      { issuer, jwks: keySet(...Array.from({ length: 201 }, () => keys.p256)) },
      'spec.jwtRules[0].jwks',
      'Invalid',
    ],
    // Without any, tokens for everybody would be accepted.
    ['audiences that cannot be read', { issuer, jwks, audiences: [''] }, 'spec.jwtRules[0].audiences[0]', 'Invalid'],
    ['audiences that are a text', { issuer, jwks, audiences: 'a' }, 'spec.jwtRules[0].audiences', 'Invalid'],
  ])('for %s', (_, content, field, reason) => {
    const { model, problems } = reconcile({ jwtRules: [content] });
    expect(problems).toContainEqual(expect.objectContaining({ field, reason }));
    expect(model.rules).toMatchObject([{ keys: { kind: 'none' } }]);
  });

  test.each<[object, string]>([
    [{ selector: { matchLabels: { a: '*' } } }, 'spec.selector.matchLabels["a"]'],
    [{ targetRef: { kind: 'x', name: 'g' } }, 'spec.targetRef'],
  ])('for %j, which makes it a policy for all of the namespace', (target, field) => {
    const { model, problems } = reconcile({ ...target, ...rule({ presence: 'REQUIRED' }) });
    expect(problems).toContainEqual(expect.objectContaining({ field, reason: 'Invalid' }));
    expect(model).toMatchObject({ target: { kind: 'namespace' }, rules: [{ keys: { kind: 'none' }, required: true }] });
  });
});

test('with two sources of keys, those in the object are used', () => {
  const { model, problems } = reconcile(rule({ jwksUri }));
  expect(problems).toMatchObject([{ field: 'spec.jwtRules[0]', reason: 'Invalid' }]);
  expect(model.rules).toMatchObject([{ keys: { kind: 'inline' } }]);
});

test('a private key is remarked on, and used', () => {
  const { model, problems } = reconcile(rule({ jwks: keySet(keys.private) }));
  expect(problems).toMatchObject([{ field: 'spec.jwtRules[0].jwks', reason: 'TooBroad' }]);
  expect(model.rules).toMatchObject([{ keys: { kind: 'inline' } }]);
});

test.each<[unknown, boolean, number]>([
  [undefined, false, 0],
  [null, false, 0],
  ['OPTIONAL', false, 0],
  ['PRESENCE_UNSPECIFIED', false, 0],
  ['REQUIRED', true, 0],
  ['required', true, 1],
  ['', true, 1],
  [1, true, 1],
  [{}, true, 1],
])('presence %j requires a token: %j', (presence, required, count) => {
  const { model, problems } = reconcile(rule({ presence }));
  expect(model.rules[0]!.required).toBe(required);
  expect(problems.map(({ field }) => field)).toEqual(count === 0 ? [] : ['spec.jwtRules[0].presence']);
});

test.each<[object, string, object]>([
  [{ audiences: ['a', ''] }, 'audiences[1]', { audiences: ['a'] }],
  [{ fromParams: [''] }, 'fromParams[0]', { fromParams: [] }],
  [{ fromCookies: [null] }, 'fromCookies[0]', { fromCookies: [] }],
  [{ spaceDelimitedClaims: [''] }, 'spaceDelimitedClaims[0]', { spaceDelimitedClaims: [] }],
  [{ fromHeaders: [{ name: 'a b' }] }, 'fromHeaders[0].name', { fromHeaders: [] }],
  [{ fromHeaders: [{}] }, 'fromHeaders[0].name', { fromHeaders: [] }],
  [{ fromHeaders: [{ name: 'a', prefix: 'b\n' }] }, 'fromHeaders[0].prefix', { fromHeaders: [] }],
  [{ fromHeaders: [null] }, 'fromHeaders[0]', { fromHeaders: [] }],
  [{ outputPayloadToHeader: ':path' }, 'outputPayloadToHeader', { outputPayloadToHeader: '' }],
  [{ outputPayloadToHeader: '' }, 'outputPayloadToHeader', { outputPayloadToHeader: '' }],
  [{ outputClaimToHeaders: [{ header: 'a.b', claim: 'c' }] }, 'outputClaimToHeaders[0].header', {}],
  [{ outputClaimToHeaders: [{ header: 'a', claim: '' }] }, 'outputClaimToHeaders[0].claim', {}],
  [{ forwardOriginalToken: 'yes' }, 'forwardOriginalToken', { forwardOriginalToken: false }],
  [{ timeout: '0s' }, 'timeout', {}],
  [{ timeout: 'soon' }, 'timeout', {}],
])('%j is told at %s, and left out', (more, field, kept) => {
  const { problems } = reconcile(rule(more));
  expect(problems).toMatchObject([{ field: `spec.jwtRules[0].${field}`, reason: 'Invalid' }]);
  expect(first(rule(more))).toMatchObject({ outputClaimToHeaders: [], keys: { kind: 'inline' }, ...kept });
});

test.each([
  ['https://example.com/roles', true],
  ['example.com/roles', true],
  ['kubernetes.io', true],
  ['kubernetes.io.namespace', true],
  ['a..b', true],
  ['realm.roles', false],
  ['sub', false],
  ['urn:roles', false],
])('claim %s as a header is told to be out of reach: %j', (claim, isTold) => {
  const { model, problems } = reconcile(rule({ outputClaimToHeaders: [{ header: 'x', claim }] }));
  const told = [{ field: 'spec.jwtRules[0].outputClaimToHeaders[0].claim', reason: 'Ineffective' }];
  expect(problems).toMatchObject(isTold ? told : []);
  expect(model.rules).toMatchObject([{ outputClaimToHeaders: [{ header: 'x', claim }] }]);
});

test('of too many rules, those stay that keep requests out', () => {
  const many = Array.from({ length: 150 }, (_, i) => ({ issuer, jwks, ...(i >= 120 && { presence: 'REQUIRED' }) }));
  const { model, problems } = reconcile({ jwtRules: many });
  expect(problems).toMatchObject([{ field: 'spec.jwtRules', reason: 'Invalid' }]);
  expect(model.rules).toHaveLength(100);
  expect(model.rules.filter(({ required }) => required)).toHaveLength(30);
});

test('very many key sets are not all read: that would hold up everything else', () => {
  // As many as take their time, because each looks like a key.
  const bad = Array.from({ length: 200 }, () => ({ ...keys.p256, x: keys.p256.y, y: keys.p256.x }));
  const one = reconcile({
    jwtRules: Array.from({ length: 8 }, () => ({ issuer, jwks: keySet(...bad.slice(1), keys.p256) })),
  });
  const kinds = one.model.rules.map((each) => each.keys.kind);
  expect(kinds.slice(0, 6)).toEqual(Array.from({ length: 6 }, () => 'inline'));
  expect(kinds.at(-1)).toBe('none');
});

test('whatever JSON a policy is, it is read without throwing', () => {
  const known = [
    ...['selector', 'matchLabels', 'targetRef', 'kind', 'name', 'jwtRules', 'issuer', 'audiences', 'jwks', 'jwksUri'],
    ...['fromHeaders', 'prefix', 'fromParams', 'outputClaimToHeaders', 'header', 'claim', 'presence', 'timeout'],
  ];
  fc.assert(
    fc.property(anyJson(known, ['https://a', jwks, 'REQUIRED', '1s', 'a']), (spec) => {
      for (const { keys: found } of reconcile(spec).model.rules)
        expect(['inline', 'fetched', 'none']).toContain(found.kind);
    }),
    { numRuns: runs(2000) },
  );
});
