import { expect, test } from 'vitest';
import type { RequestMatch, RouteRule } from '../model/route.ts';
import { rulesForGrpc } from './grpc-rules.ts';

const any: RequestMatch = { name: '', statPrefix: '', ignoreUriCase: false, headers: [], claims: [], queryParams: [] };
const exact = (value: string) => ({ kind: 'exact', value }) as const;

function ruleOf(matches: readonly RequestMatch[]): RouteRule {
  const target = { kind: 'cluster', cluster: 'a' } as const;
  const action = { kind: 'forward', backends: [{ target }], mirrors: [{ target }], retriesStay: false } as const;
  return { name: 'r', owner: undefined, sources: [], matches, precedence: 0, action, operation: 'a:80' };
}

const matchesOf = (...matches: readonly RequestMatch[]) => rulesForGrpc([ruleOf(matches)])[0]!.matches;

test.each<[string, Partial<RequestMatch>]>([
  ['query parameters', { queryParams: [{ name: 'q', match: exact('x') }] }],
  ['claims', { claims: [{ path: ['sub'], match: exact('me'), invert: false }] }],
  ['the scheme', { scheme: exact('https') }],
  ['the authority', { authority: exact('a') }],
  ['another method than POST', { method: exact('GET') }],
  ['methods by a regex', { method: { kind: 'regex', value: 'P.*' } }],
])('a match on %s matches no call, and leaves the others of its rule', (_, match) => {
  const path = { ...any, uri: exact('/a.B/Get') };
  expect(matchesOf({ ...any, ...match }, path)).toEqual([path]);
  expect(matchesOf({ ...any, ...match })).toEqual([{ ...any, uri: exact('/') }]);
});

test.each<[string, Partial<RequestMatch>]>([
  ['POST', { method: exact('POST') }],
  ['methods that begin like POST', { method: { kind: 'prefix', value: 'PO' } }],
  ['any method', { method: { kind: 'present' } }],
  ['calls without a claim', { claims: [{ path: ['sub'], match: exact('me'), invert: true }] }],
])('a match on %s says nothing about a call', (_, match) => {
  expect(matchesOf({ ...any, ...match })).toEqual([any]);
});

test('a rule without matches is for every call, and is not mirrored', () => {
  const [rule] = rulesForGrpc([ruleOf([])]);
  expect(rule!.matches).toEqual([]);
  expect(rule!.action).toMatchObject({ kind: 'forward', mirrors: [] });
});

test('calls that would be redirected or answered fail', () => {
  const redirect = { kind: 'redirect', authority: '', uri: '/b', scheme: '', code: 301 } as const;
  const answer = { kind: 'directResponse', status: 200 } as const;
  for (const action of [redirect, answer])
    expect(rulesForGrpc([{ ...ruleOf([]), action }])[0]!.action).toMatchObject({
      backends: [{ target: { kind: 'invalid' } }],
    });
});
