/**
 * What a start costs that reads other clusters, from their API servers to the first commit: `node bench/first-read.ts
 * [clusters] [services]`. All have the same Services, each with two endpoints. One process plays all API servers.
 */
import { fork } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import { kinds, kindsToRead } from '../src/api/kinds.ts';
import { ClusterCredentials } from '../src/other-clusters/cluster-credentials.ts';
import { systemClock } from '../src/base/clock.ts';
import { startEngine } from '../src/engine/engine.ts';
import { createProtos } from '../src/envoy/encode/proto.ts';
import { collectionPath } from '../src/kube/client/paths.ts';
import { FakeApiServer } from '../src/kube/testing/fake-api-server.ts';
import { defaultMeshOptions } from '../src/mesh/inputs.ts';
import { followRemoteClusters } from '../src/other-clusters/remote-clusters.ts';
import { kubeconfigFor } from './kubeconfig.ts';
import { scaleObjects } from './scale-mesh.ts';

if (process.argv[2] === 'serve') await serve(Number(process.argv[3]));
else await measure(Number(process.argv[2] ?? 100), Number(process.argv[3] ?? 1_000));

function optionsFor(services: number) {
  return { services, namespaces: 20, endpoints: 2, routes: false };
}

async function serve(services: number): Promise<void> {
  const server = await new FakeApiServer().start();
  for (const kind of kinds) server.cluster.install(collectionPath(kind), kind.kind);
  for (const object of scaleObjects(optionsFor(services)))
    server.cluster.apply(collectionPath(kinds.find(({ kind }) => kind === object.kind)!), object as never);
  process.send!(server.url);
}

async function measure(clusters: number, services: number): Promise<void> {
  const options = optionsFor(services);
  const ending = new AbortController();
  const { signal } = ending;
  const ignored = (): void => undefined;
  const log = { debug: ignored, info: ignored, warn: ignored, error: console.error };
  const heapBytes = getHeapStatistics().heap_size_limit;
  const engine = await startEngine({
    ...{ mesh: defaultMeshOptions, protos: createProtos(), plaintext: { host: '127.0.0.1', port: 0 } },
    ...{ batch: { quiet: 50, max: 250 }, log, rejected: ignored, notAdmitted: ignored, heapBytes, signal },
  });
  for (const object of scaleObjects(options)) engine.objects.upsert(object.kind as 'Service', object);
  const other = fork(import.meta.filename, ['serve', String(services)]);
  const server = await new Promise<string>((resolve) => other.once('message', (url) => resolve(url as string)));
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-bench-'));
  for (let i = 0; i < clusters; i++)
    await writeFile(join(directory, `c${i}`), kubeconfigFor(server, { cluster: `c${i}` }));
  const before = process.cpuUsage();
  const began = performance.now();
  const remote = followRemoteClusters({
    ...{ engine, clusterId: defaultMeshOptions.clusterId, rootNamespace: defaultMeshOptions.rootNamespace },
    from: { kind: 'Files', directory },
    ownKinds: kindsToRead({ multiclusterServices: false }),
    rules: { allowInsecure: true },
    credentials: new ClusterCredentials(engine, systemClock),
    ...{ heapBytes, clock: systemClock, random: Math.random, log, signal },
  });
  await remote.ready;
  while (remote.reports().some(({ phase }) => phase !== 'synced'))
    await new Promise((resolve) => setTimeout(resolve, 10));
  await engine.open();
  const { user, system } = process.cpuUsage(before);
  console.log(
    JSON.stringify({
      ...{ clusters: remote.reports().length, services },
      cpuSeconds: Number(((user + system) / 1e6).toFixed(1)),
      seconds: Number(((performance.now() - began) / 1_000).toFixed(1)),
    }),
  );
  other.kill();
  ending.abort();
  await remote.end();
  await rm(directory, { recursive: true });
  process.exit(0);
}
