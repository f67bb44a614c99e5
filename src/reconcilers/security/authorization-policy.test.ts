import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AuthorizationPolicy } from '../../api/gen/authorization-policy.gen.ts';
import { settleAuthorization } from '../../settle/authorization.ts';
import { reconcileAuthorizationPolicy } from './authorization-policy.ts';
import { anyJson } from './testing/any-json.ts';
import { runs } from '../../testing/runs.ts';

function reconcile(spec: unknown, annotations?: Readonly<Record<string, string>>) {
  const metadata = { name: 'p', namespace: 'shop', ...(annotations && { annotations }) };
  const object = { apiVersion: 'security.istio.io/v1', kind: 'AuthorizationPolicy', metadata, spec };
  return reconcileAuthorizationPolicy(object as AuthorizationPolicy, 'test');
}

/** What is left of the rules, in front of HTTP. */
function enforced(spec: unknown) {
  const { model } = reconcile(spec);
  const { local, external } = settleAuthorization({
    policies: [model],
    layer: 'http',
    trustDomains: ['cluster.local'],
    issuers: [],
    authorizerOf: () => undefined,
  });
  return [...external, ...local].flatMap(({ enforced: rules = [] }) => rules);
}

const everything = { permissions: [[]], principals: [[]] };

const rule = (content: object) => ({ rules: [content] });
const from = (source: unknown) => rule({ from: [{ source }] });
const to = (operation: unknown) => rule({ to: [{ operation }] });
const when = (condition: unknown) => rule({ when: [condition] });
const source = (field: string) => `spec.rules[0].from[0].source.${field}`;
const operation = (field: string) => `spec.rules[0].to[0].operation.${field}`;
const accounts = (...values: string[]) => from({ serviceAccounts: values });

