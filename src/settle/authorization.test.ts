import { describe, expect, test } from 'vitest';
import type {
  Attribute,
  AuthorizationPolicyModel,
  AuthorizationRule,
  Authorizer,
  Clause,
  ResolvedAuthorizer,
} from '../model/authorization.ts';
import { type AuthorizationInput, settleAuthorization, stepsOfGrpcServer } from './authorization.ts';

const on = (attribute: Attribute, ...values: string[]): Clause => [{ attribute, values, notValues: [] }];
const path = on({ kind: 'path' }, '/a');
const port = on({ kind: 'port' }, '80');
const namespace = on({ kind: 'namespace' }, 'a');
const token = on({ kind: 'requestPrincipal' }, '*');

const rule = (content: Partial<AuthorizationRule> = {}): AuthorizationRule => ({
  index: 0,
  from: [],
  to: [],
  when: [],
  broken: false,
  ...content,
});

const policy = (name: string, content: Partial<AuthorizationPolicyModel> = {}): AuthorizationPolicyModel => ({
  key: `test/shop/${name}`,
  ref: { source: 'test', group: 'security.istio.io', kind: 'AuthorizationPolicy', namespace: 'shop', name },
  name,
  namespace: 'shop',
  createdAt: '',
  target: { kind: 'namespace' },
  action: 'ALLOW',
  provider: '',
  dryRun: false,
  rules: [rule()],
  ...content,
});

const authorizer = (name: string, protocol: Authorizer['protocol']): ResolvedAuthorizer => ({
  authorizer: { name, protocol } as Authorizer,
  host: `${name}.example.com`,
  cluster: `outbound|80||${name}.example.com`,
});

const known: Readonly<Record<string, ResolvedAuthorizer>> = {
  http: authorizer('http', 'http'),
  grpc: authorizer('grpc', 'grpc'),
};

const settle = (policies: readonly AuthorizationPolicyModel[], input: Partial<AuthorizationInput> = {}) =>
  settleAuthorization({
    policies,
    layer: 'http',
    trustDomains: ['cluster.local'],
    issuers: [],
    authorizerOf: (name) => known[name],
    ...input,
  });

const steps = (policies: readonly AuthorizationPolicyModel[], input: Partial<AuthorizationInput> = {}) => {
  const { external, local } = settle(policies, input);
  return [...external, ...local];
};

/** Names without what all have in common. */
const short = (rules: readonly { readonly name: string }[] | undefined) =>
  rules?.map(({ name }) => name.replace(/ns\[shop\]-policy\[(.*?)\]-rule\[(\d+)\]/, '$1/$2'));

test('without a policy there is nothing', () => {
  expect(settle([])).toEqual({ external: [], local: [] });
});

test('CUSTOM comes first, then AUDIT, DENY and ALLOW, whatever their order', () => {
  const policies = (['ALLOW', 'DENY', 'AUDIT'] as const).map((action) => policy(action.toLowerCase(), { action }));
  const { external, local } = settle([...policies, policy('c', { action: 'CUSTOM', provider: 'grpc' })]);
  expect(external.map(({ shadow }) => short(shadow))).toEqual([['istio-ext-authz-grpc-c/0']]);
  expect(local.map(({ action, enforced }) => [action, short(enforced)])).toEqual([
    ['LOG', ['audit/0']],
    ['DENY', ['deny/0']],
    ['ALLOW', ['allow/0']],
  ]);
});

test('in doubt, a rule that denies matches, and one that allows does not', () => {
  const policies = (['ALLOW', 'DENY', 'AUDIT'] as const).map((action) => policy(action.toLowerCase(), { action }));
  const found = steps([...policies, policy('c', { action: 'CUSTOM', provider: 'grpc' })]);
  const rules = found.flatMap(({ enforced = [], shadow = [] }) => [...enforced, ...shadow]);
  expect(rules.map(({ isWide }) => isWide)).toEqual([true, false, true, false]);
});

test('a request principal is read with the issuers whose tokens are accepted', () => {
  const rules = [rule({ from: [token] })];
  const [step] = steps([policy('a', { rules })], { issuers: ['i'] });
  expect(step!.enforced![0]!.principals[0]![0]!.attribute).toEqual({ kind: 'requestPrincipal', issuers: ['i'] });
});

test('policies of one action share a step, and rules are named by their place', () => {
  const two = [rule({ index: 1 }), rule({ index: 3 })];
  expect(short(steps([policy('a', { rules: two }), policy('b')])[0]!.enforced)).toEqual(['a/1', 'a/3', 'b/0']);
});

test('a gRPC server enforces what it can, and denies what others would ask about', () => {
  const policies = [
    policy('ask', { action: 'CUSTOM', provider: 'http' }),
    policy('watch', { action: 'AUDIT' }),
    policy('try', { action: 'DENY', dryRun: true }),
    policy('no', { action: 'DENY' }),
    policy('nobody', { action: 'ALLOW', rules: [] }),
  ];
  const enforced = stepsOfGrpcServer(settle(policies, { authorizerOf: () => undefined }));
  expect(enforced.map(({ action }) => action)).toEqual(['DENY', 'DENY', 'ALLOW']);
  for (const step of enforced) expect(step).not.toHaveProperty('shadow');
});

