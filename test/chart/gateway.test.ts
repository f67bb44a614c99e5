import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { Json } from '../../src/api/json.ts';
import { injectorWith } from '../injection/case.ts';
import { withPeers } from '../peers/with-peers.ts';
import { type ChartObject, ROOT, helm } from './chart.ts';
import { permissionsOf, printPermission } from './permissions.ts';

const CHART = join(ROOT, 'charts/fairlead-gateway');

async function render(values: object = {}): Promise<ChartObject[]> {
  const { code, stdout, stderr } = await helm('template', 'istio-ingressgateway', CHART, '-n', 'edge', values);
  if (code !== 0) throw new Error(stderr);
  return parseAllDocuments(stdout).flatMap((document) => (document.toJS() as ChartObject | null) ?? []);
}

const named = (objects: readonly ChartObject[], kind: string): ChartObject =>
  objects.find((object) => object.kind === kind) ?? expect.fail(kind);

withPeers(['helm'], 'the chart of gateways', () => {
  test('has nothing that helm lint warns of', async () => {
    const { code, stdout } = await helm('lint', '--strict', CHART);
    expect(stdout).not.toMatch(/WARNING|ERROR/);
    expect(code).toBe(0);
  });

  test('is one workload with what belongs to it, in the namespace of the release', async () => {
    const objects = await render({ podDisruptionBudget: { minAvailable: 1 } });
    expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`).sort()).toEqual(
      [
        ...['Deployment', 'HorizontalPodAutoscaler', 'PodDisruptionBudget', 'Role', 'RoleBinding', 'Service'],
        'ServiceAccount',
      ]
        .map((kind) => `${kind} edge/istio-ingressgateway`)
        .concat(['Role', 'RoleBinding'].map((kind) => `${kind} edge/istio-ingressgateway-credentials`))
        .sort(),
    );
  });

  test('selects its Pods as Gateways do', async () => {
    const objects = await render();
    const { template, selector } = named(objects, 'Deployment')['spec'] as Record<string, Json>;
    const labels = { app: 'istio-ingressgateway', istio: 'ingressgateway' };
    expect(selector).toEqual({ matchLabels: labels });
    expect(template).toMatchObject({ metadata: { labels: { ...labels, 'sidecar.istio.io/inject': 'true' } } });
    expect(named(objects, 'Service')['spec']).toMatchObject({ type: 'LoadBalancer', selector: labels });
  });

  test('has the labels that its values choose, also where it is selected', async () => {
    const labels = { app: 'edge', istio: 'entrance' };
    const objects = await render({ labels: { ...labels, team: 'edge' } });
    const { template, selector } = named(objects, 'Deployment')['spec'] as Record<string, Json>;
    expect(selector).toEqual({ matchLabels: labels });
    expect(template).toMatchObject({ metadata: { labels: { ...labels, team: 'edge' } } });
    expect(named(objects, 'Service')['spec']).toMatchObject({ selector: labels });
  });

  test('is the gateway of a network, which proxies of other networks find and which stays in its own', async () => {
    const objects = await render({ networkGateway: 'east' });
    const { metadata, spec } = named(objects, 'Service') as ChartObject & { readonly spec: Json };
    expect(metadata.labels).toMatchObject({ 'topology.istio.io/network': 'east' });
    expect(spec).toMatchObject({ ports: [{ port: 15021 }, { name: 'tls', port: 15443 }] });
    expect(named(objects, 'Deployment')['spec']).toMatchObject({
      template: {
        metadata: { labels: { 'topology.istio.io/network': 'east' } },
        spec: { containers: [{ env: [{ name: 'ISTIO_META_REQUESTED_NETWORK_VIEW', value: 'east' }] }] },
      },
    });
  });

  test('becomes a router by injection, with what its values say of the proxy', async () => {
    const objects = await render({ env: { TEAM: 'edge' }, resources: { requests: { cpu: '1' } }, revision: '' });
    const { template } = named(objects, 'Deployment')['spec'] as { readonly template: Json };
    const result = injectorWith().inject({
      pod: template,
      namespace: { name: 'edge', labels: {} },
      meshConfig: {},
      parameters: { env: {} },
    });
    expect(result).toMatchObject({
      warnings: [],
      pod: {
        spec: {
          containers: [
            {
              name: 'istio-proxy',
              image: 'fairlead-proxy:1',
              args: ['agent', 'router', '--domain', '$(POD_NAMESPACE).svc.cluster.local'],
              resources: { requests: { cpu: '1' } },
              env: expect.arrayContaining([{ name: 'TEAM', value: 'edge' }]),
            },
          ],
        },
      },
    });
    expect(JSON.stringify(result)).not.toContain('istio-init');
  });

  test('lets the control plane read the Secrets of its namespace, unless somebody else does', async () => {
    const granted = async (controlPlane: object, account = 'fairlead', namespace = 'istio-system') =>
      permissionsOf(await render({ rbac: { controlPlane } }), account, namespace).map(printPermission);
    const rights = ['list', 'watch'].flatMap((verb) =>
      ['secrets', 'configmaps'].map((each) => `${verb} /${each} edge/*`),
    );
    expect((await granted({})).sort()).toEqual(rights.sort());
    expect(await granted({ serviceAccount: 'canary', namespace: 'mesh' })).toEqual([]);
    expect(await granted({ serviceAccount: 'canary', namespace: 'mesh' }, 'canary', 'mesh')).toHaveLength(4);
    expect(await granted({ serviceAccount: '' })).toEqual([]);
  });

  test('has no token for an API server in its Pods', async () => {
    const { template } = named(await render(), 'Deployment')['spec'] as Record<string, Json>;
    expect(template).toMatchObject({ spec: { automountServiceAccountToken: false } });
  });

  test('may be a DaemonSet, without what belongs to Deployments alone', async () => {
    const objects = await render({ kind: 'DaemonSet', service: { type: 'None' }, rbac: { enabled: false } });
    expect(objects.map(({ kind }) => kind).sort()).toEqual(['DaemonSet', 'ServiceAccount']);
  });

  test('refuses values that it does not know', async () => {
    await expect(render({ autoscalling: {} })).rejects.toThrow('autoscalling');
  });
});
