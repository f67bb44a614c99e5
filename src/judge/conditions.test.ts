import { expect, test } from 'vitest';
import type { Attribute, Condition } from '../model/authorization.ts';
import { type Facts, ruleMatches } from './conditions.ts';

const facts: Facts = {
  peer: 'spiffe://cluster.local/ns/shop/sa/client',
  port: 8080,
  sourceIp: { unknown: 'the client' },
  remoteIp: '10.1.2.3',
  destinationIp: '10.0.0.1',
  sni: '',
  http: {
    method: 'GET',
    host: 'a.shop',
    path: '/a/b?c',
    headers: [['x-name', 'a']],
    claims: { iss: 'i', sub: 's' },
    addsAddress: false,
  },
};

const source = { object: { source: '', group: '', kind: '', namespace: '', name: '' }, field: '' };
const matches = (...principals: readonly Condition[]) =>
  ruleMatches({ name: '', source, isWide: false, permissions: [[]], principals: [principals] }, facts);
const has = (attribute: Attribute, value: string) => matches({ attribute, values: [value], notValues: [] });

test.each<[Attribute, string, string]>([
  [{ kind: 'namespace' }, 'sh*', '*a'],
  // As Istio compares it: the part of the identity after /ns/.
  [{ kind: 'namespace' }, 'shop/sa', 'shop/s'],
  [{ kind: 'serviceAccount' }, 'shop/client', 'shop/client2'],
  [{ kind: 'trustDomain' }, '*local', 'cluster'],
  [{ kind: 'principal' }, '*/sa/client', 'ient'],
  [{ kind: 'path' }, '/a/{*}', '/{*}'],
  [{ kind: 'path' }, '/{**}', '/{**}/c'],
  [{ kind: 'host' }, 'A.*', 'shop'],
  [{ kind: 'requestPrincipal' }, 'i/*', 'i'],
  [{ kind: 'header', name: 'X-Name' }, 'a', 'b'],
  [{ kind: 'remoteIp' }, '10.1.0.0/16', '10.2.0.0/16'],
])('%j is %s, and not %s', (attribute, value, other) => {
  expect([has(attribute, value), has(attribute, other)]).toEqual([true, false]);
});

test('what is not known matters only where nothing else decides', () => {
  const client: Condition = { attribute: { kind: 'sourceIp' }, values: ['10.0.0.1'], notValues: [] };
  const never: Condition = { attribute: { kind: 'namespace' }, values: ['other'], notValues: [] };
  expect(matches(client)).toEqual({ unknown: 'the client' });
  expect(matches({ ...client, values: [], notValues: ['10.0.0.1'] })).toEqual({ unknown: 'the client' });
  expect(matches(client, never)).toBe(false);
});