/** What Istio's admission refuses: in force all the same, but it allows nothing, and denies all the more. */
const brokenRules: [string, object, string][] = [
  ['a rule that is null', { rules: [null] }, 'spec.rules[0]'],
  ['a rule that is a list', { rules: [[]] }, 'spec.rules[0]'],
  ['an empty from', rule({ from: [] }), 'spec.rules[0].from'],
  ['a from that is a text', rule({ from: 'a' }), 'spec.rules[0].from'],
  ['a from with null', rule({ from: [null] }), 'spec.rules[0].from[0].source'],
  ['an empty source', from({}), 'spec.rules[0].from[0].source'],
  ['an empty to', rule({ to: [] }), 'spec.rules[0].to'],
  ['a to with null', rule({ to: [null] }), 'spec.rules[0].to[0].operation'],
  ['an empty operation', to({}), 'spec.rules[0].to[0].operation'],
  ['values that are a text', to({ paths: '/a' }), operation('paths')],
  ['an empty text', to({ paths: [''] }), operation('paths[0]')],
  ['a value that is null', to({ methods: [null] }), operation('methods[0]')],
  ['a value that is a number', to({ ports: [80] }), operation('ports[0]')],
  ['half a surrogate pair', to({ paths: ['/\ud800'] }), operation('paths[0]')],
  ['a value of 2,001 characters', from({ namespaces: ['a'.repeat(2_001)] }), source('namespaces[0]')],
  ['service accounts with principals', from({ serviceAccounts: ['a'], principals: ['b'] }), source('serviceAccounts')],
  [
    'not-accounts with namespaces',
    from({ notServiceAccounts: ['a'], namespaces: ['b'] }),
    source('notServiceAccounts'),
  ],
  ['17 service accounts', accounts(...Array.from({ length: 17 }, (_, i) => `a${i}`)), source('serviceAccounts')],
  ['an account of 321 characters', accounts('a'.repeat(321)), source('serviceAccounts[0]')],
  ['an account with *', accounts('a*'), source('serviceAccounts[0]')],
  ['an account with two slashes', accounts('a/b/c'), source('serviceAccounts[0]')],
  ['an account without namespace', accounts('/b'), source('serviceAccounts[0]')],
  ['an account without name', accounts('a/'), source('serviceAccounts[0]')],
  ['a trust domain with a slash', from({ trustDomains: ['a/b'] }), source('trustDomains[0]')],
  ['a trust domain with * inside', from({ trustDomains: ['a*b'] }), source('trustDomains[0]')],
  ['a trust domain with two *', from({ notTrustDomains: ['*a*'] }), source('notTrustDomains[0]')],
  ['a trust domain **', from({ trustDomains: ['**'] }), source('trustDomains[0]')],
  ['a principal that is only a scheme', from({ principals: ['spiffe://'] }), source('principals[0]')],
  ['an address that is none', from({ ipBlocks: ['10.0.0'] }), source('ipBlocks[0]')],
  ['a range of 33 bits', from({ remoteIpBlocks: ['10.0.0.0/33'] }), source('remoteIpBlocks[0]')],
  ['a range of -1 bits', from({ notIpBlocks: ['10.0.0.0/-1'] }), source('notIpBlocks[0]')],
  ['an address with a zone', from({ ipBlocks: ['fe80::1%eth0'] }), source('ipBlocks[0]')],
  ['an octal address', from({ ipBlocks: ['010.0.0.1'] }), source('ipBlocks[0]')],
  ['a port beyond 65535', to({ ports: ['65536'] }), operation('ports[0]')],
  ['a negative port', to({ notPorts: ['-1'] }), operation('notPorts[0]')],
  ['a port with a name', to({ ports: ['http'] }), operation('ports[0]')],
  ['a template with * in a segment', to({ paths: ['/{*}/a*'] }), operation('paths[0]')],
  ['a template with text beside it', to({ paths: ['/a{*}'] }), operation('paths[0]')],
  ['a template with other braces', to({ paths: ['/{*}/{a}'] }), operation('paths[0]')],
  ['a template behind {**}', to({ paths: ['/{**}/{*}'] }), operation('paths[0]')],
  ['two {**}', to({ notPaths: ['/{**}/{**}'] }), operation('notPaths[0]')],
  ['a template with characters of no path', to({ paths: ['/{*}/ü'] }), operation('paths[0]')],
  ['a template that Envoy refuses: no slash', to({ paths: ['{*}'] }), operation('paths[0]')],
  ['a template that Envoy refuses: two slashes', to({ paths: ['/a//{*}'] }), operation('paths[0]')],
  ['a template that Envoy refuses: too long', to({ paths: [`/${'a'.repeat(250)}/{*}`] }), operation('paths[0]')],
  ['a when that is a text', rule({ when: 'a' }), 'spec.rules[0].when'],
  ['a condition that is null', when(null), 'spec.rules[0].when[0].key'],
  ['a condition without key', when({ values: ['a'] }), 'spec.rules[0].when[0].key'],
  ['an unknown key', when({ key: 'a.b', values: ['a'] }), 'spec.rules[0].when[0].key'],
  ['a key of JavaScript', when({ key: 'constructor', values: ['a'] }), 'spec.rules[0].when[0].key'],
  ['a condition without values', when({ key: 'source.ip' }), 'spec.rules[0].when[0]'],
  ['a header without brackets', when({ key: 'request.headers', values: ['a'] }), 'spec.rules[0].when[0].key'],
  ['a header without name', when({ key: 'request.headers[]', values: ['a'] }), 'spec.rules[0].when[0].key'],
  ['a line break in a header', when({ key: 'request.headers[a\nb]', values: ['a'] }), 'spec.rules[0].when[0].key'],
  ['an open bracket', when({ key: 'request.headers[a', values: ['a'] }), 'spec.rules[0].when[0].key'],
  ['a retired key', when({ key: 'destination.labels[app]', values: ['a'] }), 'spec.rules[0].when[0].key'],
  ['an address in when', when({ key: 'source.ip', values: ['x'] }), 'spec.rules[0].when[0].values[0]'],
  ['a port in when', when({ key: 'destination.port', notValues: ['x'] }), 'spec.rules[0].when[0].notValues[0]'],
  ['an account in when', when({ key: 'source.serviceAccount', values: ['*'] }), 'spec.rules[0].when[0].values[0]'],
];

