import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { generationKey } from '../../src/mesh/objects/in-force.ts';
import { TestMesh, connectedProxy, readObjects } from '../harness/mesh.ts';
import { runs } from '../../src/testing/runs.ts';

const OWN = 'Kubernetes';

const service = (name: string, address: string) =>
  readObjects(`
apiVersion: v1
kind: Service
metadata: { namespace: shop, name: ${name}, creationTimestamp: "2026-01-01T00:00:00Z" }
spec: { clusterIP: ${address}, ports: [{ name: tcp, port: 9000 }] }
`);

/** @param pod behind the first address. */
const slice = (name: string, addresses: readonly string[], pod?: string): KubernetesObject =>
  ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: 'shop', name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'tcp', port: 9000, protocol: 'TCP' }],
    endpoints: addresses.map((address, i) => ({
      addresses: [address],
      ...(i === 0 && pod !== undefined && { targetRef: { kind: 'Pod', namespace: 'shop', name: pod } }),
    })),
  }) as KubernetesObject;

const pod = (name: string, address: string, account: string) =>
  readObjects(`
apiVersion: v1
kind: Pod
metadata: { namespace: shop, name: ${name}, labels: { app: ${account} } }
spec: { serviceAccountName: ${account}, nodeName: node }
status: { podIP: ${address}, phase: Running, conditions: [{ type: Ready, status: "True" }] }
`);

const node = (region: string) =>
  readObjects(`
apiVersion: v1
kind: Node
metadata: { name: node, labels: { topology.kubernetes.io/region: ${region} } }
`);

const proxyIn = (cluster: string, name = 'client') =>
  connectedProxy(`${cluster}/${name}`, {
    id: `sidecar~10.1.0.1~${name}.shop~shop.svc.cluster.local`,
    metadata: { NAMESPACE: 'shop', CLUSTER_ID: cluster },
  });

function meshOf(...remote: readonly string[]): TestMesh {
  const mesh = new TestMesh();
  mesh.commit(remote.map((id) => mesh.mesh.inputs.remoteClusters.write(id, { id })));
  return mesh;
}

interface Assignment {
  readonly clusterName: string;
  readonly endpoints?: readonly { readonly lbEndpoints?: readonly unknown[] }[];
}

/** Addresses of the endpoints of a service, as a proxy has them. */
function endpointsOf(mesh: TestMesh, stream: string, name: string): string[] {
  const found = (mesh.json(stream).eds as Assignment[]).filter(({ clusterName: of }) => of.includes(`||${name}.`));
  return [...JSON.stringify(found).matchAll(/"address":"([\d.]+)","portValue"/g)].map(([, address = '']) => address);
}

const listenersOf = (mesh: TestMesh, stream: string): string[] =>
  (mesh.json(stream).lds as { readonly name: string }[]).map(({ name }) => name);

test('a Service of several clusters is one, with the endpoints of all; each proxy uses the address of its own cluster', () => {
  const mesh = meshOf('east');
  mesh.apply([...service('db', '10.0.0.1'), slice('db', ['10.1.0.7'])]);
  mesh.apply([...service('db', '10.9.0.1'), slice('db', ['10.2.0.7'])], 'east');
  for (const cluster of [OWN, 'east', '']) mesh.connect(proxyIn(cluster));
  for (const cluster of [OWN, 'east', ''])
    expect(endpointsOf(mesh, `${cluster}/client`, 'db').sort()).toEqual(['10.1.0.7', '10.2.0.7']);
  expect(listenersOf(mesh, `${OWN}/client`)).toContain('10.0.0.1_9000');
  expect(listenersOf(mesh, '/client')).toContain('10.0.0.1_9000');
  expect(listenersOf(mesh, 'east/client')).toContain('10.9.0.1_9000');
  expect([...mesh.mesh.problems.byObject.entries()]).toEqual([]);
});

test('a proxy that calls its cluster by an alias is in that cluster', () => {
  const mesh = new TestMesh({ mesh: { clusterAliases: { oriental: 'east' } } });
  mesh.commit([mesh.mesh.inputs.remoteClusters.write('east', { id: 'east' })]);
  mesh.apply([...service('db', '10.0.0.1'), slice('db', ['10.1.0.7'])]);
  mesh.apply(service('db', '10.9.0.1'), 'east');
  for (const cluster of ['oriental', 'unknown']) mesh.connect(proxyIn(cluster));
  expect(listenersOf(mesh, 'oriental/client')).toContain('10.9.0.1_9000');
  expect(listenersOf(mesh, 'unknown/client')).toContain('10.0.0.1_9000');
});

test('a Service that only another cluster has is there for all', () => {
  const mesh = meshOf('east');
  mesh.connect(proxyIn(OWN));
  mesh.apply([...service('db', '10.9.0.1'), slice('db', ['10.2.0.7'])], 'east');
  expect(endpointsOf(mesh, `${OWN}/client`, 'db')).toEqual(['10.2.0.7']);
});

