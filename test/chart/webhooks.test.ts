import { expect, test } from 'vitest';
import { kinds } from '../../src/api/kinds.ts';
import { PROBE } from '../../src/kube/writing/webhook-entries.ts';
import { validationRules } from '../../src/serve/webhook-configurations.ts';
import { withPeers } from '../peers/with-peers.ts';
import { type ChartObject, NAMESPACE, configOf, deploymentOf, renderChart } from './chart.ts';
import { permissionsOf, printPermission } from './permissions.ts';

interface Requirement {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values?: readonly string[];
}

interface Webhook {
  readonly name: string;
  readonly failurePolicy: string;
  readonly clientConfig: object;
  readonly rules: readonly {
    readonly apiGroups: string[];
    readonly resources: string[];
    readonly operations: string[];
  }[];
  readonly namespaceSelector?: { readonly matchExpressions: readonly Requirement[] };
  readonly objectSelector?: { readonly matchExpressions?: readonly Requirement[] };
}

type Labels = Readonly<Record<string, string>>;

/** As the API server selects by labels. */
function selects(selector: Webhook['objectSelector'], labels: Labels): boolean {
  return (selector?.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
    const value = labels[key];
    if (operator === 'In') return value !== undefined && values.includes(value);
    if (operator === 'NotIn') return value === undefined || !values.includes(value);
    return (operator === 'Exists') === (value !== undefined);
  });
}

const webhooksIn = (kind: string, objects: readonly ChartObject[]): readonly Webhook[] =>
  (objects.find((object) => object.kind === kind)?.['webhooks'] ?? []) as readonly Webhook[];

async function webhooksOf(kind: string, values: object = {}): Promise<readonly Webhook[]> {
  return webhooksIn(kind, await renderChart(values));
}

const injectionOf = (values: object = {}) => webhooksOf('MutatingWebhookConfiguration', values);
const validationOf = (validation: object, values: object = {}) =>
  webhooksOf('ValidatingWebhookConfiguration', { validation, ...values });

/** How many entries match a Pod. */
function matching(all: readonly Webhook[], namespace: string, namespaceLabels: Labels, podLabels: Labels): number {
  const webhooks = all.filter(({ name }) => name !== PROBE);
  const labels = { ...namespaceLabels, 'kubernetes.io/metadata.name': namespace };
  return webhooks.filter((each) => selects(each.namespaceSelector, labels) && selects(each.objectSelector, podLabels))
    .length;
}

const enabled = { 'istio-injection': 'enabled' };
const disabled = { 'istio-injection': 'disabled' };
const no = { 'sidecar.istio.io/inject': 'false' };
const yes = { 'sidecar.istio.io/inject': 'true' };
const rev = (name: string): Labels => ({ 'istio.io/rev': name });

