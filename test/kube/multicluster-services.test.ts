import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { object } from '../features/objects.ts';
import { Program } from '../features/program.ts';
import type { Proxy } from '../features/proxy.ts';
import { borrowApiServer, type BorrowedApiServer } from '../peers/borrowed-api-server.ts';
import { withPeers } from '../peers/with-peers.ts';
import { GROUP, multiclusterCrds } from './multicluster-crds.ts';

const SET = 'outbound|80||reviews.shop.svc.clusterset.local';
const PATH = 'namespaces/shop/serviceexports/reviews';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
}

const service = (port: number): KubernetesObject =>
  object('v1', 'Service', 'reviews', { spec: { ports: [{ name: 'http', port }] } });

function slice(address: string): KubernetesObject {
  const made = object('discovery.k8s.io/v1', 'EndpointSlice', 'reviews-1', {
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
  });
  return { ...made, metadata: { ...made.metadata, labels: { 'kubernetes.io/service-name': 'reviews' } } as never };
}

const exported = (version: string): KubernetesObject => object(`${GROUP}/${version}`, 'ServiceExport', 'reviews', {});

const imported = object(`${GROUP}/v1beta1`, 'ServiceImport', 'reviews', {
  spec: { type: 'ClusterSetIP', ips: ['10.96.77.7'], ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
});

withPeers(['etcd', 'kube-apiserver', 'kubectl'], 'two real API servers, one with an older version of the kinds', () => {
  let own: BorrowedApiServer;
  let west: BorrowedApiServer;
  let program: Program;
  let proxy: Proxy;
  const ends: (() => unknown)[] = [];

  const apply = async (server: BorrowedApiServer, ...items: readonly KubernetesObject[]): Promise<void> => {
    await server.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  };

  async function startWith(...versions: readonly string[]): Promise<BorrowedApiServer> {
    const server = await borrowApiServer();
    ends.push(() => server.stop());
    await server.apply(multiclusterCrds(...versions));
    await server.kubectl('wait', '--for=condition=Established', 'crd', '--all');
    for (const name of ['istio-system', 'shop'])
      await apply(server, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    return server;
  }

  beforeAll(async () => {
    [own, west] = await Promise.all([startWith('v1alpha1', 'v1beta1'), startWith('v1alpha1')]);
    await apply(own, service(80), slice('10.1.0.1'), imported);
    await apply(west, service(80), slice('10.2.0.1'));
    const data = { stringData: { west: await readFile(west.kubeconfig, 'utf8') } };
    const secret = object('v1', 'Secret', 'west', data, 'istio-system');
    await apply(own, {
      ...secret,
      metadata: { ...secret.metadata, labels: { 'istio/multiCluster': 'true' } },
    } as KubernetesObject);
    program = await Program.start(
      { kubeconfig: [own.kubeconfig], multiclusterServices: 'on' },
      { onEnd: (end) => void ends.push(end) },
    );
    proxy = await program.connect(true);
  }, 120_000);
  afterAll(async () => {
    for (const end of ends.reverse()) await end();
  });

  const has = (...addresses: readonly string[]): void =>
    expect(proxy.endpoints()[SET]).toEqual(addresses.map((address) => `${address}:8080`));

  const conditions = async (version = 'v1beta1'): Promise<Record<string, string>> => {
    const { status } = await own.call('GET', `/apis/${GROUP}/${version}/${PATH}`);
    const found = (status as { readonly conditions?: readonly Condition[] } | undefined)?.conditions ?? [];
    return Object.fromEntries(found.map(({ type, status: is, reason }) => [type, `${is} ${reason}`]));
  };

  test('exports of both clusters are endpoints of the import, and their owner is told', async () => {
    await proxy.until(() => has());
    await apply(west, exported('v1alpha1'));
    await proxy.until(() => has('10.2.0.1'));
    await apply(own, exported('v1beta1'));
    await proxy.until(() => has('10.1.0.1', '10.2.0.1'));
    await own.kubectl('wait', '--for=condition=Ready', '-n', 'shop', `serviceexports.${GROUP}/reviews`);
    const good = { Valid: 'True Valid', Ready: 'True Exported' };
    expect(await conditions()).toEqual({ ...good, Conflict: 'False NoConflicts' });
    await apply(west, service(81));
    await expect.poll(() => conditions()).toEqual({ ...good, Conflict: 'True PortConflict' });
    const { status = {} } = await west.call('GET', `/apis/${GROUP}/v1alpha1/${PATH}`);
    expect(status).toEqual({});
  });

  test('a condition that another program has written is left to it from then on', async () => {
    const path = `/apis/${GROUP}/v1beta1/${PATH}/status`;
    const before = (await own.call('GET', path)) as {
      readonly status?: { readonly conditions?: readonly Condition[] };
    };
    const theirs = (before.status?.conditions ?? []).map((condition) =>
      condition.type === 'Valid' ? { ...condition, reason: 'Theirs', message: 'Good.' } : condition,
    );
    await own.call('PUT', path, { ...before, status: { conditions: theirs } });
    await apply(west, service(80));
    const rest = { Ready: 'True Exported', Conflict: 'False NoConflicts' };
    await expect.poll(() => conditions()).toEqual({ ...rest, Valid: 'True Theirs' });
  });

  test('goes on in the other version when the API server no longer has the one', async () => {
    await own.apply(multiclusterCrds('v1beta1', 'v1alpha1'));
    for (const plural of ['serviceexports', 'serviceimports'])
      await own.call('PATCH', `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${plural}.${GROUP}`, {
        spec: {
          versions: versionsOf(
            await own.call('GET', `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${plural}.${GROUP}`),
          ),
        },
      });
    await own.kubectl('delete', '-n', 'shop', `serviceexports.v1alpha1.${GROUP}/reviews`);
    await proxy.until(() => has('10.2.0.1'));
    await apply(own, exported('v1alpha1'));
    await proxy.until(() => has('10.1.0.1', '10.2.0.1'));
    await expect.poll(() => conditions('v1alpha1')).toMatchObject({ Valid: 'True Valid', Ready: 'True Exported' });
  }, 120_000);
});

/** The newer version is there, and not served. */
function versionsOf({ spec }: { readonly [member: string]: unknown }): readonly object[] {
  const { versions } = spec as { readonly versions: readonly { readonly name: string }[] };
  return versions.map((version) => ({ ...version, served: version.name !== 'v1beta1' }));
}
