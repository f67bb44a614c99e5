import { setTimeout as delay } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import type { Json } from '../src/api/json.ts';
import { kindOf, type KindName } from '../src/api/kinds.ts';
import type { KubernetesObject } from '../src/api/object.ts';
import { systemClock } from '../src/base/clock.ts';
import { keepStatuses } from '../src/serve/cluster-statuses.ts';
import { startEngine } from '../src/engine/engine.ts';
import { createProtos } from '../src/envoy/encode/proto.ts';
import type { KubeApi } from '../src/kube/client/client.ts';
import { Outages } from '../src/kube/client/outages.ts';
import { StatusWriter } from '../src/kube/writing/status-writer.ts';
import { defaultMeshOptions } from '../src/mesh/inputs.ts';
import { CDS, firstRequests, Peers, request } from './ads-peers.ts';
import { destinationRule, namespaceOf, scaleObjects, virtualService } from './scale-mesh.ts';

/**
 * How long it takes until the condition of a changed object says that all proxies have it: from the change to the last
 * acknowledgement, and to the write of the condition, with many streams (the clients are another process). The API server
 * answers at once. All clients are of one tenant: with canaries, one of them is sent a change first.
 *
 *     node bench/way-back.ts [clients] [services] [changes] [canaries: on|off]
 */
const CLIENTS = Number(process.argv[2] ?? 1000);
const SERVICES = Number(process.argv[3] ?? 200);
const CHANGES = Number(process.argv[4] ?? 30);
const CANARIES = process.argv[5] !== 'off';

const { signal } = new AbortController();
const ignored = (): void => undefined;
const warn = (message: string, fields?: object): void => console.warn(message, fields);
const log = { debug: ignored, info: ignored, warn, error: warn };
const engine = await startEngine({
  mesh: defaultMeshOptions,
  protos: createProtos(),
  plaintext: { host: '127.0.0.1', port: 0 },
  batch: { quiet: 50, max: 250 },
  log,
  canaries: CANARIES,
  tenantOf: () => 'ns-0',
  rejected: (rejection) => console.warn('rejected', rejection),
  notAdmitted: (refusal) => console.warn('not admitted', refusal),
  heapBytes: getHeapStatistics().heap_size_limit,
  signal,
});

/** As the API server has them. */
const stored = new Map<string, KubernetesObject & { status?: Json }>();
let resourceVersion = 0;
let written: ((key: string, generation: number) => void) | undefined;

const keyOf = (kind: string, namespace: string, name: string): string => `${kind}/${namespace}/${name}`;

function store(object: KubernetesObject): KubernetesObject {
  const { kind, metadata } = object;
  const key = keyOf(kind, metadata.namespace!, metadata.name);
  const before = stored.get(key);
  const generation = (before?.metadata.generation ?? 0) + 1;
  const next = {
    ...object,
    metadata: { ...metadata, uid: key, generation, resourceVersion: `${++resourceVersion}` },
    ...(before?.status && { status: before.status }),
  };
  stored.set(key, next);
  engine.objects.upsert(kindOf(object.apiVersion, kind)!.name, next);
  return next;
}

const latest = (kind: KindName, namespace: string, name: string): KubernetesObject | undefined =>
  stored.get(keyOf(kind, namespace, name));

const api = {
  patch: async (path: string, body: { readonly status: Json }) => {
    await delay(0);
    const [, namespace = '', plural = '', name = ''] =
      /namespaces\/([^/]+)\/([^/]+)\/([^/]+)\/status$/.exec(path) ?? [];
    const kind: KindName = plural === 'virtualservices' ? 'VirtualService' : 'DestinationRule';
    const key = keyOf(kind, namespace, name);
    const object = stored.get(key)!;
    const metadata = { ...object.metadata, resourceVersion: `${++resourceVersion}` };
    const next = { ...object, metadata, status: body.status };
    stored.set(key, next);
    setImmediate(() => statuses.observed(kind, namespace, name));
    const conditions = body.status['conditions'] as readonly {
      type: string;
      reason: string;
      observedGeneration: number;
    }[];
    const programmed = conditions.find(({ type }) => type === 'Programmed');
    if (programmed?.reason === 'Programmed') written?.(key, programmed.observedGeneration);
    return next;
  },
} as unknown as KubeApi;
const outages = new Outages({ log, clock: systemClock });
const shared = { api, clock: systemClock, random: Math.random, log, outages };
// What is measured is one change at a time: never how fast many may be written.
const writer = new StatusWriter({
  ...shared,
  latest,
  types: ['Accepted', 'ResolvedRefs', 'Programmed'],
  rate: 10_000,
  burst: 10_000,
});
const statuses = keepStatuses({
  ...shared,
  engine,
  writer,
  pod: undefined,
  clusterId: defaultMeshOptions.clusterId,
  latest,
  signal,
});
writer.lead(signal, '');

