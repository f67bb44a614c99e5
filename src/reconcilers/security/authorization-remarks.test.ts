import { expect, test } from 'vitest';
import type { AuthorizationPolicy } from '../../api/gen/authorization-policy.gen.ts';
import { reconcileAuthorizationPolicy } from './authorization-policy.ts';

function remarks(spec: unknown): string[] {
  const metadata = { name: 'p', namespace: 'shop' };
  const object = { apiVersion: 'security.istio.io/v1', kind: 'AuthorizationPolicy', metadata, spec };
  const { problems } = reconcileAuthorizationPolicy(object as AuthorizationPolicy, 'test');
  return problems.map(({ field, reason, message }) => `${field} ${reason} ${message.split(' ').slice(0, 3).join(' ')}`);
}

const to = (...operations: object[]) => ({ to: operations.map((operation) => ({ operation })) });
const host = (name: string) => [`spec.rules[0] Ineffective compares the host`, name];

test.each<[string, object, string[]]>([
  ['an ALLOW rule that is empty', { rules: [{}] }, ['spec.rules[0] TooBroad is empty, and']],
  ['an empty rule that denies is meant', { action: 'DENY', rules: [{}] }, []],
  ['a namespace is not', { action: 'DENY', rules: [{ from: [{ source: { namespaces: ['a'] } }] }] }, []],
  ['a host without port', { rules: [to({ hosts: ['a.com'] })] }, [host('a.com')[0]!]],
  ['a not-host without port', { rules: [to({ notHosts: ['a.com'] })] }, [host('a.com')[0]!]],
  ['a host in both forms', { rules: [to({ hosts: ['a.com', 'a.com:*', 'b.com*', 'c:80', '*'] })] }, []],
  ['a * inside a path', { rules: [to({ paths: ['/a/*b'] })] }, ['spec.rules[0] Ineffective compares the *']],
  ['a * at both ends', { rules: [to({ notPaths: ['*/a*'] })] }, ['spec.rules[0] Ineffective compares the *']],
  ['a * at one end, or for segments', { rules: [to({ paths: ['*', '/a*', '*/a', '/{*}/a/{**}'] })] }, []],
  [
    'a * inside a principal',
    { rules: [{ from: [{ source: { principals: ['td/ns/*/sa/a'] } }] }] },
    ['spec.rules[0] Ineffective compares the *'],
  ],
  ['a * in a namespace', { rules: [{ from: [{ source: { namespaces: ['a*b'] } }] }] }, []],
  [
    'a host with a scheme',
    { rules: [to({ hosts: ['https://a.com*'] })] },
    [`spec.rules[0] Ineffective has "https://a.com*", which`],
  ],
  [
    'a host with a path',
    { rules: [to({ notHosts: ['a.com/x*'] })] },
    ['spec.rules[0] Ineffective has "a.com/x*", which'],
  ],
  [
    'a server name with a scheme',
    { rules: [{ when: [{ key: 'connection.sni', values: ['https://a.com'] }] }] },
    ['spec.rules[0] Ineffective has "https://a.com", which'],
  ],
  [
    'more than a namespace',
    { rules: [{ from: [{ source: { namespaces: ['td/ns/a'] } }] }] },
    ['spec.rules[0] Ineffective has "td/ns/a", which'],
  ],
  [
    'more than a namespace in a condition',
    { rules: [{ when: [{ key: 'source.namespace', notValues: ['ns/a'] }] }] },
    ['spec.rules[0] Ineffective has "ns/a", which'],
  ],
  [
    'what Istio compares with a namespace and what follows it',
    { rules: [{ from: [{ source: { namespaces: ['a', 'a/sa', 'a/sa/b*', '*/sa/b'] } }] }] },
    [],
  ],
  [
    'a broken rule has its problem only',
    { rules: [to({ hosts: ['a.com'], paths: [''] })] },
    ['spec.rules[0].to[0].operation.paths[0] Invalid must not be'],
  ],
])('%s', (_, spec, expected) => {
  expect(remarks(spec)).toEqual(expected);
});

test('of very many remarks, twenty are told', () => {
  expect(remarks({ rules: Array.from({ length: 100 }, () => ({})) })).toHaveLength(20);
});
