/**
 * What reading the clusters of a ClusterMesh costs, from a real etcd and without the graph: `node --expose-gc
 * bench/cluster-mesh.ts [clusters] [services]`. Each service has two back ends, each of these a Pod with an address, and ten
 * of them share an identity; as many addresses again are of Pods behind no service. All are in one etcd,
 * as KVStoreMesh has them, which is a process of its own.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { ClusterIds } from '../src/clustermesh/cluster-ids.ts';
import { type MeshSource, readMeshCluster } from '../src/clustermesh/reader.ts';
import type { EtcdConnection } from '../src/etcd/connection.ts';
import { systemClock } from '../src/base/clock.ts';
import { CiliumWriter } from '../test/clustermesh/cilium-writer.ts';
import { OWN, Delivered } from '../test/clustermesh/mesh-lab.ts';
import { startEtcd } from '../test/peers/etcd.ts';
import { cpu, heap } from './usage.ts';

const [clusters = 10, services = 1_000] = process.argv.slice(2).map(Number);
const PODS = 2 * services;
const NODES = Math.ceil(PODS / 100);

const address = (cluster: number, i: number): string => `10.${cluster + 2}.${i >> 8}.${i & 255}`;
const backends = (cluster: number, i: number) => ({
  [address(cluster, 2 * i)]: 8080,
  [address(cluster, 2 * i + 1)]: 8080,
});

/** Writes what a clustermesh-apiserver would, many keys at a time. */
async function fill(writer: CiliumWriter, cluster: number): Promise<void> {
  const writes: (() => Promise<void>)[] = [];
  for (let i = 0; i < NODES; i++) writes.push(() => writer.node(`n${i}`, `192.168.${cluster}.${i}`));
  for (let i = 0; i < PODS / 10; i++) writes.push(() => writer.identity(i + 1, { 'k8s:app': `app-${i}` }));
  for (let i = 0; i < 2 * PODS; i++)
    writes.push(() => writer.pod(address(cluster, i), Math.floor((i % PODS) / 10) + 1, 'shop', `pod-${i}`));
  for (let i = 0; i < services; i++)
    writes.push(() => writer.service({ namespace: 'shop', name: `s${i}`, backends: backends(cluster, i) }));
  await writer.begin();
  while (writes.length > 0) await Promise.all(writes.splice(0, 256).map((write) => write()));
  await writer.finish();
}

const etcd = await startEtcd();
try {
  const admin: EtcdConnection = await etcd.connect('admin');
  const writers = Array.from({ length: clusters }, (_, c) => new CiliumWriter(() => admin, `c${c}`, c + 2, 'cache'));
  for (const [c, writer] of writers.entries()) await fill(writer, c);
  const access = await etcd.access('admin');
  const ids = new ClusterIds(OWN);
  const end = new AbortController();
  setMaxListeners(0, end.signal);
  const sinks: Delivered[] = [];
  const before = heap();
  const began = cpu();
  const sources = writers.map(({ cluster: name }): MeshSource => {
    const sink = new Delivered();
    sinks.push(sink);
    const options = { name, own: OWN, access, ids, sink, importsServices: false, clock: systemClock };
    return readMeshCluster({ ...options, random: Math.random }, { signal: end.signal });
  });
  await Promise.all(sources.map(({ ready }) => ready));
  const read = cpu() - began;
  const bytes = heap() - before;
  const [writer] = writers as [CiliumWriter];
  const [sink] = sinks as [Delivered];
  const rounds = Math.min(1_000, PODS);
  const changing = cpu();
  for (let round = 0; round < rounds; round++)
    await writer.service({
      ...{ namespace: 'shop', name: `s${round % services}` },
      backends: { [address(0, PODS + round)]: 8080, [address(0, 2 * (round % services))]: 8080 },
    });
  // Their Pod is behind no other service.
  while (sink.kinds.get('Pod')?.has(`shop/pod-${PODS + rounds - 1}`) !== true) await setTimeout(1);
  const changed = cpu() - changing;
  console.log(
    JSON.stringify({
      ...{ clusters, services, pods: sinks.reduce((sum, each) => sum + each.names('Pod').length, 0) },
      readCpuSeconds: Number((read / 1_000).toFixed(2)),
      bytesPerService: Math.round(bytes / clusters / services),
      // With writing them.
      changeCpuMs: Number((changed / rounds).toFixed(2)),
    }),
  );
  end.abort();
  await Promise.all(sources.map(({ ended }) => ended));
} finally {
  await etcd.stop();
}