withPeers(['helm'], 'the webhooks of the chart', () => {
  test.each<[string, string, Labels, Labels, boolean]>([
    ['', 'an enabled namespace', enabled, {}, true],
    ['', 'an enabled namespace and a Pod that does not want it', enabled, no, false],
    ['', 'an enabled namespace of a revision', { ...enabled, ...rev('canary') }, {}, true],
    ['', 'a disabled namespace and a Pod that wants it', disabled, yes, false],
    ['', 'a disabled namespace and a Pod of the revision', disabled, rev('default'), false],
    ['', 'a disabled namespace of the revision', { ...disabled, ...rev('default') }, {}, false],
    ['', 'a namespace of the revision', rev('default'), {}, true],
    ['', 'a namespace of another revision', rev('canary'), yes, false],
    ['', 'no labels', {}, {}, false],
    ['', 'a Pod that wants it', {}, yes, true],
    ['', 'a Pod that wants it, of the revision', {}, { ...yes, ...rev('default') }, true],
    ['', 'a Pod that wants it, of another revision', {}, { ...yes, ...rev('canary') }, false],
    ['', 'a Pod of the revision', {}, rev('default'), true],
    ['', 'a Pod of the revision that does not want it', {}, { ...no, ...rev('default') }, false],
    ['canary', 'an enabled namespace', enabled, {}, false],
    ['canary', 'a namespace of the revision', rev('canary'), {}, true],
    ['canary', 'a namespace of the default revision', rev('default'), {}, false],
    ['canary', 'a Pod of the revision', {}, rev('canary'), true],
    ['canary', 'a Pod that wants it', {}, yes, false],
  ])('revision "%s" asks about a Pod with %s: %j %j %j', async (revision, _, namespace, pod, expected) => {
    expect(matching(await injectionOf({ revision }), 'shop', namespace, pod)).toBe(expected ? 1 : 0);
  });

  test.each([
    ['', 'default'],
    ['canary', 'canary'],
  ])('istioctl finds the one of revision "%s" by its names and labels', async (revision, label) => {
    const enabledByDefault = { injection: { enableNamespacesByDefault: true }, labels: { app: 'istiod' } };
    const objects = await renderChart({ revision, validation: { enabled: true }, ...enabledByDefault });
    const find = (kind: string): ChartObject => objects.find((object) => object.kind === kind)!;
    expect(find('MutatingWebhookConfiguration').metadata.labels).toMatchObject({
      app: 'sidecar-injector',
      'istio.io/rev': label,
    });
    const names = webhooksIn('MutatingWebhookConfiguration', objects).map(({ name }) => name);
    const kinds = ['rev.namespace', 'rev.object', ...(revision === '' ? ['namespace', 'object', 'auto'] : [])];
    expect(names).toEqual([...kinds.map((kind) => `${kind}.sidecar-injector.istio.io`), PROBE]);
    // An istiod of the same revision writes its own roots in such a configuration of objects, whatever its entries are.
    expect(find('ValidatingWebhookConfiguration').metadata.labels).not.toHaveProperty(['istio.io/rev']);
  });

  test('asks about Pods by the other names of its revision', async () => {
    const webhooks = await injectionOf({ revision: 'v2', injection: { tags: ['stable', 'default'] } });
    for (const name of ['v2', 'stable', 'default']) {
      expect(matching(webhooks, 'shop', rev(name), {})).toBe(1);
      expect(matching(webhooks, 'shop', {}, rev(name))).toBe(1);
    }
    expect(matching(webhooks, 'shop', enabled, {})).toBe(1);
    expect(matching(webhooks, 'shop', rev('v1'), {})).toBe(0);
  });

  test('asks about Pods without labels where these are to be injected', async () => {
    const webhooks = await injectionOf({ injection: { enableNamespacesByDefault: true } });
    expect([{}, yes].map((labels) => matching(webhooks, 'shop', {}, labels))).toEqual([1, 1]);
    for (const labels of [no, rev('canary')]) expect(matching(webhooks, 'shop', {}, labels)).toBe(0);
    for (const labels of [disabled, rev('canary')]) expect(matching(webhooks, 'shop', labels, {})).toBe(0);
    for (const namespace of ['kube-system', NAMESPACE]) expect(matching(webhooks, namespace, {}, {})).toBe(0);
  });

  test('never asks about Pods of the system, nor about its own', async () => {
    const webhooks = await injectionOf({ injection: { excludedNamespaces: ['vault'] } });
    for (const namespace of ['kube-system', 'kube-public', 'kube-node-lease', 'vault'])
      for (const labels of [enabled, rev('default'), {}])
        for (const pod of [{}, yes, rev('default')]) expect(matching(webhooks, namespace, labels, pod)).toBe(0);
    // A gateway beside it may ask for a proxy by itself.
    for (const labels of [enabled, rev('default'), {}]) expect(matching(webhooks, NAMESPACE, labels, {})).toBe(0);
    expect(matching(webhooks, NAMESPACE, {}, yes)).toBe(1);
    const objects = await renderChart();
    const deployment = objects.find(({ kind }) => kind === 'Deployment')!['spec'] as {
      template: { metadata: { labels: Labels } };
    };
    const own = deployment.template.metadata.labels;
    for (const labels of [enabled, rev('default'), {}]) expect(matching(webhooks, NAMESPACE, labels, own)).toBe(0);
  });

  test('lead to the Service of the release, by the name in its certificate', async () => {
    const objects = await renderChart({ validation: { enabled: true } });
    const service = objects.find(({ kind }) => kind === 'Service')!;
    const { ports } = service['spec'] as { ports: { port: number; targetPort: string }[] };
    const configurations = objects.filter(({ kind }) => kind.endsWith('WebhookConfiguration'));
    expect(configurations).toHaveLength(2);
    for (const { webhooks } of configurations as unknown as { webhooks: Webhook[] }[])
      for (const { clientConfig } of webhooks)
        expect(clientConfig).toEqual({
          service: {
            name: service.metadata.name,
            namespace: NAMESPACE,
            port: ports.find(({ targetPort }) => targetPort === 'https-webhook')!.port,
            path: expect.stringMatching(/^\/(inject|validate)$/) as string,
          },
        });
  });

  test('ask about the kinds that are read', () => {
    const asked = validationRules.flatMap(({ apiGroups, resources }) =>
      resources.map((each) => `${apiGroups.join()}/${each}`),
    );
    expect(asked.sort()).toEqual(
      kinds.flatMap(({ custom, group, plural }) => (custom ? [`${group}/${plural}`] : [])).sort(),
    );
    for (const { operations } of validationRules) expect(operations).toEqual(['CREATE', 'UPDATE']);
  });

  test('ask about objects of their revision, and of none', async () => {
    const asked = async (revision: string, labels: Labels): Promise<number> =>
      (await validationOf({ enabled: true }, { revision })).filter((each) => selects(each.objectSelector, labels))
        .length;
    for (const labels of [{}, rev('canary')]) expect(await asked('', labels)).toBe(1);
    expect([
      await asked('canary', {}),
      await asked('canary', rev('canary')),
      await asked('canary', rev('other')),
    ]).toEqual([1, 1, 0]);
  });

  test('have nothing that the control plane writes, so that no tool undoes it, and ask about nothing before', async () => {
    for (const failurePolicy of ['Ignore', 'Fail']) {
      const objects = await renderChart({ validation: { enabled: true, failurePolicy } });
      for (const kind of ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'])
        for (const webhook of webhooksIn(kind, objects)) {
          expect(webhook.clientConfig).not.toHaveProperty('caBundle');
          if (webhook.name === PROBE) expect(webhook.failurePolicy).toBe('Ignore');
          else for (const written of ['rules', 'failurePolicy']) expect(webhook).not.toHaveProperty(written);
        }
      const { container } = deploymentOf(objects);
      expect(configOf((container['args'] as string[]).slice(1)).webhooks?.failClosed).toBe(failurePolicy === 'Fail');
    }
  });

  test('find out whether they are reached with an object that their account may create', async () => {
    for (const [values, resource] of [
      [{}, 'fairlead.dev/replicareports'],
      [{ remote: { enabled: true, addresses: ['10.0.0.1'] }, clusterId: 'east' }, '/configmaps'],
    ] as const) {
      const objects = await renderChart(values);
      const probe = webhooksIn('MutatingWebhookConfiguration', objects).find(({ name }) => name === PROBE);
      expect(probe?.rules.map(({ apiGroups, resources }) => `${apiGroups.join()}/${resources.join()}`)).toEqual([
        resource,
      ]);
      const granted = permissionsOf(objects, 'fairlead', NAMESPACE).map(printPermission);
      expect(granted.some((each) => each.startsWith(`create ${resource}`))).toBe(true);
    }
  });

  test('are not there where nobody wants them', async () => {
    const objects = await renderChart({ injection: { enabled: false } });
    expect(objects.filter(({ kind }) => kind.endsWith('WebhookConfiguration'))).toEqual([]);
    expect(JSON.stringify(objects)).not.toMatch(/webhook/);
  });
});
