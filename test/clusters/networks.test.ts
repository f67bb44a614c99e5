import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { Collection } from '../../src/cache/graph.ts';
import type { Workload } from '../../src/model/endpoint.ts';
import { TestMesh, connectedProxy, readObjects } from '../harness/mesh.ts';
import { runs } from '../../src/testing/runs.ts';

const OWN = 'Kubernetes';

interface Endpoint {
  readonly address: string;
  readonly network?: string;
  readonly weight?: number;
  readonly locality?: string;
  readonly tls?: boolean;
}

const db = (endpoints: readonly Endpoint[]): KubernetesObject =>
  ({
    apiVersion: 'networking.istio.io/v1',
    kind: 'ServiceEntry',
    metadata: { namespace: 'shop', name: 'db', generation: 1 },
    spec: {
      hosts: ['db.example.com'],
      location: 'MESH_INTERNAL',
      ports: [{ name: 'tcp', number: 9000, protocol: 'TCP' }],
      addresses: ['240.0.0.1'],
      resolution: 'STATIC',
      endpoints: endpoints.map(({ tls = true, ...endpoint }) => ({
        ...endpoint,
        ...(tls && { labels: { 'security.istio.io/tlsMode': 'istio' } }),
      })),
    },
  }) as KubernetesObject;

/** The same as a Service. @param networks that the Pods name, by address. */
const dbOfPods = (networks: Readonly<Record<string, string>>): KubernetesObject[] =>
  readObjects(`
apiVersion: v1
kind: Service
metadata: { namespace: shop, name: db }
spec: { clusterIP: 10.0.0.1, ports: [{ name: tcp, port: 9000 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { namespace: shop, name: db-1, labels: { kubernetes.io/service-name: db } }
addressType: IPv4
ports: [{ name: tcp, port: 9000 }]
endpoints:
${Object.keys(networks)
  .map((ip) => `- { addresses: [${ip}], targetRef: { kind: Pod, namespace: shop, name: db-${ip} } }`)
  .join('\n')}
${Object.entries(networks)
  .map(
    ([ip, network]) => `---
apiVersion: v1
kind: Pod
metadata: { namespace: shop, name: db-${ip}, labels: { security.istio.io/tlsMode: istio, topology.istio.io/network: "${network}" } }
status: { podIP: ${ip}, phase: Running, conditions: [{ type: Ready, status: "True" }] }`,
  )
  .join('\n')}
`);

const gateway = (name: string, network: string, addresses: readonly string[], port?: number): KubernetesObject =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      namespace: 'istio-system',
      name,
      labels: {
        'topology.istio.io/network': network,
        ...(port !== undefined && { 'networking.istio.io/gatewayPort': String(port) }),
      },
    },
    spec: {
      type: 'LoadBalancer',
      clusterIP: '10.0.9.9',
      ports: [{ name: 'tls', port: port ?? 15443, nodePort: 31443 }],
    },
    status: {
      loadBalancer: { ingress: addresses.map((each) => (/[a-z]\./.test(each) ? { hostname: each } : { ip: each })) },
    },
  }) as KubernetesObject;

const meshNetworks = (text: string): KubernetesObject =>
  ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'istio-system', name: 'istio' },
    data: { meshNetworks: text },
  }) as KubernetesObject;

const proxyOn = (network: string, metadata: object = {}, address = '10.1.0.1') =>
  connectedProxy(network, {
    id: `sidecar~${address}~client.shop~shop.svc.cluster.local`,
    metadata: { NAMESPACE: 'shop', ISTIO_VERSION: '1.30.0', ...(network !== '' && { NETWORK: network }), ...metadata },
  });

interface Lb {
  readonly endpoint: { readonly address: { readonly socketAddress: { address: string; portValue: number } } };
  readonly loadBalancingWeight: number;
}

interface Assignment {
  readonly clusterName: string;
  readonly endpoints?: readonly {
    readonly locality?: { readonly region?: string };
    readonly loadBalancingWeight?: number;
    readonly lbEndpoints?: readonly Lb[];
  }[];
}