test('Pods and Nodes are those of the cluster that the slice, or the proxy, is in', () => {
  const mesh = meshOf('east');
  for (const [cluster, account, address] of [
    [OWN, 'here', '10.1.0.7'],
    ['east', 'there', '10.2.0.7'],
  ] as const) {
    mesh.apply(
      [
        ...node(account),
        ...pod('db-0', address, account),
        ...service('db', '10.0.0.1'),
        slice('db', [address], 'db-0'),
      ],
      cluster,
    );
    mesh.connect(proxyIn(cluster, 'db-0'));
  }
  const endpoints = mesh.mesh.endpoints.lists.flatMap((list) =>
    [...list.entries()].flatMap(([, { endpoints }]) => endpoints),
  );
  expect(endpoints.map(({ cluster, locality, identity }) => [cluster, locality, identity]).sort()).toEqual([
    [OWN, 'here//', 'spiffe://cluster.local/ns/shop/sa/here'],
    ['east', 'there//', 'spiffe://cluster.local/ns/shop/sa/there'],
  ]);
  for (const [cluster, account] of [
    [OWN, 'here'],
    ['east', 'there'],
  ] as const) {
    const view = mesh.mesh.proxies.get(`${cluster}/db-0`)!;
    expect('error' in view ? view : [view.topology.cluster, view.topology.locality]).toEqual([cluster, `${account}//`]);
  }
});

test('an endpoint that names no Pod is of the one at its address in its own cluster', () => {
  const mesh = meshOf('east');
  const address = '10.1.0.7';
  for (const [cluster, account] of [
    ['east', 'there'],
    [OWN, 'here'],
  ] as const)
    mesh.apply([...pod(account, address, account), ...service('db', '10.0.0.1'), slice('db', [address])], cluster);
  const endpoints = mesh.mesh.endpoints.lists.flatMap((list) =>
    [...list.entries()].flatMap(([, { endpoints }]) => endpoints),
  );
  expect(endpoints.map(({ cluster, identity }) => [cluster, identity]).sort()).toEqual([
    [OWN, 'spiffe://cluster.local/ns/shop/sa/here'],
    ['east', 'spiffe://cluster.local/ns/shop/sa/there'],
  ]);
});

test('hosts of a cluster itself are not mixed with those of others', () => {
  const mesh = meshOf('east');
  const dns = (address: string) => [service('dns', '10.0.0.10'), [slice('dns', [address])]].flat().map(inSystem);
  mesh.apply(dns('10.1.0.2'));
  mesh.apply(dns('10.2.0.2'), 'east');
  for (const cluster of [OWN, 'east']) mesh.connect(proxyIn(cluster));
  expect(endpointsOf(mesh, `${OWN}/client`, 'dns')).toEqual(['10.1.0.2']);
  expect(endpointsOf(mesh, 'east/client', 'dns')).toEqual(['10.2.0.2']);
});

function inSystem(object: KubernetesObject): KubernetesObject {
  return { ...object, metadata: { ...object.metadata, namespace: 'kube-system' } };
}

const entry = (name: string, address: string, labels = '{ app: db }') =>
  readObjects(`
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: { namespace: shop, name: ${name}, labels: ${labels} }
spec: { address: ${address}, serviceAccount: vm }
`);

const selecting = (address: string, selector: string): KubernetesObject[] =>
  service('db', address).map((object) => ({ ...object, spec: { ...specOf(object), selector: { app: selector } } }));

const specOf = (object: KubernetesObject): object => (object as KubernetesObject & { readonly spec: object }).spec;

