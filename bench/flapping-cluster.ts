import { fork } from 'node:child_process';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { kinds, kindsToRead } from '../src/api/kinds.ts';
import type { KubernetesObject } from '../src/api/object.ts';
import { ClusterCredentials } from '../src/other-clusters/cluster-credentials.ts';
import { systemClock } from '../src/base/clock.ts';
import { startEngine } from '../src/engine/engine.ts';
import { createProtos } from '../src/envoy/encode/proto.ts';
import { collectionPath } from '../src/kube/client/paths.ts';
import { FakeApiServer } from '../src/kube/testing/fake-api-server.ts';
import { defaultMeshOptions } from '../src/mesh/inputs.ts';
import { followRemoteClusters } from '../src/other-clusters/remote-clusters.ts';
import { firstRequests, Peers } from './ads-peers.ts';
import { kubeconfigFor } from './kubeconfig.ts';
import { namespaceOf, scaleObjects, slice } from './scale-mesh.ts';

/**
 * How long a change in the own cluster takes until it is published, while another cluster with as many Services goes and
 * comes back every second. The API server of the other cluster and the clients are processes of their own.
 *
 *     node bench/flapping-cluster.ts [services] [seconds]
 *
 * away: connections are reset, and nothing listens for half a second. relist: the same, and everything is listed again
 * afterwards, with an endpoint of every tenth Service changed. swap: the credentials change, so that everything is read
 * beside what there is, and takes its place.
 */
const SERVICES = Number(process.argv[2] ?? 1_000);
const SECONDS = Number(process.argv[3] ?? 20);
const options = { services: SERVICES, namespaces: 20, endpoints: 2, routes: false };

type Flap = 'rest' | 'away' | 'relist' | 'swap';

if (process.argv[2] === 'serve') await serveOther(Number(process.argv[3]));
else await measureAll();

async function serveOther(services: number): Promise<void> {
  const server = await new FakeApiServer().start();
  const of = { ...options, services };
  const put = (object: KubernetesObject): unknown =>
    server.cluster.apply(collectionPath(kinds.find(({ kind }) => kind === object.kind)!), object as never);
  for (const kind of kinds) server.cluster.install(collectionPath(kind), kind.kind);
  for (const object of scaleObjects(of)) put(object);
  let round = 0;
  process.on('message', (flap: Flap) => {
    void (async () => {
      await server.stop();
      if (flap === 'relist') {
        round++;
        for (let i = 0; i < services; i += 10) put(slice(i, of, of.endpoints, 100 + (round % 100)));
        server.cluster.compact();
      }
      await delay(500);
      await server.start();
    })();
  });
  process.send!(server.url);
}

async function measureAll(): Promise<void> {
  const ending = new AbortController();
  const { signal } = ending;
  const ignored = (): void => undefined;
  const log = { debug: ignored, info: ignored, warn: ignored, error: console.error };
  const engine = await startEngine({
    mesh: defaultMeshOptions,
    protos: createProtos(),
    plaintext: { host: '127.0.0.1', port: 0 },
    batch: { quiet: 50, max: 250 },
    log,
    rejected: ignored,
    notAdmitted: ignored,
    heapBytes: getHeapStatistics().heap_size_limit,
    signal,
  });
  for (const object of scaleObjects(options)) engine.objects.upsert(object.kind as 'Service', object);
  const other = fork(import.meta.filename, ['serve', String(SERVICES)]);
  const server = await new Promise<string>((resolve) => other.once('message', (url) => resolve(url as string)));
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-bench-'));
  const write = async (token: string): Promise<void> => {
    await writeFile(join(directory, '.new'), kubeconfigFor(server, { cluster: 'east', token }));
    await rename(join(directory, '.new'), join(directory, 'east'));
  };
  await write('0');
  const remote = followRemoteClusters({
    ...{ engine, clusterId: defaultMeshOptions.clusterId, rootNamespace: defaultMeshOptions.rootNamespace },
    from: { kind: 'Files', directory },
    ownKinds: kindsToRead({ multiclusterServices: false }),
    rules: { allowInsecure: true },
    credentials: new ClusterCredentials(engine, systemClock),
    heapBytes: getHeapStatistics().heap_size_limit,
    ...{ clock: systemClock, random: Math.random, log, signal },
  });
  await remote.ready;
  await engine.open();
  const peers = new Peers();
  const connected = peers.done();
  const names = Array.from(
    { length: SERVICES },
    (_, i) => `outbound|8080||s-${i}.${namespaceOf(i, options)}.svc.cluster.local`,
  );
  peers.connect({
    port: engine.ads.port!,
    clients: 20,
    requests: firstRequests({ names, tables: ['8080'], node: 'sidecar~10.1.0.1~a.ns-0~ns-0.svc.cluster.local' }),
    atOnce: false,
    responses: 4,
  });
  await connected;

  let changed = 0;
  let published: ((key: string) => void) | undefined;
  engine.mesh.graph.observe(({ writes }) => {
    for (const { key } of writes) published?.(key);
  });
  /** Milliseconds from a change to when it is in force, and the event loop free for those who are to be told. */
  const change = async (): Promise<number> => {
    const i = ++changed % SERVICES;
    const object = slice(i, options, options.endpoints, changed);
    const { namespace = '', name } = object.metadata;
    const wanted = `${defaultMeshOptions.clusterId}/${namespace}/${name}`;
    const done = new Promise<void>((resolve) => {
      published = (key) => {
        if (key === wanted) resolve();
      };
    });
    const began = performance.now();
    engine.objects.upsert('EndpointSlice', object);
    await done;
    await new Promise((resolve) => setImmediate(resolve));
    return performance.now() - began;
  };
  const measure = async (flap: Flap): Promise<string> => {
    const loop = monitorEventLoopDelay({ resolution: 5 });
    const cpu = process.cpuUsage();
    loop.enable();
    let tokens = 0;
    const flapping = setInterval(() => {
      if (flap === 'swap') void write(`${flap}${++tokens}`);
      else if (flap !== 'rest') other.send(flap);
    }, 1_000);
    const delays: number[] = [];
    const until = performance.now() + SECONDS * 1_000;
    while (performance.now() < until) {
      delays.push(await change());
      await delay(20 + 60 * Math.random());
    }
    clearInterval(flapping);
    loop.disable();
    const { user, system } = process.cpuUsage(cpu);
    await delay(3_000);
    const of = (part: number): string => percentile(delays, part).toFixed(0);
    return `${flap}: ${delays.length} changes, p50 ${of(0.5)} ms, p99 ${of(0.99)} ms, max ${of(1)} ms; event loop max ${(loop.max / 1e6).toFixed(0)} ms; CPU ${((user + system) / 1e4 / SECONDS).toFixed(0)} %`;
  };
  // The first one warms up.
  await measure('rest');
  for (const flap of ['rest', 'away', 'relist', 'swap', 'rest'] as const) console.log(await measure(flap));
  peers.end();
  other.kill();
  ending.abort();
  await remote.end();
  await rm(directory, { recursive: true });
  process.exit(0);
}

function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!;
}
