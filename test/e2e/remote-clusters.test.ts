import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createProgram } from '../../src/app.ts';
import { runCli } from '../../src/cli/cli.ts';
import { afterSuite } from '../../src/testing/on-end.ts';
import { Program } from '../features/program.ts';
import type { Proxy } from '../features/proxy.ts';
import { type RunningApiServer, startApiServer } from '../peers/api-server.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';

const REVIEWS = 'outbound|9080||reviews.shop.svc.cluster.local';

withPeers(['etcd', 'kube-apiserver', 'kubectl'], 'another real cluster', () => {
  const onEnd = afterSuite();
  let own: RunningApiServer;
  let east: RunningApiServer;
  let program: Program;
  let proxy: Proxy;
  printLogOnFailure(() => east);

  beforeAll(async () => {
    [own, east] = await Promise.all([startApiServer({ controllers: false }), startApiServer({ controllers: false })]);
    for (const [server, address] of [
      [own, '10.1.0.1'],
      [east, '10.2.0.1'],
    ] as const) {
      await server.kubectl('create', 'namespace', 'shop');
      await server.kubectl('create', 'namespace', 'istio-system');
      await server.apply([service, sliceOf(address)].map((object) => JSON.stringify(object)).join('\n---\n'));
    }
    program = await Program.start({ kubeconfig: [own.kubeconfig] }, { onEnd });
    proxy = await program.connect(true);
  });
  afterAll(async () => {
    await Promise.all([own?.stop(), east?.stop()]);
  });

  /** An account of that name in the other cluster, and the Secret that says so. */
  async function nameEast(account: string, resources: string): Promise<void> {
    await east.kubectl('create', 'serviceaccount', account, '-n', 'istio-system');
    await east.kubectl('create', 'clusterrole', account, '--verb=list,watch', `--resource=${resources}`);
    const who = `--serviceaccount=istio-system:${account}`;
    await east.kubectl('create', 'clusterrolebinding', account, `--clusterrole=${account}`, who);
    const token = (await east.kubectl('create', 'token', account, '-n', 'istio-system')).trim();
    const kubeconfig = await readFile(await east.kubeconfigWithToken(token), 'utf8');
    await own.apply(
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { namespace: 'istio-system', name: 'east', labels: { 'istio/multiCluster': 'true' } },
        stringData: { east: kubeconfig },
      }),
    );
  }

  const has =
    (...addresses: readonly string[]) =>
    (): void =>
      expect(proxy.endpoints()[REVIEWS]).toEqual(addresses.map((address) => `${address}:9080`));

  const clusters = (): Promise<string> => printed();

  async function printed(...options: readonly string[]): Promise<string> {
    let out = '';
    const address = `127.0.0.1:${program.serving.ports.health}`;
    const code = await runCli(['clusters', '--address', address, ...options], {
      program: () => Promise.resolve(createProgram()),
      out: (text) => void (out += text),
      err: (text) => void (out += text),
      env: {},
      signal: new AbortController().signal,
    });
    expect([code, out]).toEqual([0, out]);
    return out;
  }

  test('is not served while one kind may not be read, and it is said which', async () => {
    await nameEast('half', 'configmaps,namespaces,pods,services,endpointslices.discovery.k8s.io');
    await expect.poll(clusters).toMatch(/^east +Node, WorkloadEntry: 403 Forbidden \(allow the account/m);
    has('10.1.0.1')();
  });

  test('is served once its account may read everything', async () => {
    await nameEast('reader', 'namespaces,nodes,pods,services,endpointslices.discovery.k8s.io');
    await program.sent(proxy, has('10.1.0.1', '10.2.0.1'));
    expect(await clusters()).toMatch(/^east +istio-system\/east +SYNCED/m);
    await east.apply(JSON.stringify(sliceOf('10.2.0.1', '10.2.0.2')));
    await program.sent(proxy, has('10.1.0.1', '10.2.0.1', '10.2.0.2'));
  });

  test('has nothing that cannot be read', async () => {
    await east.apply(ODD_BUT_STORED.map((object) => JSON.stringify(object)).join('\n---\n'));
    const report = async () => {
      const { replicas } = JSON.parse(await printed('-o', 'json')) as Reports;
      return replicas[0]!.clusters.find(({ id }) => id === 'east')!;
    };
    // The Service kubernetes is there, too.
    const objects = { Node: 1, Pod: 1, Service: 6, EndpointSlice: 2 };
    await expect.poll(report).toMatchObject({ objects });
    expect(await report()).not.toHaveProperty('unreadable');
  });

  test('changes its account without anything missing meanwhile', async () => {
    const seen = new Set<number>();
    const watching = program.sent(proxy, () => {
      seen.add(proxy.endpoints()[REVIEWS]?.length ?? 0);
      has('10.1.0.1', '10.2.0.2')();
    });
    await nameEast('other', 'namespaces,nodes,pods,services,endpointslices.discovery.k8s.io');
    await east.kubectl('delete', 'clusterrolebinding', 'reader');
    await expect.poll(clusters).toMatch(/^east +istio-system\/east +SYNCED/m);
    await east.apply(JSON.stringify(sliceOf('10.2.0.2')));
    await watching;
    expect(Math.min(...seen)).toBeGreaterThan(1);
  });

  test('keeps what was known while its API server restarts, and then has what changed', async () => {
    await east.restart();
    has('10.1.0.1', '10.2.0.2')();
    await east.apply(JSON.stringify(sliceOf('10.2.0.3')));
    await program.sent(proxy, has('10.1.0.1', '10.2.0.3'));
  });

  test('goes with its Secret', async () => {
    await own.kubectl('delete', 'secret', 'east', '-n', 'istio-system');
    await program.sent(proxy, has('10.1.0.1'));
    await expect.poll(clusters).not.toMatch(/^east/m);
  });
});

