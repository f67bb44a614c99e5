import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bytesOf } from '../../src/ads/wire/bytes-of.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { clusterMeshSource } from '../../src/model/cluster-mesh.ts';
import { NAME_TABLE } from '../../src/model/named-host.ts';
import { type EnvoyNode, TestMesh, connectedProxy, readObjects } from '../harness/mesh.ts';
import { readNameTable } from '../harness/names.ts';
import { runs } from '../../src/testing/runs.ts';

const OWN = 'Kubernetes';
const LOCAL = 'db.shop.svc.cluster.local';
const SET = 'db.shop.svc.clusterset.local';

interface Named {
  readonly name?: string;
  readonly namespace?: string;
  /** Year of its creation. */
  readonly since?: number;
}

const meta = ({ name = 'db', namespace = 'shop', since = 2026 }: Named) => ({
  namespace,
  name,
  uid: `${namespace}/${name}`,
  generation: 1,
  creationTimestamp: `${since}-01-01T00:00:00Z`,
});

const service = (spec: object, named: Named = {}): KubernetesObject =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: meta(named),
    spec: { clusterIP: '10.0.0.1', ports: [{ name: 'tcp', port: 9000 }], ...spec },
  }) as KubernetesObject;

const exported = (named: Named = {}): KubernetesObject => ({
  apiVersion: 'multicluster.x-k8s.io/v1alpha1',
  kind: 'ServiceExport',
  metadata: meta(named),
});

const imported = (spec: object = {}, named: Named = {}): KubernetesObject =>
  ({
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: meta(named),
    spec: { type: 'ClusterSetIP', ips: ['10.5.0.1'], ports: [{ name: 'tcp', port: 9000 }], ...spec },
  }) as KubernetesObject;

const slice = (addresses: readonly string[], named: Named = {}, pod?: string): KubernetesObject =>
  ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...meta(named), labels: { 'kubernetes.io/service-name': named.name ?? 'db' } },
    addressType: 'IPv4',
    ports: [{ name: 'tcp', port: 9000, protocol: 'TCP' }],
    endpoints: addresses.map((address, i) => ({
      addresses: [address],
      hostname: `db-${i}`,
      ...(pod !== undefined && { targetRef: { kind: 'Pod', namespace: 'shop', name: pod } }),
    })),
  }) as KubernetesObject;

const pod = (name: string, address: string) =>
  readObjects(`
apiVersion: v1
kind: Pod
metadata: { namespace: shop, name: ${name}, labels: { app: db, security.istio.io/tlsMode: istio } }
spec: { serviceAccountName: ${name} }
status: { podIP: ${address}, phase: Running, conditions: [{ type: Ready, status: "True" }] }
`);

const proxyIn = (cluster: string, metadata: EnvoyNode['metadata'] = {}, type = 'sidecar') =>
  connectedProxy(cluster, {
    id: `${type}~10.1.0.1~client.shop~shop.svc.cluster.local`,
    metadata: { NAMESPACE: 'shop', CLUSTER_ID: cluster, ...metadata },
  });

/** With the own cluster and `east`, and a proxy in each. */
function meshOf({ isOn = true, metadata = {}, type = 'sidecar' } = {}): TestMesh {
  const mesh = new TestMesh({ mesh: { multiclusterServices: isOn } });
  mesh.commit([mesh.mesh.inputs.remoteClusters.write('east', { id: 'east' })]);
  for (const cluster of [OWN, 'east']) mesh.connect(proxyIn(cluster, metadata, type));
  return mesh;
}

/** The database in both clusters, imported in both. */
function shop(mesh: TestMesh): void {
  mesh.apply([service({}), slice(['10.1.0.7']), imported()]);
  mesh.apply([service({ clusterIP: '10.9.0.1' }), slice(['10.2.0.7']), imported({ ips: ['10.5.0.2'] })], 'east');
}

interface Assignment {
  readonly clusterName: string;
}