test('a Service selects WorkloadEntries of its own cluster, by its own selector; a ServiceEntry those of all', () => {
  const mesh = meshOf('east', 'west');
  mesh.connect(proxyIn(OWN));
  mesh.apply([...selecting('10.0.0.1', 'db'), ...entry('one', '10.1.0.1')]);
  mesh.apply([...selecting('10.9.0.1', 'other'), ...entry('one', '10.2.0.1')], 'east');
  mesh.apply(entry('two', '10.3.0.1'), 'west');
  expect(endpointsOf(mesh, `${OWN}/client`, 'db')).toEqual(['10.1.0.1']);
  mesh.apply(entry('three', '10.2.0.3', '{ app: other }'), 'east');
  expect(endpointsOf(mesh, `${OWN}/client`, 'db').sort()).toEqual(['10.1.0.1', '10.2.0.3']);
  mesh.apply(
    readObjects(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { namespace: shop, name: db }
spec:
  hosts: [db.example.com]
  ports: [{ number: 9000, name: tcp, protocol: TCP }]
  resolution: STATIC
  workloadSelector: { labels: { app: db } }
`),
  );
  expect(endpointsOf(mesh, `${OWN}/client`, 'db.example').sort()).toEqual(['10.1.0.1', '10.2.0.1', '10.3.0.1']);
});

test('nothing is to be written about WorkloadEntries of other clusters', () => {
  const mesh = meshOf('east');
  mesh.apply(entry('one', '10.1.0.1'));
  mesh.apply(entry('two', '10.2.0.1'), 'east');
  const of = (key: string) => mesh.mesh.verdicts.get(generationKey('WorkloadEntry', key));
  expect(of(`${OWN}/shop/one`)).toMatchObject({ name: 'one' });
  expect(of('east/shop/two')).toBeUndefined();
});

test('a virtual machine is described by the WorkloadEntry of its own cluster', () => {
  const mesh = meshOf('east');
  mesh.apply(entry('vm', '10.1.0.1', '{ istio-locality: here }'));
  mesh.apply(entry('vm', '10.1.0.1', '{ istio-locality: there }'), 'east');
  for (const [cluster, locality] of [
    [OWN, 'here'],
    ['east', 'there'],
  ] as const) {
    mesh.connect(proxyIn(cluster, 'vm'));
    const view = mesh.mesh.proxies.get(`${cluster}/vm`)!;
    expect('error' in view ? view : [view.topology.cluster, view.topology.locality]).toEqual([cluster, locality]);
  }
});

const meshConfig = (text: string) =>
  ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'istio-system', name: 'istio' },
    data: { mesh: text },
  }) as KubernetesObject;

/** Who may serve, as clients in the own cluster are told. */
function identitiesOf(mesh: TestMesh): string[] {
  const found = JSON.stringify(mesh.json(`${OWN}/client`).cds).matchAll(/"exact":"spiffe:\/\/([^"]+)"/g);
  return [...new Set(Array.from(found, ([, identity = '']) => identity))].sort();
}

test('the mesh config of another cluster says what the trust domain there is, and nothing else', () => {
  const mesh = new TestMesh();
  mesh.commit(['east', 'west'].map((id) => mesh.mesh.inputs.remoteClusters.write(id, { id })));
  mesh.connect({ ...proxyIn(OWN), metadata: { NAMESPACE: 'shop', CLUSTER_ID: OWN, ISTIO_VERSION: '1.30.0' } });
  mesh.apply([meshConfig('{ trustDomain: own.example, trustDomainAliases: [old.example] }')]);
  for (const [cluster, address] of [
    [OWN, '10.1.0.7'],
    ['east', '10.2.0.7'],
    ['west', '10.3.0.7'],
  ] as const) {
    const [proxied] = pod('db-0', address, `in-${cluster.toLowerCase()}`);
    const labels = { 'security.istio.io/tlsMode': 'istio' };
    mesh.apply(
      [
        { ...proxied!, metadata: { ...proxied!.metadata, labels } },
        ...service('db', '10.0.0.1'),
        slice('db', [address], 'db-0'),
      ],
      cluster,
    );
  }
  const all = (east: string) =>
    [
      ...['own.example', 'old.example'].map((domain) => `${domain}/ns/shop/sa/in-kubernetes`),
      ...[east, 'old.example'].map((domain) => `${domain}/ns/shop/sa/in-east`),
      ...['own.example', 'old.example'].map((domain) => `${domain}/ns/shop/sa/in-west`),
    ].sort();
  expect(identitiesOf(mesh)).toEqual(all('own.example'));
  mesh.apply([meshConfig("{ trustDomain: east.example, defaultServiceExportTo: ['.'] }")], 'east');
  expect(identitiesOf(mesh)).toEqual(all('east.example'));
  mesh.apply([meshConfig('{}')], 'east');
  expect(identitiesOf(mesh)).toEqual(all('cluster.local'));
  mesh.apply([meshConfig('trustDomain: "no domain"')], 'east');
  expect(identitiesOf(mesh)).toEqual(all('own.example'));
  expect([...mesh.mesh.problems.byObject.entries()].map(([, [problem]]) => problem)).toMatchObject([
    { object: { source: 'east', name: 'istio' }, field: 'data.mesh.trustDomain', reason: 'Invalid' },
  ]);
});

test('what is served is what each cluster has last said', () => {
  const clusters = [OWN, 'east', 'west'];
  const event = fc.record({
    cluster: fc.constantFrom(...clusters),
    name: fc.constantFrom('a', 'b'),
    hasService: fc.boolean(),
    addresses: fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { maxLength: 3 }),
  });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 12 }), (events) => {
      const mesh = meshOf('east', 'west');
      mesh.connect(proxyIn(OWN));
      const said = new Map<string, (typeof events)[number]>();
      for (const each of events) {
        const { cluster, name, hasService, addresses } = each;
        said.set(`${cluster}/${name}`, each);
        const objects = [
          ...service(name, `10.0.0.${clusters.indexOf(cluster) + 1}`),
          slice(name, addresses.map(at(cluster))),
        ];
        if (hasService) mesh.apply(objects.slice(0, 1), cluster);
        else mesh.delete(objects.slice(0, 1), cluster);
        mesh.apply(objects.slice(1), cluster);
        for (const of of ['a', 'b']) {
          const about = clusters.flatMap((one) => said.get(`${one}/${of}`) ?? []);
          const served = about.some((one) => one.hasService);
          const all = about.flatMap((one) => one.addresses.map(at(one.cluster)));
          expect(endpointsOf(mesh, `${OWN}/client`, of).sort()).toEqual(served ? all.sort() : []);
        }
      }
    }),
    { numRuns: runs(40) },
  );

  function at(cluster: string): (last: number) => string {
    return (last) => `10.${clusters.indexOf(cluster) + 1}.0.${last}`;
  }
});