describe.each(brokenRules)('%s', (_, spec, field) => {
  test('is told at its field', () => {
    const { problems } = reconcile(spec);
    expect(problems).toContainEqual(expect.objectContaining({ field, reason: 'Invalid' }));
  });

  test('allows nothing', () => {
    expect(enforced({ ...spec, action: 'ALLOW' })).toEqual([]);
    expect(reconcile(spec).model.rules).toMatchObject([{ index: 0, broken: true }]);
  });

  test('denies all that is left of it', () => {
    expect(enforced({ ...spec, action: 'DENY' })).toMatchObject([{ name: 'ns[shop]-policy[p]-rule[0]' }]);
  });
});

test('a denial without the part that cannot be read matches more than it says', () => {
  const spec = { action: 'DENY', rules: [{ to: [{ operation: { paths: ['/{*}a', '/b'], methods: ['GET'] } }] }] };
  expect(enforced(spec)).toMatchObject([
    { permissions: [[{ attribute: { kind: 'method' }, values: ['GET'] }]], principals: [[]] },
  ]);
  const excepted = { action: 'DENY', ...from({ ipBlocks: ['10.0.0.0/8'], notIpBlocks: ['10.1.0.0/16', 'x'] }) };
  expect(enforced(excepted)).toMatchObject([everything]);
  expect(enforced({ action: 'DENY', ...when({ key: 'unknown', values: ['a'] }) })).toMatchObject([everything]);
});

test('one broken rule leaves the others, and their names', () => {
  const rules = [null, { from: [{ source: { namespaces: ['a'] } }] }];
  expect(enforced({ rules })).toMatchObject([{ name: 'ns[shop]-policy[p]-rule[1]' }]);
});

describe('an action that cannot be read', () => {
  test.each<[unknown, object]>([
    ['allow', from({ namespaces: ['a'] })],
    ['', {}],
    [1, { rules: [] }],
    [['DENY'], { rules: [{}] }],
  ])('%j denies everything: what its rules match could be all that is to be allowed', (action, spec) => {
    const { problems } = reconcile({ action, ...spec });
    expect(problems).toContainEqual(expect.objectContaining({ field: 'spec.action', reason: 'Invalid' }));
    expect(enforced({ action, ...spec })).toMatchObject([everything]);
  });

  test('also counts behind as many problems as are reported', () => {
    const matchLabels = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`a${i}`, '*']));
    const { model, problems } = reconcile({ selector: { matchLabels }, action: 'deny', rules: [{}] });
    expect(problems).toHaveLength(101);
    expect(model.action).toBe('DENY');
  });
});

test.each([
  [{ action: 'CUSTOM', rules: [{}] }, 'spec.provider.name'],
  [{ action: 'CUSTOM', rules: [{}], provider: {} }, 'spec.provider.name'],
  [{ action: 'DENY', rules: [{}], provider: { name: 'a' } }, 'spec.provider'],
  [{ provider: 'a' }, 'spec.provider'],
  [{ action: 'DENY' }, 'spec.rules'],
  [{ action: 'CUSTOM', provider: { name: 'a' }, rules: [] }, 'spec.rules'],
  [{ action: 'AUDIT' }, 'spec.rules'],
  [[], 'spec'],
  [{ rules: {} }, 'spec.rules'],
])('%j is told at %s', (spec, field) => {
  const { problems } = reconcile(spec);
  expect(problems).toContainEqual(expect.objectContaining({ field, reason: 'Invalid' }));
});