/** Addresses of the endpoints of a host, as a proxy has them; undefined: it does not know the host. */
function endpointsOf(mesh: TestMesh, stream: string, host: string, subset = ''): string[] | undefined {
  const name = `outbound|9000|${subset}|${host}`;
  const found = (mesh.json(stream).eds as Assignment[]).find(({ clusterName }) => clusterName === name);
  if (found === undefined) return undefined;
  return [...JSON.stringify(found).matchAll(/"address":"([\d.]+)","portValue"/g)]
    .map(([, address = '']) => address)
    .sort();
}

const listenersOf = (mesh: TestMesh, stream: string): string[] =>
  (mesh.json(stream).lds as { readonly name: string }[]).map(({ name }) => name);

const conditionsOf = (mesh: TestMesh, cluster = OWN): Record<string, string> => {
  const { conditions = [] } = mesh.mesh.clusters.exports.get(`${cluster}/shop/db`) ?? {};
  return Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]));
};

const problemsOf = (mesh: TestMesh): string[] =>
  [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) =>
    found.map(({ object, field, reason }) => `${object.source} ${object.kind}/${object.name} ${field} ${reason}`),
  );

const lifted = (host: string): readonly KubernetesObject[] =>
  readObjects(`
apiVersion: v1
kind: ConfigMap
metadata: { namespace: istio-system, name: istio }
data:
  mesh: |
    serviceSettings: [{ settings: { clusterLocal: false }, hosts: ["${host}"] }]
`);

test('a service of the cluster set has the endpoints of the clusters that export it, and an address in each that imports it', () => {
  const mesh = meshOf();
  shop(mesh);
  const all = (host: string) => [OWN, 'east'].map((cluster) => endpointsOf(mesh, cluster, host));
  expect(all(SET)).toEqual([[], []]);
  expect(all(LOCAL)).toEqual([['10.1.0.7'], ['10.2.0.7']]);
  mesh.apply([exported()], 'east');
  expect(all(SET)).toEqual([['10.2.0.7'], ['10.2.0.7']]);
  mesh.apply([exported()]);
  expect(all(SET)).toEqual([
    ['10.1.0.7', '10.2.0.7'],
    ['10.1.0.7', '10.2.0.7'],
  ]);
  expect(all(LOCAL)).toEqual([['10.1.0.7'], ['10.2.0.7']]);
  expect(listenersOf(mesh, OWN)).toEqual(expect.arrayContaining(['10.0.0.1_9000', '10.5.0.1_9000']));
  expect(listenersOf(mesh, 'east')).toEqual(expect.arrayContaining(['10.9.0.1_9000', '10.5.0.2_9000']));
  expect(listenersOf(mesh, OWN)).not.toContain('10.5.0.2_9000');
  mesh.delete([exported()]);
  expect(all(SET)).toEqual([['10.2.0.7'], ['10.2.0.7']]);
  mesh.delete([imported()]);
  mesh.delete([imported()], 'east');
  expect(all(SET)).toEqual([undefined, undefined]);
});

test('without the setting, Services are those of all clusters, and the host does not exist', () => {
  const mesh = meshOf({ isOn: false });
  shop(mesh);
  mesh.apply([exported()]);
  mesh.apply([exported()], 'east');
  for (const cluster of [OWN, 'east']) {
    expect(endpointsOf(mesh, cluster, LOCAL)).toEqual(['10.1.0.7', '10.2.0.7']);
    expect(endpointsOf(mesh, cluster, SET)).toBeUndefined();
  }
  expect(problemsOf(mesh)).toContain(`${OWN} ServiceImport/db kind Ineffective`);
  expect(problemsOf(mesh)).toContain(`${OWN} ServiceExport/db kind Ineffective`);
});

