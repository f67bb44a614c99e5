import { expect, test } from 'vitest';
import { type RuleQuery, selectRule } from './rule-selection.ts';
import type { DestinationRuleModel } from '../model/traffic-policy.ts';

const host = 'a.shop.svc.cluster.local';

/** `namespace/host` as it shows in results, with who sees the rule: all, unless it says otherwise. */
function rule(namespace: string, of = host, more: Partial<DestinationRuleModel> = {}): DestinationRuleModel {
  return {
    id: `${namespace}/${of}`,
    name: 'd',
    createdAt: '',
    namespace,
    host: of,
    exportTo: ['*'],
    policy: {},
    portPolicies: {},
    subsets: [],
    origins: [],
    ...more,
  };
}

const clientIn = (namespace: string, ...matched: string[]) => ({ namespace, matched });

function select(rules: readonly DestinationRuleModel[], query: Partial<RuleQuery> = {}): string | undefined {
  const places = { serviceNamespace: 'shop', rootNamespace: 'istio-system', client: clientIn('client') };
  return selectRule(rules, { host, ...places, ...query })?.id;
}

test('the client’s namespace decides before the service’s, and that before the root’s', () => {
  const all = [rule('istio-system'), rule('shop'), rule('client'), rule('other')];
  expect(select(all)).toBe(`client/${host}`);
  expect(select(all, { client: undefined })).toBe(`shop/${host}`);
  expect(select([all[0]!, all[3]!])).toBe(`istio-system/${host}`);
  expect(select([all[3]!])).toBeUndefined();
});

test('within a namespace the most specific host decides, but a wildcard in a nearer namespace decides first', () => {
  const shop = ['*', '*.svc.cluster.local', '*.shop.svc.cluster.local', host].map((of) => rule('shop', of));
  expect(select(shop)).toBe(`shop/${host}`);
  expect(select(shop.slice(0, 3))).toBe('shop/*.shop.svc.cluster.local');
  expect(select(shop.slice(0, 2))).toBe('shop/*.svc.cluster.local');
  expect(select([...shop, rule('client', '*')])).toBe('client/*');
});

test('a wildcard host is covered by the same or a wider wildcard, not by what it covers', () => {
  const rules = [rule('shop', '*.com'), rule('shop', 'x.example.com')];
  expect(select(rules, { host: '*.example.com' })).toBe('shop/*.com');
});

test('a rule counts for the namespaces that it is exported to', () => {
  const exported = (exportTo: string[]) => select([rule('shop', host, { exportTo })]);
  expect(exported(['client'])).toBe(`shop/${host}`);
  expect(exported(['other'])).toBeUndefined();
  expect(exported(['shop'])).toBeUndefined();
  expect(select([rule('shop', host, { exportTo: ['client'] })], { client: undefined })).toBeUndefined();
  expect(select([rule('client', host, { exportTo: ['client'] })])).toBe(`client/${host}`);
});

test('a specific rule for others hides a general one, which is then looked for in the root namespace', () => {
  const rules = [rule('shop', host, { exportTo: ['other', 'third'] }), rule('shop', '*'), rule('istio-system', '*')];
  expect(select(rules)).toBe('istio-system/*');
});

test('gateways of the root namespace are bound by its private rules, and else by the service’s namespace first', () => {
  const gateway = { client: clientIn('istio-system') };
  const own = rule('istio-system', '*', { exportTo: ['istio-system'] });
  expect(select([rule('istio-system', '*'), rule('shop')], gateway)).toBe(`shop/${host}`);
  expect(select([own, rule('shop')], gateway)).toBe('istio-system/*');
});

test('a rule for workloads counts where they have the labels, in their own namespace', () => {
  const selective = (namespace: string, app: string, createdAt = '') =>
    rule(namespace, host, {
      id: `${namespace} ${app}`,
      exportTo: [namespace],
      workloadSelector: { app },
      createdAt,
    });
  const all = [rule('client'), selective('client', 'y', '2'), selective('client', 'x', '1')];
  expect(select(all, { client: clientIn('client', 'app=y') })).toBe('client y');
  expect(select(all, { client: clientIn('client', 'app=x', 'app=y') })).toBe('client x');
  expect(select(all)).toBe(`client/${host}`);
  // It decides even for workloads that it is not for: they have no rule then.
  expect(select([selective('client', 'x'), rule('shop')])).toBeUndefined();
});

test('of several rules that a namespace sees apart, the youngest counts', () => {
  const apart = [
    rule('client', host, { id: 'young', createdAt: '2026-02-01', exportTo: ['client'] }),
    rule('client', host, { id: 'old', createdAt: '2026-01-01' }),
  ];
  expect(select(apart)).toBe('young');
});