test.each([
  ['principals', 'principal', true],
  ['notNamespaces', 'namespace', true],
  ['serviceAccounts', 'serviceAccount', true],
  ['notTrustDomains', 'trustDomain', true],
  ['requestPrincipals', 'requestPrincipal', false],
  ['notRequestPrincipals', 'requestPrincipal', false],
])('under CUSTOM, %s is told; it is compared if it is known by then', (field, kind, isCompared) => {
  const { model, problems } = reconcile({ action: 'CUSTOM', provider: { name: 'a' }, ...from({ [field]: ['x'] }) });
  expect(problems).toContainEqual(expect.objectContaining({ field: source(field), reason: 'Invalid' }));
  expect(model.rules[0]!.from[0]!.map(({ attribute }) => attribute.kind)).toEqual(isCompared ? [kind] : []);
});

test('claims under CUSTOM are told, and left out', () => {
  const condition = { key: 'request.auth.claims[a]', values: ['x'] };
  const { model, problems } = reconcile({ action: 'CUSTOM', provider: { name: 'a' }, ...when(condition) });
  expect(problems).toMatchObject([{ field: 'spec.rules[0].when[0].values', reason: 'Invalid' }]);
  expect(model.rules).toMatchObject([{ when: [], broken: true }]);
});

test('a valid policy has no problems, and its rules keep their order', () => {
  const { model, problems } = reconcile({
    selector: { matchLabels: { app: 'a' } },
    action: 'DENY',
    rules: [
      {
        from: [
          { source: { notIpBlocks: ['10.0.0.1'], principals: ['a/b', '*'], remoteIpBlocks: ['::/0'] } },
          { source: { serviceAccounts: ['a', 'b/c'] } },
        ],
        to: [{ operation: { ports: ['0', '65535'], paths: ['/{*}/a/{**}', '/a*'], hosts: ['a', 'a:*'] } }],
        when: [
          { key: 'source.trustDomain', values: ['a', '*.b', 'c.*', '*'] },
          { key: 'request.headers[x-a]', notValues: ['a'] },
          { key: 'request.auth.claims[a][b]', values: ['c'] },
          { key: 'request.auth.claims[a[b]]', values: ['c'] },
          { key: 'experimental.envoy.filters.x.y[k]', values: ['[v]'] },
        ],
      },
    ],
  });
  expect(problems).toEqual([]);
  expect(model).toMatchObject({
    target: { kind: 'labels', labels: { app: 'a' } },
    provider: '',
    rules: [
      {
        broken: false,
        from: [
          [
            { attribute: { kind: 'principal' }, values: ['a/b', '*'], notValues: [] },
            { attribute: { kind: 'remoteIp' }, values: ['::/0'] },
            { attribute: { kind: 'sourceIp' }, values: [], notValues: ['10.0.0.1'] },
          ],
          [{ attribute: { kind: 'serviceAccount' }, values: ['shop/a', 'b/c'] }],
        ],
        to: [[{ attribute: { kind: 'host' } }, { attribute: { kind: 'path' } }, { attribute: { kind: 'port' } }]],
        when: [
          { attribute: { kind: 'trustDomain' } },
          { attribute: { kind: 'header', name: 'x-a' }, notValues: ['a'] },
          { attribute: { kind: 'claim', path: ['a', 'b'] } },
          { attribute: { kind: 'claim', path: ['a[b]'] } },
          { attribute: { kind: 'filterMetadata', filter: 'envoy.filters.x.y', key: 'k' } },
        ],
      },
    ],
  });
});

test.each([
  ['source.ip', 'sourceIp', '10.0.0.1'],
  ['remote.ip', 'remoteIp', '10.0.0.1'],
  ['source.namespace', 'namespace', 'a'],
  ['source.principal', 'principal', 'a/b'],
  ['source.serviceAccount', 'serviceAccount', 'a'],
  ['source.trustDomain', 'trustDomain', 'a'],
  ['request.auth.principal', 'requestPrincipal', 'a/b'],
  ['request.auth.audiences', 'claim', 'a'],
  ['request.auth.presenter', 'claim', 'a'],
  ['destination.ip', 'destinationIp', '10.0.0.1'],
  ['destination.port', 'port', '80'],
  ['connection.sni', 'sni', 'a'],
])('%s is %s', (key, kind, value) => {
  const { model, problems } = reconcile(when({ key, values: [value] }));
  expect(problems).toEqual([]);
  expect(model.rules[0]!.when).toMatchObject([{ attribute: { kind } }]);
});

