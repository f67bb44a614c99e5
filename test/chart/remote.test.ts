import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readInjectionPath } from '../../src/webhooks/injection-path.ts';
import { withPeers } from '../peers/with-peers.ts';
import { CHART, type ChartObject, NAMESPACE, renderChart } from './chart.ts';
import { permissionsOf, printPermission } from './permissions.ts';

const remote = { clusterId: 'east', remote: { enabled: true, addresses: ['10.1.2.3', 'fd00::1'] } };

const named = (objects: readonly ChartObject[]): readonly string[] =>
  objects.map(({ kind, metadata: { name } }) => `${kind} ${name}`).sort();

/** Where an entry of the injection webhook leads. */
async function clientOf(values: object): Promise<object> {
  const objects = await renderChart(values);
  const [first] = objects.find(({ kind }) => kind === 'MutatingWebhookConfiguration')?.['webhooks'] as readonly {
    readonly clientConfig: object;
  }[];
  return first!.clientConfig;
}

withPeers(['helm'], 'the chart in a cluster without a control plane', () => {
  test('makes an account, the webhook, and a Service for the control plane of another cluster, and nothing else', async () => {
    const objects = await renderChart(remote);
    const policies = /^ValidatingAdmissionPolicy/;
    expect(named(objects).filter((each) => !policies.test(each))).toEqual([
      'ClusterRole fairlead-istio-system',
      'ClusterRoleBinding fairlead-istio-system',
      'EndpointSlice fairlead-ipv4',
      'EndpointSlice fairlead-ipv6',
      'MutatingWebhookConfiguration fairlead-istio-system-injection',
      'Role fairlead-istio-system-mesh-config',
      'RoleBinding fairlead-istio-system-mesh-config',
      'Service fairlead',
      'ServiceAccount fairlead',
    ]);
    expect(objects.find(({ kind }) => kind === 'Service')).toMatchObject({
      spec: { ports: [{ port: 15012 }, { port: 15017 }] },
    });
    expect(objects.find(({ kind }) => kind === 'Service')?.['spec']).not.toHaveProperty('selector');
    expect(objects.filter(({ kind }) => kind === 'EndpointSlice')).toMatchObject([
      { addressType: 'IPv4', endpoints: [{ addresses: ['10.1.2.3'] }] },
      { addressType: 'IPv6', endpoints: [{ addresses: ['fd00::1'] }] },
    ]);
  });

  test('names its account in the notes as elsewhere', async () => {
    // helm renders notes only for a cluster.
    const notes = await readFile(join(CHART, 'templates/NOTES.txt'), 'utf8');
    expect(/--service-account=(\S+ \S+ \S+)/.exec(notes)?.[1]).toBe('{{ include "fairlead.serviceAccount"');
  });

  test('grants its account what the control plane reads, asks and writes there', async () => {
    const granted = async (values: object): Promise<string[]> =>
      permissionsOf(await renderChart({ ...remote, ...values }), 'fairlead', NAMESPACE)
        .map(printPermission)
        .sort();
    const asks = ['create authentication.k8s.io/tokenreviews', 'create authorization.k8s.io/subjectaccessreviews'];
    const reads = ['list', 'watch'].flatMap((verb) => [
      ...['namespaces', 'nodes', 'pods', 'services'].map((plural) => `${verb} /${plural}`),
      `${verb} /configmaps ${NAMESPACE}/istio`,
      `${verb} discovery.k8s.io/endpointslices`,
      `${verb} networking.istio.io/workloadentries`,
    ]);
    expect(await granted({ statusWrites: false })).toEqual([...asks, ...reads].sort());
    const all = await granted({});
    expect(all.filter((each) => ![...asks, ...reads].includes(each))).toEqual(
      [
        'create /configmaps',
        ...['list', 'patch', 'watch'].map((verb) => `${verb} /configmaps istio-ca-root-cert`),
        ...['list', 'patch', 'watch'].map(
          (verb) =>
            `${verb} admissionregistration.k8s.io/mutatingwebhookconfigurations fairlead-istio-system-injection`,
        ),
      ].sort(),
    );
    expect(await granted({ credentials: { namespaces: ['shop'] } })).toEqual(
      expect.arrayContaining(['list /secrets shop/*', 'watch /secrets shop/*']),
    );
  });

  test('has Pods injected as those of its cluster and network, wherever the API server asks', async () => {
    const values = { ...remote, proxy: { network: 'a/b' } };
    const path = '/inject/cluster/east/net/a--slash--b';
    const service = { name: 'fairlead', namespace: NAMESPACE, port: 15017 };
    expect(await clientOf(values)).toEqual({ service: { ...service, path } });
    expect(readInjectionPath(path.slice('/inject'.length))).toEqual({
      parameters: { cluster: 'east', network: 'a/b', env: {} },
    });
    const injectionURL = 'https://fairlead.example.com:15017/';
    expect(await clientOf({ ...values, remote: { enabled: true, injectionURL } })).toEqual({
      url: `https://fairlead.example.com:15017${path}`,
    });
    expect(await clientOf({})).toEqual({ service: { ...service, path: '/inject', port: 443 } });
  });

  test('leads to a name by a Service of that name, without addresses', async () => {
    const objects = await renderChart({ ...remote, remote: { enabled: true, addresses: ['fairlead.example.com'] } });
    expect(objects.find(({ kind }) => kind === 'Service')).toMatchObject({
      spec: { type: 'ExternalName', externalName: 'fairlead.example.com' },
    });
    expect(named(objects).join()).not.toContain('EndpointSlice');
  });

  test.each([
    ['set clusterId', { remote: remote.remote }],
    ['set remote.addresses', { clusterId: 'east', remote: { enabled: true } }],
    ['IP addresses, or a single name', { ...remote, remote: { enabled: true, addresses: ['a.example', '10.0.0.1'] } }],
    ['injectionURL', { ...remote, remote: { enabled: true, injectionURL: 'http://a.example' } }],
  ])('refuses values that cannot be meant: %s', async (problem, values) => {
    await expect(renderChart(values)).rejects.toThrow(problem);
  });
});
