/**
 * One endpoint of a service with 1,000 endpoints changes, with 4 subsets and clients in 3 zones:
 * `node bench/large-service.ts`.
 */
import type { KubernetesObject } from '../src/api/object.ts';
import { TestMesh, connectedProxy } from '../test/harness/mesh.ts';

const SLICE = 100;
const ENDPOINTS = 1_000;
const zones = ['z1', 'z2', 'z3'];

const pod = (i: number): KubernetesObject =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `p-${i}`, namespace: 'big', labels: { app: 'big', version: `v${i % 4}` } },
    spec: { serviceAccountName: 'big', nodeName: `node-${i % 3}` },
    status: {
      phase: 'Running',
      podIP: ip(i),
      podIPs: [{ ip: ip(i) }],
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  }) as unknown as KubernetesObject;

const ip = (i: number, shift = 0): string => `10.${20 + shift}.${i >> 8}.${i & 255}`;

function slice(n: number, round: number): KubernetesObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `big-${n}`, namespace: 'big', labels: { 'kubernetes.io/service-name': 'big' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: Array.from({ length: SLICE }, (_, e) => ({
      addresses: [ip(n * SLICE + e)],
      // The last endpoint comes and goes.
      conditions: { ready: !(e === SLICE - 1 && round % 2 === 1) },
      targetRef: { kind: 'Pod', name: `p-${n * SLICE + e}`, namespace: 'big' },
    })),
  } as unknown as KubernetesObject;
}

const mesh = new TestMesh({ oracle: false });
mesh.apply([
  ...zones.map(
    (zone, i) =>
      ({
        apiVersion: 'v1',
        kind: 'Node',
        metadata: {
          name: `node-${i}`,
          labels: { 'topology.kubernetes.io/region': 'r', 'topology.kubernetes.io/zone': zone },
        },
      }) as unknown as KubernetesObject,
  ),
  ...Array.from({ length: ENDPOINTS }, (_, i) => pod(i)),
  ...Array.from({ length: ENDPOINTS / SLICE }, (_, n) => slice(n, 0)),
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'big', namespace: 'big' },
    spec: { clusterIP: '10.96.0.1', selector: { app: 'big' }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
  } as unknown as KubernetesObject,
  {
    apiVersion: 'networking.istio.io/v1',
    kind: 'DestinationRule',
    metadata: { name: 'big', namespace: 'big' },
    spec: {
      host: 'big',
      trafficPolicy: { outlierDetection: { consecutive5xxErrors: 5 } },
      subsets: [0, 1, 2, 3].map((v) => ({ name: `v${v}`, labels: { version: `v${v}` } })),
    },
  } as unknown as KubernetesObject,
]);
for (const zone of zones)
  mesh.connect(
    connectedProxy(zone, {
      id: `sidecar~10.1.0.1~c-${zone}.client~client.svc.cluster.local`,
      metadata: { NAMESPACE: 'client', ISTIO_VERSION: '1.32.0', INSTANCE_IPS: '10.1.0.1' },
      locality: { region: 'r', zone },
    }),
  );

for (let round = 0; round < 60; round++) mesh.apply([slice(round % 10, round + 1)]);
const rounds = 100;
const before = process.cpuUsage();
for (let round = 0; round < rounds; round++) mesh.apply([slice(3, round)]);
const { user, system } = process.cpuUsage(before);
const assignments = mesh.snapshot('z1').eds.filter((resource) => resource.name.includes('|big.')).length;
console.log(
  JSON.stringify({
    endpoints: ENDPOINTS,
    zones: zones.length,
    assignmentsPerZone: assignments,
    cpuMsPerChange: ((user + system) / 1000 / rounds).toFixed(2),
  }),
);