/** Forwards to `db` by SNI. */
const eastWest = {
  apiVersion: 'networking.istio.io/v1',
  kind: 'Gateway',
  metadata: { namespace: 'istio-system', name: 'east-west' },
  spec: {
    servers: [
      {
        port: { number: 15443, name: 'tls', protocol: 'TLS' },
        hosts: ['*.example.com'],
        tls: { mode: 'AUTO_PASSTHROUGH' },
      },
    ],
  },
} as KubernetesObject;

const routerOn = (network: string) =>
  connectedProxy(`router ${network}`, {
    id: 'router~10.1.0.1~gateway.istio-system~istio-system.svc.cluster.local',
    metadata: { NAMESPACE: 'istio-system', ISTIO_VERSION: '1.30.0', ...(network !== '' && { NETWORK: network }) },
  });

/** `address:port weight`, with the region in front if there is one. */
function seen(mesh: TestMesh, stream: string, name = 'db', named = `||${name}.`): string[] {
  const found = (mesh.json(stream).eds as Assignment[]).find(({ clusterName: of }) => of.includes(named));
  return (found?.endpoints ?? []).flatMap(({ locality, lbEndpoints = [] }) =>
    lbEndpoints.map(({ endpoint, loadBalancingWeight }) => {
      const { address, portValue } = endpoint.address.socketAddress;
      const region = locality?.region;
      return `${region === undefined || region === '' ? '' : `${region} `}${address}:${portValue} ${loadBalancingWeight}`;
    }),
  );
}

function meshWith(objects: readonly KubernetesObject[], ...proxies: readonly string[]): TestMesh {
  const mesh = new TestMesh();
  mesh.apply(objects);
  for (const network of proxies) mesh.connect(proxyOn(network));
  return mesh;
}

const problems = (mesh: TestMesh): string[] =>
  [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) =>
    found.map(({ field, reason, message }) => `${reason} ${field}: ${message}`),
  );

test('without gateways all endpoints are reached directly', () => {
  const mesh = meshWith(
    [
      db([
        { address: '10.1.0.7', network: 'a' },
        { address: '10.2.0.7', network: 'b' },
      ]),
    ],
    'a',
    '',
  );
  for (const stream of ['a', '']) expect(seen(mesh, stream)).toEqual(['10.1.0.7:9000 1', '10.2.0.7:9000 1']);
});

test('endpoints of another network are replaced by its gateways, with exact weights', () => {
  const mesh = meshWith(
    [
      db([
        { address: '10.1.0.7', network: 'a', locality: 'west' },
        { address: '10.2.0.7', network: 'b', locality: 'east', weight: 3 },
        { address: '10.2.0.8', network: 'b', locality: 'east' },
        { address: '10.3.0.8', locality: 'east' },
      ]),
      gateway('gw', 'b', ['192.0.2.2', '192.0.2.1']),
    ],
    'a',
    'b',
    '',
  );
  const fromOutside = [
    'east 10.3.0.8:9000 2',
    'east 192.0.2.1:15443 4',
    'east 192.0.2.2:15443 4',
    'west 10.1.0.7:9000 2',
  ];
  expect(seen(mesh, 'a')).toEqual(fromOutside);
  expect(seen(mesh, '')).toEqual(fromOutside);
  expect(seen(mesh, 'b')).toEqual([
    'east 10.2.0.7:9000 6',
    'east 10.2.0.8:9000 2',
    'east 10.3.0.8:9000 2',
    'west 10.1.0.7:9000 2',
  ]);
});

test('a gateway comes and goes', () => {
  const gw = gateway('gw', 'b', ['192.0.2.1'], 8443);
  const mesh = meshWith([db([{ address: '10.2.0.7', network: 'b' }])], 'a');
  mesh.apply([gw]);
  expect(seen(mesh, 'a')).toEqual(['192.0.2.1:8443 1']);
  mesh.delete([gw]);
  expect(seen(mesh, 'a')).toEqual(['10.2.0.7:9000 1']);
});

