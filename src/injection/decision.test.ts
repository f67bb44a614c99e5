import type { LabelRequirement } from '../model/label-selector.ts';
import { expect, test } from 'vitest';
import { type Candidate, type DecisionRules, decide } from './decision.ts';

const rules: DecisionRules = {
  revision: '',
  tags: [],
  policy: 'enabled',
  enableNamespacesByDefault: false,
  neverInject: [],
  alwaysInject: [],
};

type Labels = Readonly<Record<string, string>>;

interface Case {
  readonly title: string;
  readonly namespace?: Labels;
  readonly in?: string;
  readonly labels?: Labels;
  readonly pod?: Partial<Candidate>;
  readonly rules?: Partial<DecisionRules>;
  readonly inject: boolean;
}

const enabled = { 'istio-injection': 'enabled' };
const wanted = { 'sidecar.istio.io/inject': 'true' };
const unwanted = { 'sidecar.istio.io/inject': 'false' };
const canary = { 'istio.io/rev': 'canary' };
const app = { app: 'cart' };
const selector = { matchLabels: app };

const cases: readonly Case[] = [
  { title: 'namespace enabled', namespace: enabled, inject: true },
  { title: 'namespace enabled, with a revision', namespace: { ...enabled, ...canary }, inject: true },
  { title: 'namespace enabled, Pod says no', namespace: enabled, labels: unwanted, inject: false },
  { title: 'namespace enabled, annotation says no', namespace: enabled, pod: { annotations: unwanted }, inject: false },
  {
    title: 'label over annotation',
    ...{ namespace: enabled, labels: wanted, pod: { annotations: unwanted }, inject: true },
  },
  {
    title: 'namespace disabled, whatever the Pod says',
    namespace: { 'istio-injection': 'disabled' },
    labels: wanted,
    inject: false,
  },
  { title: 'namespace of another revision', namespace: canary, inject: false },
  { title: 'namespace of another revision, whatever the Pod says', namespace: canary, labels: wanted, inject: false },
  { title: 'namespace of our revision', namespace: canary, rules: { revision: 'canary' }, inject: true },
  { title: 'namespace of our tag', namespace: canary, rules: { revision: '1-2', tags: ['canary'] }, inject: true },
  {
    title: 'namespace enabled, but we are a revision',
    namespace: enabled,
    rules: { revision: 'canary' },
    inject: false,
  },
  {
    title: 'namespace enabled, and our revision is the default',
    ...{ namespace: enabled, rules: { revision: 'canary', tags: ['default'] }, inject: true },
  },
  { title: 'nobody says anything', inject: false },
  { title: 'nobody says anything, and that is enough', rules: { enableNamespacesByDefault: true }, inject: true },
  { title: 'the Pod asks', labels: wanted, inject: true },
  { title: 'only an annotation asks, which no webhook sees', pod: { annotations: wanted }, inject: false },
  { title: 'the Pod asks for another revision', labels: { ...wanted, ...canary }, inject: false },
  { title: 'the Pod names our revision', labels: canary, rules: { revision: 'canary' }, inject: true },
  { title: 'the policy is disabled', namespace: enabled, rules: { policy: 'disabled' }, inject: false },
  {
    title: 'the policy is disabled, the Pod asks',
    namespace: enabled,
    labels: wanted,
    rules: { policy: 'disabled' },
    inject: true,
  },
  { title: 'never injected', namespace: enabled, labels: app, rules: { neverInject: [selector] }, inject: false },
  {
    title: 'never injected, but asked for',
    ...{ namespace: enabled, labels: { ...app, ...wanted }, rules: { neverInject: [selector] }, inject: true },
  },
  {
    title: 'always injected',
    ...{ namespace: enabled, labels: app, rules: { policy: 'disabled', alwaysInject: [selector] }, inject: true },
  },
  {
    title: 'never over always',
    ...{ namespace: enabled, labels: app, rules: { neverInject: [selector], alwaysInject: [selector] }, inject: false },
  },
  { title: 'an empty selector matches nothing', namespace: enabled, rules: { neverInject: [{}] }, inject: true },
  { title: 'neither true nor false', namespace: enabled, labels: { 'sidecar.istio.io/inject': 'yes' }, inject: true },
  { title: 'in kube-system', in: 'kube-system', namespace: enabled, labels: wanted, inject: false },
  { title: 'the network of the node', namespace: enabled, pod: { hostNetwork: true }, inject: false },
  { title: 'Windows', namespace: enabled, pod: { os: 'windows' }, inject: false },
];

test.each(cases)(
  '$title: $inject',
  ({ namespace = {}, labels = {}, pod, rules: changed, inject, in: name = 'shop' }) => {
    const candidate = { labels, annotations: {}, hostNetwork: false, os: '', ...pod };
    expect(decide(candidate, { name, labels: namespace }, { ...rules, ...changed }).inject).toBe(inject);
  },
);

test.each<[LabelRequirement, boolean]>([
  [{ key: 'app', operator: 'In', values: ['cart'] }, true],
  [{ key: 'app', operator: 'NotIn', values: ['cart'] }, false],
  [{ key: 'team', operator: 'NotIn', values: ['cart'] }, true],
  [{ key: 'app', operator: 'Exists' }, true],
  [{ key: 'app', operator: 'DoesNotExist' }, false],
])('the requirement %j is met: %s', (requirement, met) => {
  const decision = decide(
    { labels: app, annotations: {}, hostNetwork: false, os: '' },
    { name: 'shop', labels: enabled },
    { ...rules, neverInject: [{ matchExpressions: [requirement] }] },
  );
  expect(decision.inject).toBe(!met);
});