describe('a dry run', () => {
  test.each([
    ['ALLOW', 'istio_dry_run_allow_'],
    ['DENY', 'istio_dry_run_deny_'],
    ['AUDIT', ''],
  ] as const)('of %s is only in the shadow, with the prefix %j', (action, shadowPrefix) => {
    const [only] = steps([policy('a', { action, dryRun: true })]);
    expect(only).toMatchObject({ shadowPrefix });
    expect(only).not.toHaveProperty('enforced');
    expect(short(only!.shadow)).toEqual(['a/0']);
  });

  test.each(['ALLOW', 'DENY', 'AUDIT'] as const)('beside an enforced %s is apart from it', (action) => {
    const [only] = steps([policy('a', { action, dryRun: true }), policy('b', { action })]);
    expect([short(only!.enforced), short(only!.shadow)]).toEqual([['b/0'], ['a/0']]);
  });

  test.each(['ALLOW', 'DENY', 'AUDIT'] as const)('that is none: %s has no shadow', (action) => {
    const [only] = steps([policy('a', { action })]);
    expect(only).toMatchObject({ shadowPrefix: 'istio_dry_run_allow_' });
    expect(only).not.toHaveProperty('shadow');
  });

  test('of CUSTOM asks nobody, and does not count as a second provider', () => {
    const custom = (name: string, content = {}) => policy(name, { action: 'CUSTOM', provider: name, ...content });
    expect(steps([custom('http', { dryRun: true })])).toEqual([]);
    expect(steps([custom('http', { dryRun: true }), custom('grpc')])).toMatchObject([{ external: {} }]);
  });
});

test.each(['ALLOW', 'DENY'] as const)('%s without rules has one that never matches', (action) => {
  expect(steps([policy('a', { action, rules: [] })])).toMatchObject([
    { action, enforced: [{ name: 'ns[shop]-policy[a]-rule[0]', permissions: [], principals: [] }] },
  ]);
});

test('an empty rule matches anything', () => {
  expect(steps([policy('a')])).toMatchObject([{ enforced: [{ permissions: [[]], principals: [[]] }] }]);
});

test('what is in when applies to each alternative, on its side', () => {
  const content = rule({
    from: [namespace, token],
    to: [path, port],
    when: [...on({ kind: 'sni' }, 's'), ...on({ kind: 'header', name: 'h' }, 'v')],
  });
  const kinds = (clauses: readonly Clause[]) => clauses.map((clause) => clause.map(({ attribute }) => attribute.kind));
  const [only] = steps([policy('a', { rules: [content] })])[0]!.enforced!;
  expect(kinds(only!.permissions)).toEqual([
    ['path', 'sni'],
    ['port', 'sni'],
  ]);
  expect(kinds(only!.principals)).toEqual([
    ['namespace', 'header'],
    ['requestPrincipal', 'header'],
  ]);
});

describe('CUSTOM', () => {
  const custom = (provider: string, name = 'a') => policy(name, { action: 'CUSTOM', provider });
  const from = (name: string) => ({ policies: [policy(name).ref] });
  const whole = (name: string) => ({
    source: { object: policy(name).ref, field: 'spec.rules[0]' },
    isWide: true,
    permissions: [[]],
    principals: [[]],
  });
  const denied = (name: string, of = 'a') => [
    {
      action: 'DENY',
      ...from(of),
      enforced: [{ name: `${name}-deny-due-to-bad-CUSTOM-action`, ...whole(of) }],
      shadowPrefix: '',
    },
  ];
  const ruleName = (provider: string, name = 'a') => `istio-ext-authz-${provider}-ns[shop]-policy[${name}]-rule[0]`;

  test.each([
    ['http', 'http'],
    ['grpc', 'http'],
    ['grpc', 'tcp'],
  ] as const)('with a service that speaks %s is asked about %s', (provider, layer) => {
    expect(steps([custom(provider)], { layer })).toEqual([
      {
        action: 'DENY',
        ...from('a'),
        shadow: [{ name: ruleName(provider), ...whole('a') }],
        shadowPrefix: 'istio_ext_authz_',
        external: { service: known[provider], ruleNames: `istio-ext-authz-${provider}` },
      },
    ]);
  });

  test('with a service that cannot be asked about connections denies them', () => {
    expect(steps([custom('http')], { layer: 'tcp' })).toEqual(denied(ruleName('http')));
  });

  test('with an unknown service denies', () => {
    expect(steps([custom('unknown')])).toEqual(denied(ruleName('unknown')));
  });

  test('with one service of two policies asks it once', () => {
    const [only, ...others] = steps([custom('grpc', 'a'), custom('grpc', 'b')]);
    expect(others).toEqual([]);
    expect(only!.shadow!.map(({ name }) => name)).toEqual([ruleName('grpc', 'a'), ruleName('grpc', 'b')]);
  });

  test('with two services denies for both, in the order of their names', () => {
    expect(steps([custom('http', 'a'), custom('grpc', 'b')])).toEqual([
      ...denied(ruleName('grpc', 'b'), 'b'),
      ...denied(ruleName('http', 'a')),
    ]);
  });
});