test('a Service without the port is not a gateway, whatever its label says', () => {
  const gw = gateway('gw', 'b', ['192.0.2.1']) as KubernetesObject & { readonly spec: object };
  const closed = { ...gw, spec: { ...gw.spec, ports: [{ name: 'http', port: 80 }] } };
  const mesh = meshWith([db([{ address: '10.2.0.7', network: 'b' }]), closed], 'a');
  expect(seen(mesh, 'a')).toEqual(['10.2.0.7:9000 1']);
  mesh.apply([gw]);
  expect(seen(mesh, 'a')).toEqual(['192.0.2.1:15443 1']);
});

test('endpoints without mutual TLS cannot be reached through a gateway', () => {
  const mesh = meshWith(
    [
      db([
        { address: '10.2.0.7', network: 'b', tls: false },
        { address: '10.2.0.8', network: 'b' },
      ]),
      gateway('gw', 'b', ['192.0.2.1']),
    ],
    'a',
    'b',
  );
  expect(seen(mesh, 'a')).toEqual(['192.0.2.1:15443 1']);
  expect(seen(mesh, 'b')).toEqual(['10.2.0.7:9000 1', '10.2.0.8:9000 1']);
});

test('an address of a network whose gateway has no known address is not served', () => {
  const mesh = meshWith(
    [db([{ address: '10.2.0.7', network: 'b' }]), gateway('gw', 'b', ['gw.example.com'])],
    'a',
    'b',
  );
  expect(seen(mesh, 'a')).toEqual([]);
  expect(seen(mesh, 'b')).toEqual(['10.2.0.7:9000 1']);
  expect(mesh.mesh.clusters.networkGateways.get('b')).toMatchObject({ unresolved: ['gw.example.com'] });
  mesh.commit([mesh.mesh.inputs.gatewayAddresses.write('gw.example.com', { addresses: ['192.0.2.1'] })]);
  expect(seen(mesh, 'a')).toEqual(['192.0.2.1:15443 1']);
});

test('a proxy is led to gateways of its IP family', () => {
  const mesh = meshWith([
    db([
      { address: '10.2.0.7', network: 'b' },
      { address: 'fd00::7', network: 'c' },
    ]),
    gateway('gw', 'b', ['192.0.2.1', '2001:db8::1']),
    gateway('gw6', 'c', ['2001:db8::2']),
  ]);
  mesh.connect(proxyOn('a'));
  mesh.connect(proxyOn('v6', {}, 'fd00::1'));
  expect(seen(mesh, 'a')).toEqual(['192.0.2.1:15443 2']);
  expect(seen(mesh, 'v6').sort()).toEqual(['2001:db8::1:15443 2', '2001:db8::2:15443 2']);
});

test('equal addresses of two networks are two endpoints, and one is not taken for the other', () => {
  const mesh = meshWith([gateway('gw', 'b', ['192.0.2.1'])], 'a', 'b');
  mesh.commit([mesh.mesh.inputs.remoteClusters.write('east', { id: 'east' })]);
  const objects = (network: string) =>
    readObjects(`
apiVersion: v1
kind: Namespace
metadata: { name: istio-system, labels: { topology.istio.io/network: ${network} } }
---
apiVersion: v1
kind: Service
metadata: { namespace: shop, name: web }
spec: { clusterIP: 10.0.0.1, ports: [{ name: tcp, port: 9000 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { namespace: shop, name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: tcp, port: 9000 }]
endpoints: [{ addresses: [10.9.0.1], targetRef: { kind: Pod, namespace: shop, name: web-0 } }]
---
apiVersion: v1
kind: Pod
metadata: { namespace: shop, name: web-0, labels: { security.istio.io/tlsMode: istio } }
status: { podIP: 10.9.0.1, phase: Running }
`);
  mesh.apply(objects('a'));
  mesh.apply(objects('b'), 'east');
  expect(seen(mesh, 'a', 'web')).toEqual(['10.9.0.1:9000 1', '192.0.2.1:15443 1']);
  expect(seen(mesh, 'b', 'web')).toEqual(['10.9.0.1:9000 1']);
});