interface Reports {
  readonly replicas: readonly {
    readonly clusters: readonly {
      readonly id: string;
      readonly objects?: Readonly<Record<string, number>>;
      readonly unreadable?: number;
    }[];
  }[];
}

/** What an API server stores, although it is not what most have. */
const ODD_BUT_STORED = [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'shop', name: 'default' } },
  {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n.example.com', labels: { 'topology.kubernetes.io/region': 'r' } },
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...{ namespace: 'shop', name: 'a.b-1', labels: { empty: '', 'example.com/Upper_Case.1': 'A' } },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'a', uid: 'u', controller: true }],
    },
    spec: {
      automountServiceAccountToken: false,
      nodeName: 'n.example.com',
      containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 80 }, { containerPort: 53, protocol: 'UDP' }] }],
      initContainers: [{ name: 'd', image: 'i', restartPolicy: 'Always', ports: [{ name: 'x', containerPort: 81 }] }],
    },
  },
  ...[
    { clusterIP: 'None', selector: { a: 'b' } },
    { type: 'ExternalName', externalName: 'a.example.com' },
    { type: 'LoadBalancer', ports: [{ port: 53, protocol: 'UDP' }], externalIPs: ['1.2.3.4'] },
    {
      ports: [
        { port: 1, name: 'http', targetPort: 'b' },
        { port: 2, name: 'c', protocol: 'UDP', appProtocol: 'x.y/z' },
      ],
    },
  ].map((spec, i) => ({ apiVersion: 'v1', kind: 'Service', metadata: { namespace: 'shop', name: `s-${i}` }, spec })),
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: 'shop', name: 'fqdn', labels: { 'kubernetes.io/service-name': 'x' } },
    addressType: 'FQDN',
    ports: [{ name: '', protocol: 'UDP' }],
    endpoints: [{ addresses: ['a.example.com'], conditions: {}, hostname: 'h', zone: 'z' }],
  },
];

const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: 'shop', name: 'reviews' },
  spec: { ports: [{ name: 'http', port: 9080 }] },
};

const sliceOf = (...addresses: readonly string[]): object => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { namespace: 'shop', name: 'reviews-1', labels: { 'kubernetes.io/service-name': 'reviews' } },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 9080, protocol: 'TCP' }],
  endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
});