test.each(['*', '*.svc.cluster.local', LOCAL])(
  'the mesh config may lift the limit for %s: then exported endpoints of other clusters are for all, and others are not',
  (host) => {
    const mesh = meshOf();
    shop(mesh);
    mesh.apply(lifted(host));
    expect(endpointsOf(mesh, OWN, LOCAL)).toEqual(['10.1.0.7']);
    mesh.apply([exported()], 'east');
    expect(endpointsOf(mesh, OWN, LOCAL)).toEqual(['10.1.0.7', '10.2.0.7']);
    expect(endpointsOf(mesh, 'east', LOCAL)).toEqual(['10.2.0.7']);
  },
);

test('a proxy that names no cluster, or one that nobody knows, is in the own one', () => {
  const mesh = meshOf();
  shop(mesh);
  for (const cluster of ['', 'made-up']) {
    mesh.connect(proxyIn(cluster));
    expect(endpointsOf(mesh, cluster, LOCAL)).toEqual(['10.1.0.7']);
  }
});

test('what is exported has the ports of all Services, and for the rest is like that of the oldest export', () => {
  const mesh = meshOf();
  mesh.apply([service({ ports: [{ name: 'tcp', port: 9000 }] }), exported({ since: 2024 }), imported({ ports: [] })]);
  const other = {
    ports: [
      { name: 'tcp', port: 9001 },
      { name: 'http', port: 80 },
      { name: 'same', port: 9000 },
    ],
  };
  const hidden = service(other);
  mesh.apply(
    [
      { ...hidden, metadata: { ...hidden.metadata, annotations: { 'networking.istio.io/exportTo': '.' } } },
      exported({ since: 2025 }),
    ],
    'east',
  );
  const found = mesh.mesh.services.get(`shop/${SET}`);
  expect(found?.ports.map(({ name, number }) => `${name} ${number}`)).toEqual(['tcp 9000', 'http 80']);
  expect(found?.exportTo).toEqual(['*']);
  mesh.apply([exported({ since: 2023 })], 'east');
  const turned = mesh.mesh.services.get(`shop/${SET}`);
  expect(turned?.ports.map(({ name, number }) => `${name} ${number}`)).toEqual(['tcp 9001', 'http 80', 'same 9000']);
  expect(turned?.exportTo).toEqual(['shop']);
});

test('while nobody exports it, an import has its own ports, and its owner is told', () => {
  const mesh = meshOf();
  mesh.apply([imported()]);
  expect(endpointsOf(mesh, OWN, SET)).toEqual([]);
  expect(listenersOf(mesh, OWN)).toContain('10.5.0.1_9000');
  expect(problemsOf(mesh)).toEqual([`${OWN} ServiceImport/db  RefNotFound`]);
});

test('identities are those of the clusters that export it, and rules and routes for the host apply', () => {
  const mesh = meshOf({ metadata: { ISTIO_VERSION: '1.30.0' } });
  mesh.apply([service({}), slice(['10.1.0.7'], {}, 'here'), ...pod('here', '10.1.0.7'), imported()]);
  mesh.apply([service({}), slice(['10.2.0.7'], {}, 'there'), ...pod('there', '10.2.0.7'), exported()], 'east');
  mesh.apply(
    readObjects(`
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { namespace: shop, name: db }
spec:
  host: ${SET}
  trafficPolicy: { connectionPool: { tcp: { maxConnections: 7 } } }
  subsets: [{ name: v1, labels: { app: db } }, { name: v2, labels: { app: other } }]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { namespace: shop, name: db }
spec:
  hosts: [${SET}]
  tcp: [{ route: [{ destination: { host: ${SET}, subset: v1 } }] }]
`),
  );
  const { cds, lds } = mesh.json(OWN);
  const cluster = JSON.stringify((cds as { name: string }[]).find(({ name }) => name === `outbound|9000||${SET}`));
  expect(cluster).toContain('/sa/there"');
  expect(cluster).not.toContain('/sa/here"');
  expect(cluster).toContain('"maxConnections":7');
  expect(endpointsOf(mesh, OWN, SET, 'v1')).toEqual(['10.2.0.7']);
  expect(endpointsOf(mesh, OWN, SET, 'v2')).toEqual([]);
  const listener = JSON.stringify((lds as { name: string }[]).find(({ name }) => name === '10.5.0.1_9000'));
  expect(listener).toContain(`"cluster":"outbound|9000|v1|${SET}"`);
});