test('the gateways of the cluster of an endpoint come first', () => {
  const mesh = meshWith([gateway('gw', 'b', ['192.0.2.1'])], 'a');
  mesh.commit([mesh.mesh.inputs.remoteClusters.write('east', { id: 'east' })]);
  mesh.apply([gateway('gw', 'b', ['192.0.2.9'])], 'east');
  const objects = readObjects(`
apiVersion: v1
kind: Service
metadata: { namespace: shop, name: web }
spec: { clusterIP: 10.0.0.1, ports: [{ name: tcp, port: 9000 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { namespace: shop, name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: tcp, port: 9000 }]
endpoints: [{ addresses: [10.2.0.7], targetRef: { kind: Pod, namespace: shop, name: web-0 } }]
---
apiVersion: v1
kind: Pod
metadata: { namespace: shop, name: web-0, labels: { security.istio.io/tlsMode: istio } }
status: { podIP: 10.2.0.7, phase: Running }
`);
  mesh.apply(objects, 'east');
  expect(seen(mesh, 'a', 'web')).toEqual(['10.2.0.7:9000 2']);
  const [namespace] = readObjects(`
apiVersion: v1
kind: Namespace
metadata: { name: istio-system, labels: { topology.istio.io/network: b } }
`);
  mesh.apply([namespace!], 'east');
  expect(seen(mesh, 'a', 'web')).toEqual(['192.0.2.9:15443 2']);
  mesh.delete([gateway('gw', 'b', [])], 'east');
  expect(seen(mesh, 'a', 'web')).toEqual(['192.0.2.1:15443 1']);
});

test('a proxy that requests some networks gets no endpoints of others', () => {
  const mesh = meshWith(
    [db([{ address: '10.1.0.7', network: 'a' }, { address: '10.2.0.7', network: 'b' }, { address: '10.3.0.7' }])],
    'b',
  );
  mesh.connect(proxyOn('a', { REQUESTED_NETWORK_VIEW: ['a'] }));
  expect(seen(mesh, 'a')).toEqual(['10.1.0.7:9000 1', '10.3.0.7:9000 1']);
  expect(seen(mesh, 'b')).toEqual(['10.1.0.7:9000 1', '10.2.0.7:9000 1', '10.3.0.7:9000 1']);
});

test('an endpoint without an address is behind the gateway of its network', () => {
  const endpoints = [{ address: '', network: 'b' }];
  const mesh = meshWith([db(endpoints), gateway('gw', 'b', ['192.0.2.1'])], 'a', 'b');
  expect(seen(mesh, 'a')).toEqual(['192.0.2.1:15443 1']);
  expect(seen(mesh, 'b')).toEqual([]);
});

test('MeshNetworks say where addresses are, and where the gateways of networks are', () => {
  const mesh = meshWith(
    [
      meshNetworks(`
networks:
  a:
    endpoints: [{ fromCidr: 10.1.0.0/16 }]
  b:
    endpoints: [{ fromCidr: 10.2.0.0/16 }]
    gateways: [{ address: 192.0.2.1, port: 443 }]
`),
      ...dbOfPods({ '10.1.0.7': '', '10.2.0.7': '', '10.2.0.8': 'c' }),
    ],
    'a',
  );
  expect(seen(mesh, 'a')).toEqual(['10.1.0.7:9000 1', '10.2.0.8:9000 1', '192.0.2.1:443 1']);
  expect(problems(mesh)).toEqual([]);
});

