import { expect, test } from 'vitest';
import type { DestinationRule } from '../api/gen/destination-rule.gen.ts';
import { mergeRules } from './destination-rule-merge.ts';
import { reconcileDestinationRule } from '../reconcilers/destination-rule/destination-rule.ts';

const random = { loadBalancer: { simple: 'RANDOM' } };
const roundRobin = { loadBalancer: { simple: 'ROUND_ROBIN' } };

/** Rules of one host by name, each a second younger than the one before. */
function merge(specs: Record<string, object>) {
  const rules = Object.entries(specs).flatMap(([name, spec], index) => {
    const creationTimestamp = `2026-01-01T00:00:0${index}Z`;
    const object = {
      apiVersion: 'networking.istio.io/v1',
      kind: 'DestinationRule',
      metadata: { name, namespace: 'shop', creationTimestamp },
      spec: { host: 'a', ...spec },
    };
    const context = { source: 'test', domainSuffix: 'cluster.local', defaultExportTo: ['*'] };
    return reconcileDestinationRule(object as DestinationRule, context).rules;
  });
  return mergeRules(rules.reverse());
}

test('subsets of rules for one host are united under the oldest', () => {
  const { rules, problems } = merge({
    first: { subsets: [{ name: 'v1', labels: { version: 'v1' } }] },
    second: { trafficPolicy: random, subsets: [{ name: 'v2' }] },
  });
  expect(problems).toEqual([]);
  expect(rules).toMatchObject([
    { name: 'first', policy: { loadBalancer: { simple: 'RANDOM' } }, subsets: [{ name: 'v1' }, { name: 'v2' }] },
  ]);
  expect(rules[0]?.origins.map((origin) => origin.name)).toEqual(['first', 'second']);
});

test('the older rule keeps a subset and its policy, and the younger is told', () => {
  const { rules, problems } = merge({
    first: { trafficPolicy: random, subsets: [{ name: 'v1', labels: { a: '1' } }] },
    second: { trafficPolicy: roundRobin, subsets: [{ name: 'v2' }, { name: 'v1', labels: { a: '2' } }] },
  });
  expect(rules).toMatchObject([
    { policy: { loadBalancer: { simple: 'RANDOM' } }, subsets: [{ name: 'v1', labels: { a: '1' } }, { name: 'v2' }] },
  ]);
  expect(problems).toMatchObject([
    { object: { name: 'second' }, field: 'spec.subsets[1].name', reason: 'Conflicted' },
    { object: { name: 'second' }, field: 'spec.trafficPolicy', reason: 'Conflicted' },
  ]);
  expect(problems[0]?.message).toContain('DestinationRule/shop/first');
});

test('settings of a port alone are a policy too', () => {
  const ports = { portLevelSettings: [{ port: { number: 80 }, ...random }] };
  const { rules, problems } = merge({ first: { trafficPolicy: ports }, second: { trafficPolicy: roundRobin } });
  expect(rules[0]?.policy).toEqual({});
  expect(problems).toHaveLength(1);
});

test('rules that others see, or that other workloads obey, stay apart', () => {
  const { rules, problems } = merge({
    all: { trafficPolicy: random },
    own: { trafficPolicy: random, exportTo: ['.'] },
    some: { trafficPolicy: random, workloadSelector: { matchLabels: { app: 'x' } } },
    others: { trafficPolicy: random, workloadSelector: { matchLabels: { app: 'y' } } },
    same: { subsets: [{ name: 'v1' }], workloadSelector: { matchLabels: { app: 'x' } } },
  });
  expect(problems).toEqual([]);
  expect(rules.map((rule) => [rule.name, rule.id.split('@')[1]])).toEqual([
    ['some', 'shop{app=x}'],
    ['others', 'shop{app=y}'],
    ['all', '*'],
    ['own', 'shop'],
  ]);
});

/** `first+third own others` of each rule: what it was made of, and who finds it when that is not as usual. */
const brief = (specs: Record<string, object>) =>
  merge(specs).rules.map(({ origins, audiences = [] }) =>
    [origins.map(({ name }) => name).join('+'), ...audiences].join(' '),
  );

test.each<[string, Record<string, object>, string[]]>([
  [
    'the last one joins the first, and stands behind a private one all the same',
    { first: {}, second: { exportTo: ['.'] }, third: {} },
    ['first+third', 'second', 'third own'],
  ],
  [
    'what comes after it joins both of its kind',
    { first: {}, second: { exportTo: ['.'] }, third: {}, fourth: {} },
    ['first+third+fourth', 'second', 'third+fourth own'],
  ],
  [
    'others have no part in what is private',
    { first: { exportTo: ['.'] }, second: {}, third: { exportTo: ['.'] } },
    ['first+third', 'second', 'third own'],
  ],
  [
    'nor the own namespace in what is for others',
    { first: {}, second: { exportTo: ['other'] }, third: {} },
    ['first+third', 'second', 'third others'],
  ],
  [
    'rules with one selector are one',
    {
      first: { workloadSelector: { matchLabels: { app: 'x' } } },
      second: { exportTo: ['.'] },
      third: { workloadSelector: { matchLabels: { app: 'x' } } },
    },
    ['first+third', 'second'],
  ],
])('of rules that are not exported alike, %s', (_, specs, expected) => {
  expect(brief(specs)).toEqual(expected);
  expect(new Set(merge(specs).rules.map(({ id }) => id)).size).toBe(expected.length);
});

test('the rules of a host have as many subsets as one alone may have, and the younger is told', () => {
  const subsets = (prefix: string) => Array.from({ length: 600 }, (_, i) => ({ name: `${prefix}-${i}` }));
  const { rules, problems } = merge({
    first: { subsets: subsets('a') },
    second: { subsets: subsets('b') },
    third: { subsets: subsets('a'), trafficPolicy: random },
    fourth: { trafficPolicy: roundRobin },
  });
  expect(rules).toHaveLength(1);
  expect(rules[0]?.subsets).toHaveLength(1000);
  const of = (name: string) => problems.filter(({ object }) => object.name === name);
  expect(of('second')).toMatchObject([{ field: 'spec.subsets', reason: 'Conflicted' }]);
  expect(of('third')).toHaveLength(100);
  expect(of('fourth')).toMatchObject([{ field: 'spec.trafficPolicy' }]);
});

test('what rules of one host look at grows with their number, not with its square', () => {
  let looks = 0;
  const counted = (prefix: string) =>
    Array.from({ length: 300 }, (_, i) => ({
      get name() {
        looks++;
        return `${prefix}-${i}`;
      },
      labels: {},
      policy: {},
      portPolicies: {},
    }));
  const [model] = merge({ a: {} }).rules;
  const looksAt = (count: number): number => {
    looks = 0;
    mergeRules(Array.from({ length: count }, (_, i) => ({ ...model!, subsets: counted(`v${i}`) })));
    return looks;
  };
  expect(looksAt(20) / looksAt(10)).toBeLessThan(2.5);
});