test('HTTP requests find it by its name and its address, and never by a short name', () => {
  const mesh = meshOf();
  const ports = [{ name: 'http', port: 80 }];
  mesh.apply([service({ ports }), exported(), imported()]);
  const tables = mesh.json(OWN).rds as { name: string; virtualHosts: { name: string; domains: string[] }[] }[];
  const hosts = tables.find(({ name }) => name === '80')!.virtualHosts;
  const domainsOf = (host: string) => hosts.find(({ name }) => name === `${host}:80`)?.domains;
  expect(domainsOf(SET)).toEqual([SET, `${SET}.`, '10.5.0.1']);
  expect(domainsOf(LOCAL)).toEqual(expect.arrayContaining([LOCAL, 'db', '10.0.0.1']));
});

test('agents resolve its name, without short forms, and Pods of a headless one', () => {
  const metadata = { DNS_CAPTURE: 'true', ISTIO_VERSION: '1.30.0' };
  const mesh = meshOf({ metadata });
  const headless = { clusterIP: 'None' };
  shop(mesh);
  const head = { name: 'pods' };
  mesh.apply([
    ...[service(headless, head), slice(['10.1.0.8'], head), exported(head)],
    ...[imported({ type: 'Headless', ips: [] }, head), exported()],
  ]);
  mesh.apply([service(headless, head), slice(['10.2.0.8'], head), exported(head)], 'east');
  mesh.commit([mesh.mesh.inputs.asked.write(OWN, { typeUrls: [NAME_TABLE] })]);
  const table = readNameTable(bytesOf(mesh.resources(OWN).find(({ typeUrl }) => typeUrl === NAME_TABLE)!.body));
  expect(table).toMatchObject({
    [SET]: { ips: ['10.5.0.1'] },
    'pods.shop.svc.clusterset.local': { ips: ['10.1.0.8', '10.2.0.8'] },
    'pods.shop.svc.cluster.local': { ips: ['10.1.0.8'] },
  });
  expect(table[SET]).not.toHaveProperty('shortname');
});

test('a ServiceEntry in another namespace takes neither its address nor the names of its Pods', () => {
  const mesh = meshOf({ metadata: { DNS_CAPTURE: 'true', ISTIO_VERSION: '1.30.0' } });
  const ports = [{ name: 'http', port: 80 }];
  const head = { name: 'pods' };
  const pod = `db-0.${OWN}.pods.shop.svc.clusterset.local`.toLowerCase();
  const entry = (name: string, host: string, addresses: readonly string[]) =>
    ({
      apiVersion: 'networking.istio.io/v1',
      kind: 'ServiceEntry',
      metadata: meta({ name, namespace: 'bank', since: 2000 }),
      spec: {
        hosts: [host],
        addresses,
        ports: [{ name: 'http', number: 80, protocol: 'HTTP' }],
        resolution: 'STATIC',
        endpoints: [{ address: '192.0.2.1' }],
      },
    }) as KubernetesObject;
  mesh.apply([
    ...[service({ ports }), exported(), imported({ ports })],
    ...[service({ clusterIP: 'None' }, head), slice(['10.1.0.8'], head), exported(head)],
    imported({ type: 'Headless', ips: [] }, head),
    ...[entry('a', 'a.example.com', ['10.5.0.1']), entry('b', '10.5.0.1', []), entry('c', pod, ['240.0.0.1'])],
  ]);
  const tables = mesh.json(OWN).rds as { virtualHosts: { name: string; domains: string[] }[] }[];
  const owners = tables.flatMap(({ virtualHosts }) =>
    virtualHosts.filter(({ domains }) => domains.includes('10.5.0.1')).map(({ name }) => name),
  );
  expect(owners).toEqual([`${SET}:80`]);
  mesh.commit([mesh.mesh.inputs.asked.write(OWN, { typeUrls: [NAME_TABLE] })]);
  const table = readNameTable(bytesOf(mesh.resources(OWN).find(({ typeUrl }) => typeUrl === NAME_TABLE)!.body));
  expect(table[pod]).toMatchObject({ ips: ['10.1.0.8'] });
});