describe('on TCP, what only HTTP requests have', () => {
  const mixed = rule({ to: [[...path, ...port], port], from: [namespace] });
  const only = rule({ from: [token] });
  const inWhen = rule({ when: on({ kind: 'claim', path: ['a'] }, 'b') });
  const ofTcp = rule({ to: [port], from: [namespace], when: on({ kind: 'sourceIp' }, '10.0.0.1') });

  test.each([
    ['beside what connections have', mixed],
    ['alone', only],
    ['in when', inWhen],
  ])('%s takes the whole rule from ALLOW', (_, content) => {
    expect(steps([policy('a', { rules: [content] })], { layer: 'tcp' })).toMatchObject([
      { action: 'ALLOW', enforced: [] },
    ]);
  });

  test.each(['DENY', 'AUDIT'] as const)('is left out of %s, and the rest stays', (action) => {
    const rulesOf = (content: AuthorizationRule) =>
      steps([policy('a', { action, rules: [content] })], { layer: 'tcp' })[0]!.enforced;
    expect(rulesOf(mixed)).toMatchObject([{ permissions: [port, port], principals: [namespace] }]);
    expect(rulesOf(only)).toMatchObject([{ permissions: [[]], principals: [[]] }]);
    expect(rulesOf(inWhen)).toMatchObject([{ permissions: [[]], principals: [[]] }]);
  });

  test('is left out of CUSTOM', () => {
    const custom = policy('a', { action: 'CUSTOM', provider: 'grpc', rules: [mixed] });
    expect(steps([custom], { layer: 'tcp' })).toMatchObject([{ shadow: [{ permissions: [port, port] }] }]);
  });

  test.each(['ALLOW', 'DENY', 'AUDIT'] as const)('is not in a rule of connections, which stays whole: %s', (action) => {
    expect(steps([policy('a', { action, rules: [ofTcp] })], { layer: 'tcp' })).toEqual(
      steps([policy('a', { action, rules: [ofTcp] })], { layer: 'http' }),
    );
  });

  test.each<[Attribute, boolean]>([
    [{ kind: 'host' }, true],
    [{ kind: 'method' }, true],
    [{ kind: 'path' }, true],
    [{ kind: 'requestPrincipal' }, true],
    [{ kind: 'header', name: 'a' }, true],
    [{ kind: 'claim', path: ['a'] }, true],
    [{ kind: 'port' }, false],
    [{ kind: 'destinationIp' }, false],
    [{ kind: 'sni' }, false],
    [{ kind: 'filterMetadata', filter: 'envoy.filters.network.f', key: 'k' }, false],
    [{ kind: 'filterMetadata', filter: 'envoy.filters.http.f', key: 'k' }, true],
    [{ kind: 'principal' }, false],
    [{ kind: 'serviceAccount' }, false],
    [{ kind: 'trustDomain' }, false],
    [{ kind: 'namespace' }, false],
    [{ kind: 'remoteIp' }, false],
    [{ kind: 'sourceIp' }, false],
  ])('%j: %s', (attribute, isOfHttp) => {
    const rules = [rule({ when: on(attribute, 'a') })];
    expect(steps([policy('a', { rules })], { layer: 'tcp' })[0]!.enforced).toHaveLength(isOfHttp ? 0 : 1);
  });
});

test.each([
  ['ALLOW', 0],
  ['DENY', 1],
  ['AUDIT', 1],
] as const)('a broken rule of %s is in force %d times', (action, count) => {
  const [only] = steps([policy('a', { action, rules: [rule({ broken: true })] })]);
  expect(only!.enforced).toHaveLength(count);
});

test('principals and trust domains are those of all the mesh, also where they are excepted', () => {
  const from: Clause[] = [
    [
      { attribute: { kind: 'principal' }, values: ['cluster.local/ns/a/sa/b'], notValues: ['td2/ns/c/sa/d'] },
      { attribute: { kind: 'trustDomain' }, values: ['td1'], notValues: ['td2', 'x'] },
    ],
  ];
  const [only] = steps([policy('a', { rules: [rule({ from })] })], { trustDomains: ['td1', 'td2'] });
  expect(only!.enforced![0]!.principals).toMatchObject([
    [
      {
        values: ['td1/ns/a/sa/b', 'td2/ns/a/sa/b'],
        notValues: ['td1/ns/c/sa/d', 'td2/ns/c/sa/d'],
      },
      { values: ['td1', 'td2'], notValues: ['td1', 'td2', 'x'] },
    ],
  ]);
});
