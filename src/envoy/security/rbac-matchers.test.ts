import { expect, test } from 'vitest';
import type { Clause, OperationAttribute, SourceAttribute } from '../../model/authorization.ts';
import { testProtos } from '../../../test/harness/mesh.ts';
import { types } from '../encode/proto-types.ts';
import type { StringMatcher } from '../gen/types.gen.ts';
import { rbacPolicy } from './rbac-matchers.ts';

const agent = { agent: true };

const spelled = (permissions: readonly Clause[], principals: readonly Clause[], isWide = false) =>
  rbacPolicy({ permissions, principals, isWide }, agent);
const permissionsOf = (attribute: OperationAttribute, ...values: string[]) =>
  spelled([[{ attribute, values, notValues: [] }]], [[]]).permissions![0]!.andRules!.rules;
const principalsOf = (attribute: SourceAttribute, ...values: string[]) =>
  spelled([[]], [[{ attribute, values, notValues: [] }]]).principals![0]!.andIds!.ids;

const anything = { safeRegex: { regex: '.+' } };
const path = (match: object) => ({ urlPath: { path: match } });
const authority = (match: object) => ({ header: { name: ':authority', ...match } });
const cidr = (addressPrefix: string, value: number) => ({ addressPrefix, prefixLen: { value } });

test.each<[OperationAttribute, string, object]>([
  [{ kind: 'host' }, 'a.com', authority({ stringMatch: { exact: 'a.com', ignoreCase: true } })],
  [{ kind: 'host' }, '*.com', authority({ stringMatch: { suffix: '.com', ignoreCase: true } })],
  [{ kind: 'host' }, 'a*', authority({ stringMatch: { prefix: 'a', ignoreCase: true } })],
  [{ kind: 'host' }, '*', authority({ presentMatch: true })],
  [{ kind: 'method' }, 'GET', { header: { name: ':method', stringMatch: { exact: 'GET' } } }],
  [{ kind: 'method' }, '*', { header: { name: ':method', presentMatch: true } }],
  [{ kind: 'path' }, '/a', path({ exact: '/a' })],
  [{ kind: 'path' }, '/a*', path({ prefix: '/a' })],
  [{ kind: 'path' }, '*/a', path({ suffix: '/a' })],
  [{ kind: 'path' }, '*', path(anything)],
  [{ kind: 'path' }, '/a*b', path({ exact: '/a*b' })],
  [{ kind: 'path' }, '/a.b/{*}/c', path({ safeRegex: { regex: '/a\\.b/[^/]+/c' } })],
  [{ kind: 'path' }, '/{*}/{*}/{**}', path({ safeRegex: { regex: '/[^/]+/[^/]+/.*' } })],
  [{ kind: 'port' }, '80', { destinationPort: 80 }],
  [{ kind: 'destinationIp' }, '10.1.2.3', { destinationIp: cidr('10.1.2.3', 32) }],
  [{ kind: 'destinationIp' }, '10.1.2.3/16', { destinationIp: cidr('10.1.2.3', 16) }],
  [{ kind: 'destinationIp' }, 'fd00::1', { destinationIp: cidr('fd00::1', 128) }],
  [{ kind: 'sni' }, 'a.com', { requestedServerName: { exact: 'a.com' } }],
  [{ kind: 'sni' }, '*.com', { requestedServerName: { suffix: '.com' } }],
  [{ kind: 'sni' }, '*', { requestedServerName: anything }],
])('%j %s', (attribute, value, expected) => {
  expect(permissionsOf(attribute, value)).toEqual([{ orRules: { rules: [expected] } }]);
});

const authenticated = (principalName: object) => ({ authenticated: { principalName } });
const regex = (text: string) => authenticated({ safeRegex: { regex: text } });

