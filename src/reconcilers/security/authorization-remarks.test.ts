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
const path = to({ paths: ['/admin'] });
const provider = { action: 'CUSTOM', provider: { name: 'a' } };
const onTcp = ['spec.rules[0] TooBroad compares only what'];
const host = (name: string) => [`spec.rules[0] Ineffective compares the host`, name];

test.each<[string, object, string[]]>([
  ['an ALLOW rule that is empty', { rules: [{}] }, ['spec.rules[0] TooBroad is empty, and']],
  ['an empty rule that denies is meant', { action: 'DENY', rules: [{}] }, []],
  ['a DENY of a path closes TCP ports', { action: 'DENY', rules: [path] }, onTcp],
  [
    'so does one alternative of several',
    { action: 'DENY', rules: [to({ ports: ['80'] }, { methods: ['GET'] })] },
    onTcp,
  ],
  ['with ports, it does not', { action: 'DENY', rules: [to({ paths: ['/admin'], ports: ['80'] })] }, []],
  ['a CUSTOM rule of a path checks TCP ports', { ...provider, rules: [path] }, onTcp],
  ['an ALLOW of a path is not for TCP ports', { rules: [path] }, []],
  ['AUDIT refuses nothing', { action: 'AUDIT', rules: [path] }, []],
  [
    'a header in when is HTTP, too',
    { action: 'DENY', rules: [{ when: [{ key: 'request.headers[a]', values: ['b'] }] }] },
    onTcp,
  ],
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