test('MeshNetworks name a Service of the clusters of a network', () => {
  const unlabelled = { ...gateway('gw', 'b', ['192.0.2.1']), metadata: { namespace: 'istio-system', name: 'gw' } };
  const mesh = meshWith(
    [
      meshNetworks(`
networks:
  b:
    endpoints: [{ fromRegistry: east }]
    gateways: [{ registryServiceName: gw.istio-system.svc.cluster.local, port: 443 }]
`),
      db([{ address: '10.2.0.7', network: 'b' }]),
      unlabelled,
    ],
    'a',
  );
  expect(seen(mesh, 'a')).toEqual([]);
  mesh.commit([mesh.mesh.inputs.remoteClusters.write('east', { id: 'east' })]);
  mesh.apply([unlabelled], 'east');
  expect(seen(mesh, 'a')).toEqual(['192.0.2.1:443 1']);
});

test('a NodePort Service is reached at the external addresses of the Nodes that it selects', () => {
  const [one, two] = readObjects(`
apiVersion: v1
kind: Node
metadata: { name: one, labels: { edge: "yes" } }
status: { addresses: [{ type: ExternalIP, address: 192.0.2.1 }, { type: InternalIP, address: 10.0.0.1 }] }
---
apiVersion: v1
kind: Node
metadata: { name: two }
status: { addresses: [{ type: ExternalIP, address: 192.0.2.2 }] }
`);
  const service = gateway('gw', 'b', []) as KubernetesObject & { readonly spec: object };
  const nodePort = (selector: string) => ({
    ...service,
    metadata: { ...service.metadata, annotations: { 'traffic.istio.io/nodeSelector': selector } },
    spec: { ...service.spec, type: 'NodePort' },
    status: {},
  });
  const mesh = meshWith([db([{ address: '10.2.0.7', network: 'b' }]), one!, two!, nodePort('{"edge":"yes"}')], 'a');
  expect(seen(mesh, 'a')).toEqual(['192.0.2.1:31443 1']);
  mesh.apply([nodePort('{}')]);
  expect(seen(mesh, 'a')).toEqual(['192.0.2.1:31443 1', '192.0.2.2:31443 1']);
  mesh.apply([nodePort('nonsense')]);
  expect(seen(mesh, 'a')).toEqual([]);
});

test('a mistake in MeshNetworks is reported with its field, and the last valid text stays in force', () => {
  const good = meshNetworks(
    'networks: { b: { endpoints: [{ fromCidr: 10.2.0.0/16 }], gateways: [{ address: 192.0.2.1 }] } }',
  );
  const mesh = meshWith([good, ...dbOfPods({ '10.2.0.7': '' })], 'a');
  mesh.commit([mesh.mesh.inputs.lastGood.write(`${OWN}/istio-system/istio`, good as never)]);
  mesh.apply([meshNetworks('networks: { b: { endpoints: [{ fromCidr: 10.2.0.0/160 }] } }')]);
  expect(seen(mesh, 'a')).toEqual(['192.0.2.1:15443 1']);
  expect(problems(mesh).join('\n')).toContain(
    'Invalid data.meshNetworks.networks["b"].endpoints[0].fromCidr: "10.2.0.0/160" is not a range',
  );
  // Neither does it vanish with the ConfigMap.
  mesh.delete([good]);
  expect(seen(mesh, 'a')).toEqual(['192.0.2.1:15443 1']);
  expect(problems(mesh).join('\n')).toContain('The ConfigMap is deleted; its last valid version stays in force');
});

test('a change of MeshNetworks reaches only the endpoints that it concerns', () => {
  const text = (network: string) =>
    `networks: { a: { endpoints: [{ fromCidr: 10.1.0.0/16 }] }, ${network}: { endpoints: [{ fromCidr: 10.2.0.0/16 }] } }`;
  const pods = [1, 2, 3].flatMap((n) =>
    readObjects(`
apiVersion: v1
kind: Pod
metadata: { namespace: shop, name: p${n} }
status: { podIP: 10.${n}.0.1, phase: Running }
`),
  );
  const mesh = meshWith([...pods, meshNetworks(text('b'))]);
  const known = mesh.graph.collections.find(({ name }) => name === 'pods') as Collection<Workload>;
  const networks = () => [...known.entries()].map(([, { network }]) => network);
  expect(networks()).toEqual(['a', 'b', '']);
  known.track();
  const changed: string[] = [];
  mesh.graph.observe((draft) => changed.push(...Array.from(draft.changes(known), ({ key }) => key)), 'test');
  mesh.apply([meshNetworks(text('c'))]);
  expect(networks()).toEqual(['a', 'c', '']);
  expect(changed).toEqual([`${OWN}/shop/p2`]);
});