test('a Service at the address of an import of another name stands in for it, and is not served', () => {
  const mesh = meshOf();
  shop(mesh);
  mesh.apply([exported(), service({ clusterIP: '10.5.0.1' }, { name: 'derived-db' })]);
  expect(mesh.mesh.services.get('shop/derived-db.shop.svc.cluster.local')).toBeUndefined();
  expect(endpointsOf(mesh, OWN, SET)).toEqual(['10.1.0.7']);
  // Elsewhere the address is another one.
  mesh.apply([service({ clusterIP: '10.5.0.1' }, { name: 'other', namespace: 'bank' })], 'east');
  expect(mesh.mesh.services.get('bank/other.bank.svc.cluster.local')).toBeDefined();
});

test.each([
  ['is not an address', ['nonsense'], 'spec.ips[0] Invalid'],
  ['is that of a Service in another namespace', ['10.0.0.9'], 'spec.ips[0] Conflicted'],
  ['is missing', [], 'spec.ips Ineffective'],
  ['is the third', ['10.5.0.1', 'fd00::1', '10.5.0.3'], 'spec.ips Ineffective'],
])('an address of an import that %s is not used, and its owner is told', (_, ips, problem) => {
  const mesh = meshOf();
  mesh.apply([service({}), exported(), service({ clusterIP: '10.0.0.9' }, { name: 'own', namespace: 'bank' })]);
  mesh.apply([imported({ ips })]);
  expect(problemsOf(mesh)).toEqual([`${OWN} ServiceImport/db ${problem}`]);
  expect(mesh.mesh.services.get(`shop/${SET}`)?.addresses).toEqual(ips.length > 2 ? ips.slice(0, 2) : undefined);
});

test('a ServiceExport says whether it is valid, exported, and like those of other clusters', () => {
  const mesh = meshOf();
  const good = { Valid: 'True Valid', Ready: 'True Exported', Conflict: 'False NoConflicts' };
  const bad = (reason: string) => ({ Valid: `False ${reason}`, Ready: 'False Failed', Conflict: 'False NoConflicts' });
  mesh.apply([exported()]);
  expect(conditionsOf(mesh)).toEqual(bad('NoService'));
  mesh.apply([service({ type: 'ExternalName', externalName: 'example.com', clusterIP: '' })]);
  expect(conditionsOf(mesh)).toEqual(bad('InvalidServiceType'));
  mesh.apply([service({})]);
  expect(conditionsOf(mesh)).toEqual(good);
  mesh.apply([service({ clusterIP: '10.9.0.1' }), exported({ since: 2020 })], 'east');
  expect(conditionsOf(mesh)).toEqual(good);
  const differing: [string, object][] = [
    ['PortConflict', { ports: [{ name: 'tcp', port: 9001 }] }],
    ['TypeConflict', { clusterIP: 'None' }],
    ['SessionAffinityConflict', { sessionAffinity: 'ClientIP' }],
    ['InternalTrafficPolicyConflict', { internalTrafficPolicy: 'Local' }],
    ['TrafficDistributionConflict', { trafficDistribution: 'PreferClose' }],
    ['IPFamilyConflict', { clusterIP: 'fd00::1' }],
    ['PortConflict,TypeConflict', { clusterIP: 'None', ports: [{ name: 'http', port: 9000 }] }],
  ];
  for (const [reason, spec] of differing) {
    mesh.apply([service({ clusterIP: '10.9.0.1', ...spec })], 'east');
    for (const cluster of [OWN, 'east'])
      expect(conditionsOf(mesh, cluster)).toEqual({ ...good, Conflict: `True ${reason}` });
  }
  const { conditions } = mesh.mesh.clusters.exports.get(`${OWN}/shop/db`)!;
  expect(conditions[2]!.message).toBe(
    'Fairlead: The Services have different ports, all of which are served unless they share a name or a number; the oldest ServiceExport, in cluster east, decides. 1 of 2 clusters differ from it: Kubernetes. Some of the Services are headless, and others are not; the oldest ServiceExport, in cluster east, decides. 1 of 2 clusters differ from it: Kubernetes.',
  );
  mesh.delete([exported()], 'east');
  expect(conditionsOf(mesh)).toEqual(good);
});