const mesh = { services: SERVICES, namespaces: 20, endpoints: 5, routes: true };
for (const object of scaleObjects(mesh)) store(object);
await engine.open();

const names = Array.from(
  { length: SERVICES },
  (_, i) => `outbound|8080||s-${i}.${namespaceOf(i, mesh)}.svc.cluster.local`,
);
const nodes = Array.from(
  { length: CLIENTS },
  (_, i) => `sidecar~10.1.${Math.floor(i / 250)}.${i % 250}~client-${i}.ns-0~ns-0.svc.cluster.local`,
);

interface Delays {
  readonly acknowledged: number;
  readonly written: number;
}

async function measure(peers: Peers, object: KubernetesObject, responses: number): Promise<Delays> {
  await delay(100);
  await peers.expect(responses);
  const done = peers.done().then(() => performance.now());
  const at = performance.now();
  const { kind, metadata } = store(object);
  const wanted = keyOf(kind, metadata.namespace!, metadata.name);
  const told = new Promise<number>((resolve) => {
    written = (key, generation) => {
      if (key === wanted && generation === metadata.generation) resolve(performance.now());
    };
  });
  return { acknowledged: (await done) - at, written: (await told) - at };
}

function percentile(values: readonly number[], part: number): string {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!.toFixed(0);
}

/** Every fifth service has routes and a rule. */
const serviceOf = (round: number): number => 5 * (round % (SERVICES / 5));

/** A change that differs from those before, and how many responses it means for each client. */
const changes = {
  'VirtualService, a weight': (round: number) => [virtualService(serviceOf(round), mesh, 1 + (round % 71)), 1],
  'DestinationRule, its outlier detection': (round: number) => {
    const rule = destinationRule(serviceOf(round), mesh) as KubernetesObject & { readonly spec: object };
    const trafficPolicy = { outlierDetection: { consecutive5xxErrors: 6 + round } };
    // Clusters, and their assignments behind them.
    return [{ ...rule, spec: { ...rule.spec, trafficPolicy } } as KubernetesObject, 2];
  },
} as const satisfies Readonly<Record<string, (round: number) => readonly [KubernetesObject, number]>>;

let round = 0;
for (const [variant, sotw] of [
  ['delta', false],
  ['state of the world', true],
] as const) {
  const peers = new Peers();
  const connected = peers.done();
  peers.connect({
    port: engine.ads.port!,
    sotw,
    clients: CLIENTS,
    first: nodes.map((node) => request({ sotw, typeUrl: CDS, node })),
    requests: firstRequests({ sotw, names, tables: ['8080'] }),
    atOnce: false,
    responses: 4,
  });
  await connected;
  await delay(1_000);
  for (const [what, make] of Object.entries(changes)) {
    const found: Delays[] = [];
    for (let i = -2; i < CHANGES; i++) {
      const [object, responses] = make(++round);
      const delays = await measure(peers, object, responses);
      // The first ones warm up.
      if (i >= 0) found.push(delays);
    }
    const of = (which: keyof Delays): string => {
      const values = found.map((each) => each[which]);
      return `p50 ${percentile(values, 0.5)} ms, p99 ${percentile(values, 0.99)} ms`;
    };
    console.log(`${variant}, ${what}: last acknowledgement ${of('acknowledged')}; condition written ${of('written')}`);
  }
  await peers.disconnect();
  await delay(500);
  peers.end();
}
console.log(`failures: ${writer.stats().failures}`);
process.exit(0);
