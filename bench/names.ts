import { setTimeout as delay } from 'node:timers/promises';
import { startAdsServer } from '../src/ads/transport/server.ts';
import type { KubernetesObject } from '../src/api/object.ts';
import { objectKey } from '../src/api/object.ts';
import { Graph, type Write } from '../src/cache/graph.ts';
import { catalog } from '../src/engine/catalog.ts';
import { Encoder } from '../src/envoy/encode/encoder.ts';
import { createProtos } from '../src/envoy/encode/proto.ts';
import { buildMesh } from '../src/mesh.ts';
import { ONE, defaultMeshOptions } from '../src/mesh/inputs.ts';
import { HOST, NAME_TABLE } from '../src/model/named-host.ts';
import { Peers, request } from './ads-peers.ts';
import { scaleObjects } from './scale-mesh.ts';

/**
 * What it costs when one Pod of a headless Service changes, and agents have its name: bytes for each agent, and CPU of
 * this process (the agents are streams in another one), with the whole table (NDS) and with a resource for each host.
 *
 *     node bench/names.ts [agents] [services] [pods] [changes]
 */
const AGENTS = Number(process.argv[2] ?? 1_000);
const SERVICES = Number(process.argv[3] ?? 2_000);
const PODS = Number(process.argv[4] ?? 100);
const CHANGES = Number(process.argv[5] ?? 3);
const NAMESPACES = 20;

const headless = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'db', namespace: 'ns-0' },
  spec: { clusterIP: 'None', ports: [{ name: 'tcp', port: 5432 }] },
} as KubernetesObject;

/** The address of the first Pod follows from the revision. */
function podsOf(revision: number): KubernetesObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'db-x', namespace: 'ns-0', labels: { 'kubernetes.io/service-name': 'db' } },
    addressType: 'IPv4',
    ports: [{ name: 'tcp', port: 5432, protocol: 'TCP' }],
    endpoints: Array.from({ length: PODS }, (_, i) => ({
      addresses: [i === 0 ? `10.9.0.${revision}` : `10.8.${i >> 8}.${i & 255}`],
      hostname: `db-${i}`,
      conditions: { ready: true },
    })),
  } as KubernetesObject;
}

const graph = new Graph();
const encoder = new Encoder(createProtos());
const mesh = buildMesh(graph, encoder);
const { inputs } = mesh;
const writes: Write[] = [inputs.options.write(ONE, defaultMeshOptions)];
const write = (added: Write): void => {
  if (writes.push(added) === 1) setTimeout(() => graph.commit(writes.splice(0)), 10);
};
const put = (object: KubernetesObject): Write =>
  inputs.objects[object.kind as 'Service'].write(
    objectKey(defaultMeshOptions.clusterId, object.metadata.namespace ?? '', object.metadata.name),
    object,
  );
const server = await startAdsServer({
  plaintext: { host: '127.0.0.1', port: 0 },
  types: catalog(encoder),
  now: () => performance.now(),
  ready: () => true,
  signal: new AbortController().signal,
  log: { info: () => {}, warn: (message, fields) => console.warn(message, fields) },
  events: {
    connected: (proxy) => write(inputs.proxies.write(proxy.stream, proxy)),
    asked: (stream, typeUrl) => write(inputs.asked.write(stream, { typeUrls: [typeUrl] })),
    disconnected: ({ stream }) => {
      write(inputs.proxies.write(stream, undefined));
      write(inputs.asked.write(stream, undefined));
    },
    rejected: (rejection) => console.warn('rejected', rejection),
  },
});
graph.observe((draft) => server.apply(mesh.publicationOf(draft)));
const objects = scaleObjects({ services: SERVICES, namespaces: NAMESPACES, endpoints: 1, routes: false });
graph.commit([...writes.splice(0), ...[...objects, headless, podsOf(1)].map(put)]);

const peers = new Peers();
const nodes = Array.from({ length: NAMESPACES }, (_, i) => `sidecar~10.0.0.1~a.ns-${i}~ns-${i}.svc.cluster.local`);
let revision = 1;
for (const [name, typeUrl] of [
  ['a resource for each host', HOST],
  ['the whole table', NAME_TABLE],
] as const) {
  const all = peers.done();
  const first = nodes.map((node) => request({ typeUrl, node }));
  peers.connect({ port: server.port!, clients: AGENTS, first, requests: [first[0]!], atOnce: false, responses: 1 });
  print(`${name}: everything`, await all, 0);
  for (let i = 0; i < CHANGES; i++) {
    // Longer than tables are apart.
    await delay(2_500);
    await peers.expect(1);
    const before = process.cpuUsage();
    const changed = peers.done();
    write(put(podsOf(++revision)));
    const report = await changed;
    const { user, system } = process.cpuUsage(before);
    print(`${name}: one Pod changes`, report, (user + system) / 1_000);
  }
  await peers.disconnect();
  await delay(500);
}
peers.end();
process.exit();

function print(name: string, { ms, bytes }: { readonly ms: number; readonly bytes: number }, cpu: number): void {
  const perAgent = (bytes / AGENTS).toFixed(0).padStart(8);
  console.log(
    `${name.padEnd(44)} ${perAgent} bytes per agent  wall ${ms.toFixed(0).padStart(6)} ms  cpu ${cpu.toFixed(0).padStart(6)} ms`,
  );
}