test.each(['1', 't', 'T', 'true', 'TRUE', 'True'])('the annotation %j makes a dry run', (text) => {
  expect(reconcile({}, { 'istio.io/dry-run': text }).model.dryRun).toBe(true);
});

test.each([
  ['0', 0],
  ['f', 0],
  ['FALSE', 0],
  ['False', 0],
  ['yes', 1],
  ['tRUE', 1],
  ['', 1],
])('the annotation %j enforces the policy; problems: %d', (text, count) => {
  const { model, problems } = reconcile({}, { 'istio.io/dry-run': text });
  expect(model.dryRun).toBe(false);
  expect(problems.filter(({ field }) => field === 'metadata.annotations["istio.io/dry-run"]')).toHaveLength(count);
});

const gateway = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'g' };
const all = { kind: 'namespace' };

describe('the target', () => {
  test.each<[object, object]>([
    [{}, all],
    [{ selector: {} }, all],
    [{ selector: { matchLabels: {} } }, all],
    [{ selector: { matchLabels: { a: 'b' } } }, { kind: 'labels', labels: { a: 'b' } }],
    [{ targetRef: gateway }, { kind: 'gateways', names: ['g'] }],
    [{ targetRefs: [gateway, { ...gateway, name: 'h' }] }, { kind: 'gateways', names: ['g', 'h'] }],
    // As in Istio: no reference is as good as no list.
    [{ targetRefs: [] }, all],
  ])('of %j is %j', (spec, target) => {
    const { model, problems } = reconcile(spec);
    expect(problems).toEqual([]);
    expect(model.target).toEqual(target);
  });

  test.each([
    ['Service', ''],
    ['ServiceEntry', 'networking.istio.io'],
    ['GatewayClass', 'gateway.networking.k8s.io'],
  ])('that is a %s is for waypoints only: nobody', (kind, group) => {
    const { model, problems } = reconcile({ targetRefs: [{ kind, group, name: 'a' }] });
    expect(model.target).toEqual({ kind: 'gateways', names: [] });
    expect(problems).toMatchObject([{ field: 'spec.targetRefs[0]', reason: 'Ineffective' }]);
  });

  test.each<[object, string]>([
    [{ selector: 'a' }, 'spec.selector'],
    [{ selector: { matchLabels: 'a' } }, 'spec.selector.matchLabels'],
    [{ selector: { matchLabels: { '': 'a' } } }, 'spec.selector.matchLabels[""]'],
    [{ selector: { matchLabels: { 'a*': 'a' } } }, 'spec.selector.matchLabels["a*"]'],
    [{ selector: { matchLabels: { a: '*' } } }, 'spec.selector.matchLabels["a"]'],
    [{ selector: { matchLabels: { a: 1 } } }, 'spec.selector.matchLabels["a"]'],
    [{ selector: {}, targetRef: gateway }, 'spec'],
    [{ targetRef: gateway, targetRefs: [gateway] }, 'spec'],
    [{ targetRef: 'g' }, 'spec.targetRef'],
    [{ targetRefs: 'g' }, 'spec.targetRefs'],
    [{ targetRefs: [null] }, 'spec.targetRefs[0]'],
    [{ targetRef: { ...gateway, name: '' } }, 'spec.targetRef.name'],
    [{ targetRef: { ...gateway, kind: 'Gatway' } }, 'spec.targetRef'],
    [{ targetRefs: [gateway, { ...gateway, namespace: 'x' }] }, 'spec.targetRefs[1].namespace'],
  ])('%j cannot be read: the policy denies in all of the namespace, and allows nothing', (target, field) => {
    const { model, problems } = reconcile({ ...target, rules: [{ from: [{ source: { namespaces: ['a'] } }] }] });
    expect(problems).toContainEqual(expect.objectContaining({ field, reason: 'Invalid' }));
    expect(model.target).toEqual(all);
    expect(enforced({ ...target, rules: [{}] })).toEqual([]);
    expect(enforced({ ...target, action: 'DENY', rules: [{}] })).toMatchObject([everything]);
  });
});