test('endpoints that came by ClusterMesh are of the global Service, and not of the one that this cluster exports', () => {
  const mesh = meshOf();
  const annotations = { 'service.cilium.io/global': 'true' };
  const db = service({});
  const copy = slice(['10.3.0.7'], { name: 'db' });
  mesh.apply([{ ...db, metadata: { ...db.metadata, annotations } }, slice(['10.1.0.7']), exported(), imported()]);
  const labels = {
    ...copy.metadata.labels,
    'endpointslice.kubernetes.io/managed-by': 'endpointslice-mesh-controller.cilium.io',
    'multicluster.kubernetes.io/source-cluster': 'west',
  };
  mesh.apply([{ ...copy, metadata: { ...copy.metadata, name: 'db-west', labels } }]);
  mesh.apply([slice(['10.4.0.7'])], clusterMeshSource('north'));
  expect(endpointsOf(mesh, OWN, LOCAL)).toEqual(['10.1.0.7', '10.3.0.7', '10.4.0.7']);
  expect(endpointsOf(mesh, OWN, SET)).toEqual(['10.1.0.7']);
});

test('what is served is what the objects of all clusters say, whatever happened before', () => {
  const clusters = [OWN, 'east', 'west'];
  const change = fc.record({
    cluster: fc.constantFrom(...clusters),
    what: fc.constantFrom('service', 'slice', 'export', 'import', 'derived'),
    exists: fc.boolean(),
    since: fc.integer({ min: 2020, max: 2022 }),
    headless: fc.boolean(),
  });
  const last = (cluster: string): number => clusters.indexOf(cluster) + 1;
  fc.assert(
    fc.property(fc.array(change, { maxLength: 20 }), (changes) => {
      // They have endpoints of headless services, too.
      const mesh = meshOf({ type: 'router' });
      mesh.commit([mesh.mesh.inputs.remoteClusters.write('west', { id: 'west' })]);
      mesh.connect(proxyIn('west', {}, 'router'));
      const there = new Map<string, boolean>();
      for (const { cluster, what, exists, since, headless } of changes) {
        const address = `10.5.0.${last(cluster)}`;
        const objects: Record<typeof what, KubernetesObject> = {
          service: service({ clusterIP: headless ? 'None' : `10.0.0.${last(cluster)}` }),
          slice: slice([`10.1.0.${last(cluster)}`]),
          export: exported({ since }),
          import: imported(headless ? { type: 'Headless', ips: [] } : { ips: [address] }),
          derived: service({ clusterIP: address }, { name: 'derived' }),
        };
        if (exists) mesh.apply([objects[what]], cluster);
        else mesh.delete([objects[what]], cluster);
        there.set(`${what} ${cluster}`, exists);
        const has = (kind: typeof what, of: string): boolean => there.get(`${kind} ${of}`) === true;
        const exporting = clusters.filter((of) => has('service', of) && has('export', of));
        const endpoints = exporting.filter((of) => has('slice', of)).map((of) => `10.1.0.${last(of)}`);
        const expected = clusters.some((of) => has('import', of)) ? endpoints.sort() : undefined;
        for (const client of clusters) expect(endpointsOf(mesh, client, SET)).toEqual(expected);
      }
    }),
    { numRuns: runs(40) },
  );
}, 120_000);