test.each<[SourceAttribute, string, object]>([
  [{ kind: 'principal' }, 'td/ns/a/sa/b', authenticated({ exact: 'spiffe://td/ns/a/sa/b' })],
  [{ kind: 'principal' }, 'td/ns/*', authenticated({ prefix: 'spiffe://td/ns/' })],
  // Not a suffix, as for other texts: CVE-2020-16844.
  [{ kind: 'principal' }, '*/sa/b.c', regex('spiffe://.*/sa/b\\.c')],
  [{ kind: 'principal' }, '*', regex('.+')],
  [{ kind: 'serviceAccount' }, 'a.b/c.d', regex('spiffe://.+/ns/a\\.b/(.+/|)sa/c\\.d(/.+)?')],
  [{ kind: 'namespace' }, 'a.b', regex('.*/ns/a\\.b/.*')],
  [{ kind: 'namespace' }, 'a*', regex('.*/ns/a.*/.*')],
  [{ kind: 'namespace' }, '*-a', regex('.*/ns/.*-a/.*')],
  [{ kind: 'namespace' }, '*a', regex('.*/ns/[^/]*a/.*')],
  [{ kind: 'namespace' }, 'x*sa', regex('.*/ns/x[^/]*sa/.*')],
  [{ kind: 'namespace' }, '*', regex('.*/ns/.*/.*')],
  [{ kind: 'namespace' }, '(a|b)', regex('.*/ns/\\(a\\|b\\)/.*')],
  [{ kind: 'trustDomain' }, 'td', authenticated({ prefix: 'spiffe://td/' })],
  [{ kind: 'trustDomain' }, '*', authenticated({ prefix: 'spiffe://' })],
  [{ kind: 'trustDomain' }, '*.td', regex('spiffe://[^/]*\\.td/.*')],
  [{ kind: 'trustDomain' }, 'td*', regex('spiffe://td[^/]*/.*')],
  [{ kind: 'sourceIp' }, '10.0.0.0/8', { directRemoteIp: cidr('10.0.0.0', 8) }],
  [{ kind: 'remoteIp' }, '::/0', { remoteIp: cidr('::', 0) }],
  [{ kind: 'header', name: 'X-A' }, 'v', { header: { name: 'X-A', stringMatch: { exact: 'v' } } }],
  [{ kind: 'header', name: 'x' }, 'v*', { header: { name: 'x', stringMatch: { prefix: 'v' } } }],
  [{ kind: 'header', name: 'x' }, '*v', { header: { name: 'x', stringMatch: { suffix: 'v' } } }],
  [{ kind: 'header', name: 'x' }, '*', { header: { name: 'x', presentMatch: true } }],
])('%j %s', (attribute, value, expected) => {
  expect(principalsOf(attribute, value)).toEqual([{ orIds: { ids: [expected] } }]);
});

test.each([
  ['*', anything, anything],
  ['*/s', anything, { exact: 's' }],
  ['*x/s', { suffix: 'x' }, { exact: 's' }],
  ['*x', anything, { suffix: 'x' }],
  ['i/*', { exact: 'i' }, anything],
  ['i/s*', { exact: 'i' }, { prefix: 's' }],
  ['x*', { prefix: 'x' }, anything],
  ['x', { exact: 'x' }, { exact: '' }],
  ['i/s', { exact: 'i' }, { exact: 's' }],
  ['https://i/a/s', { exact: 'https://i/a' }, { exact: 's' }],
  ['i/', { exact: 'i' }, { exact: '' }],
  ['/s', { exact: '' }, { exact: 's' }],
])('the request principal %s is an issuer and a subject', (value, issuer, subject) => {
  const claim = (key: string, stringMatch: object) => ({
    metadata: { filter: 'envoy.filters.http.jwt_authn', path: [{ key: 'payload' }, { key }], value: { stringMatch } },
  });
  const pair = { andIds: { ids: [claim('iss', issuer), claim('sub', subject)] } };
  expect(principalsOf({ kind: 'requestPrincipal' }, value)).toEqual([pair]);
  expect(principalsOf({ kind: 'requestPrincipal' }, value, value)).toEqual([{ orIds: { ids: [pair, pair] } }]);
});

test.each<[string[], string[], object]>([
  [['aud'], ['a'], { stringMatch: { exact: 'a' } }],
  [['a', 'b'], ['*'], { stringMatch: anything }],
  [
    ['azp'],
    ['a*', '*b'],
    { orMatch: { valueMatchers: [{ stringMatch: { prefix: 'a' } }, { stringMatch: { suffix: 'b' } }] } },
  ],
])('the claim %j is a text, or a list with it', (claim, values, match) => {
  expect(principalsOf({ kind: 'claim', path: claim }, ...values)).toEqual([
    {
      metadata: {
        filter: 'envoy.filters.http.jwt_authn',
        path: ['payload', ...claim].map((key) => ({ key })),
        value: { orMatch: { valueMatchers: [{ listMatch: { oneOf: match } }, match] } },
      },
    },
  ]);
});

const wideClaim = (notValues: readonly string[], ...values: string[]) => {
  const { principals } = spelled([[]], [[{ attribute: { kind: 'claim', path: ['a'] }, values, notValues }]], true);
  return principals![0]!.andIds!.ids;
};
const claimIs = (match: object) => ({
  metadata: {
    filter: 'envoy.filters.http.jwt_authn',
    path: [{ key: 'payload' }, { key: 'a' }],
    value: { orMatch: { valueMatchers: [{ listMatch: { oneOf: match } }, match] } },
  },
});
const oneOf = (...valueMatchers: object[]) => ({ orMatch: { valueMatchers } });