describe('what is too large', () => {
  const rules = (count: number) => Array.from({ length: count }, () => ({ to: [{ operation: { ports: ['80'] } }] }));
  const ports = (count: number) => [{ to: [{ operation: { ports: Array.from({ length: count }, () => '80') } }] }];
  const products = (sources: number, values: number) => [
    {
      from: Array.from({ length: sources }, () => ({ source: { ipBlocks: ['10.0.0.1'] } })),
      when: [{ key: 'request.headers[a]', values: Array.from({ length: values }, () => 'a') }],
    },
  ];

  test.each([
    ['512 rules', rules(512), []],
    ['513 rules', rules(513), ['spec.rules']],
    ['10,000 values', ports(10_000), []],
    ['10,001 values', ports(10_001), ['spec.rules']],
    ['20 sources under 500 values', products(20, 499), []],
    ['21 sources under 500 values', products(21, 499), ['spec.rules']],
  ])('%s', (_, some, fields) => {
    expect(reconcile({ rules: some }).problems.map(({ field }) => field)).toEqual(fields);
    const isRead = fields.length === 0;
    expect(enforced({ rules: some })).toHaveLength(isRead ? some.length : 0);
    const denied = enforced({ action: 'DENY', rules: some });
    if (isRead) expect(denied).toHaveLength(some.length);
    else expect(denied).toMatchObject([everything]);
  });
});

const known = [
  ...['spec', 'selector', 'matchLabels', 'targetRef', 'targetRefs', 'group', 'kind', 'name', 'action', 'provider'],
  ...['rules', 'from', 'to', 'when', 'source', 'operation', 'key', 'values', 'notValues', 'principals', 'ipBlocks'],
  ...['serviceAccounts', 'trustDomains', 'namespaces', 'paths', 'ports', 'hosts', 'requestPrincipals'],
];
const texts = ['*', 'a', 'ALLOW', 'CUSTOM', 'request.headers[a]', 'source.ip', '/{**}/{*}', '10.0.0.0/8', 'a/b', '80'];

test('whatever JSON a policy is, it is read without throwing, and is in force or told', () => {
  fc.assert(
    fc.property(anyJson(known, texts), (spec) => {
      const { model, problems } = reconcile(spec);
      const isBroken = model.rules.some(({ broken }) => broken);
      expect(isBroken && problems.length === 0).toBe(false);
      for (const layer of ['http', 'tcp'] as const)
        settleAuthorization({
          policies: [model],
          layer,
          trustDomains: ['a'],
          issuers: [],
          authorizerOf: () => undefined,
        });
    }),
    { numRuns: runs(2000) },
  );
});

test.each([
  [from({ principals: ['spiffe://cluster.local/ns/a/sa/b'] }), ['Ineffective']],
  [from({ principals: ['cluster.local/ns/a/sa/b'] }), []],
  [when({ key: 'source.principal', values: ['spiffe://cluster.local/ns/a/sa/b'] }), ['Ineffective']],
])('%j is a principal, with the scheme of the certificate, which is remarked upon, or without', (spec, reasons) => {
  expect(reconcile(spec).problems.map(({ reason }) => reason)).toEqual(reasons);
  const principals = [[{ attribute: { kind: 'principal' }, values: ['cluster.local/ns/a/sa/b'], notValues: [] }]];
  expect(enforced({ ...spec, action: 'DENY' })).toMatchObject([{ principals }]);
});