test('what is served is what the rules say, for all networks, gateways and proxies', () => {
  const networks = ['', 'a', 'b', 'c'];
  const addressOf = (network: string, i: number) => `10.${networks.indexOf(network) + 1}.0.${i + 1}`;
  const endpoint = fc.record({
    network: fc.constantFrom(...networks),
    weight: fc.integer({ min: 1, max: 5 }),
    locality: fc.constantFrom('east', 'west'),
    tls: fc.boolean(),
  });
  const counts = fc.record({ a: fc.integer({ min: 0, max: 4 }), b: fc.integer({ min: 0, max: 4 }) });
  fc.assert(
    fc.property(fc.array(endpoint, { maxLength: 8 }), counts, (drawn, gateways) => {
      const endpoints = drawn.map((each, i) => ({ ...each, address: addressOf(each.network, i) }));
      const services = (['a', 'b'] as const).flatMap((network) =>
        gateways[network] === 0
          ? []
          : [
              gateway(
                `gw-${network}`,
                network,
                range(gateways[network]).map((i) => `192.0.${network === 'a' ? 1 : 2}.${i}`),
              ),
            ],
      );
      const mesh = meshWith([db(endpoints), ...services, eastWest]);
      const proxies = networks.flatMap((network) => [proxyOn(network), routerOn(network)]);
      mesh.commit(proxies.map((proxy) => mesh.mesh.inputs.proxies.write(proxy.stream, proxy)));
      for (const own of networks) {
        const forwarded = endpoints.filter(({ network, tls }) => tls && (network === own || !hasGateways(network)));
        const inSni = seen(mesh, `router ${own}`, 'db', '_._.db.').map((text) => text.split(' ')[1]);
        expect(inSni.sort()).toEqual(forwarded.map(({ address }) => `${address}:9000`).sort());
        // Of what reaches each locality and network: weights as fractions of the sum.
        const direct = endpoints.filter(({ network }) => network === own || !hasGateways(network));
        const behind = endpoints.filter(({ network, tls }) => network !== own && hasGateways(network) && tls);
        const expected = new Map<string, number>();
        for (const { locality, address, weight } of direct) add(expected, `${locality} ${address}:9000`, weight);
        for (const { locality, network, weight } of behind)
          for (const i of range(gateways[network as 'a' | 'b']))
            add(
              expected,
              `${locality} 192.0.${network === 'a' ? 1 : 2}.${i}:15443`,
              weight / gateways[network as 'a' | 'b'],
            );
        const served = new Map<string, number>(
          seen(mesh, own).map((text) => {
            const [locality = '', at = '', weight] = text.split(' ');
            return [`${locality} ${at}`, Number(weight)] as const;
          }),
        );
        const scale = sum(served) / Math.max(sum(expected), 1e-9);
        expect([...served.keys()].sort()).toEqual([...expected.keys()].sort());
        for (const [at, weight] of expected) expect(served.get(at)! / scale).toBeCloseTo(weight, 6);
      }

      function hasGateways(network: string): boolean {
        return (network === 'a' || network === 'b') && gateways[network] > 0;
      }
    }),
    { numRuns: runs(60) },
  );
});

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);
const sum = (of: ReadonlyMap<string, number>): number => [...of.values()].reduce((a, b) => a + b, 0);

function add(to: Map<string, number>, key: string, value: number): void {
  to.set(key, (to.get(key) ?? 0) + value);
}