test.each<[string, object]>([
  ['*', { presentMatch: true }],
  ['v', { stringMatch: { exact: 'v' } }],
  ['5', oneOf({ stringMatch: { exact: '5' } }, { doubleMatch: { exact: 5 } })],
  ['true', oneOf({ stringMatch: { exact: 'true' } }, { boolMatch: true })],
  ['*e', oneOf({ stringMatch: { suffix: 'e' } }, { boolMatch: true }, { boolMatch: false })],
  [
    '5*',
    oneOf(
      { stringMatch: { prefix: '5' } },
      { doubleMatch: { range: { start: -Number.MAX_VALUE, end: Number.MAX_VALUE } } },
    ),
  ],
])('what is denied is a claim %s of any type', (value, match) => {
  expect(wideClaim([], value)).toEqual([claimIs(match)]);
});

test('what is not denied is a text only', () => {
  expect(wideClaim(['*'])).toEqual([{ notId: claimIs({ stringMatch: anything }) }]);
});

test.each<[string[], object]>([
  [['v'], { stringMatch: { exact: 'v' } }],
  [['[v*]'], { listMatch: { oneOf: { stringMatch: { prefix: 'v' } } } }],
  [['[v'], { stringMatch: { exact: '[v' } }],
  [['a', 'b'], { orMatch: { valueMatchers: [{ stringMatch: { exact: 'a' } }, { stringMatch: { exact: 'b' } }] } }],
])('metadata of other filters %j', (values, value) => {
  expect(permissionsOf({ kind: 'filterMetadata', filter: 'envoy.filters.f', key: 'k' }, ...values)).toEqual([
    { metadata: { filter: 'envoy.filters.f', path: [{ key: 'k' }], value } },
  ]);
});

test('values, then what they must not be, and all of them', () => {
  const ports = { attribute: { kind: 'port' }, values: ['80', '81'], notValues: ['82'] } as const;
  const addresses = { attribute: { kind: 'sourceIp' }, values: [], notValues: ['10.0.0.1'] } as const;
  const methods = { attribute: { kind: 'method' }, values: ['GET'], notValues: [] } as const;
  const policy = spelled([[ports, methods], []], [[addresses]]);
  const port = (destinationPort: number) => ({ destinationPort });
  expect(policy).toEqual({
    permissions: [
      {
        andRules: {
          rules: [
            { orRules: { rules: [port(80), port(81)] } },
            { notRule: { orRules: { rules: [port(82)] } } },
            { orRules: { rules: [{ header: { name: ':method', stringMatch: { exact: 'GET' } } }] } },
          ],
        },
      },
      { andRules: { rules: [{ any: true }] } },
    ],
    principals: [{ andIds: { ids: [{ notId: { orIds: { ids: [{ directRemoteIp: cidr('10.0.0.1', 32) }] } } }] } }],
  });
  expect(() => testProtos().encode(types.rbac, { rules: { action: 'DENY', policies: { a: policy } } })).not.toThrow();
});

test('a rule without alternatives never matches', () => {
  expect(spelled([], [])).toEqual({
    permissions: [{ notRule: { any: true } }],
    principals: [{ notId: { any: true } }],
  });
});

test.each([
  ['/a.b/{*}', ['/a.b/c', '/a.b/[', '/a.b/{'], ['/a.b/', '/a.b/c/d', '/aXb/c']],
  ['/{*}/b/{**}', ['/a/b/', '/a/b/c/d', '/[/b/]'], ['/a/b', '//b/c', '/a/c/b/d']],
  ['/{**}/b', ['/a/b', '/a/c/b', '//b', '/]/b'], ['/b/a']],
])('%s matches whatever is in a segment', (template, matched, others) => {
  const [{ orRules }] = permissionsOf({ kind: 'path' }, template) as [{ orRules: { rules: unknown[] } }];
  const [{ urlPath }] = orRules.rules as [{ urlPath: { path: StringMatcher } }];
  const whole = new RegExp(`^(?:${urlPath.path.safeRegex!.regex})$`);
  expect([...matched, ...others].filter((path) => whole.test(path))).toEqual(matched);
});

test('where no agent has raised the limit, a long regex raises it for itself', () => {
  const clause = [{ attribute: { kind: 'serviceAccount' } as const, values: ['a/b'], notValues: [] }];
  const [found] = rbacPolicy({ permissions: [], principals: [clause], isWide: false }, { agent: false }).principals!;
  expect(JSON.stringify(found)).toContain('"googleRe2":{"maxProgramSize":{"value":32768}}');
});
