import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { World } from '../src/ads/store/publication.ts';
import { CDS, EDS, LDS, leaf, member, Peers, request, resource, startServer } from './ads-peers.ts';

/**
 * How long the ADS server blocks the event loop while many delta streams reconnect, or move to another world: event
 * loop delay, which also grows with other load on the machine, and CPU per round, which is the server's alone.
 *
 *     node bench/ads-moves.ts [clients] [services]
 */
const CLIENTS = Number(process.argv[2] ?? 1000);
const SERVICES = Number(process.argv[3] ?? 10_000);
const SHARDS = Math.min(800, SERVICES / 10);

const nameOf = (i: number): string => `outbound|8080||service-${i}.namespace-${i % 50}.svc.cluster.local`;
const shards = Array.from({ length: SHARDS }, (_, i) => `shard-${i}`);
const members = Array.from({ length: SERVICES }, (_, i) => [
  member(`shard-${i % SHARDS}`, resource(CDS, nameOf(i), leaf(`cluster ${i}`, 64))),
  member(`shard-${i % SHARDS}`, resource(EDS, nameOf(i), leaf(`endpoints ${i}`, 64))),
]).flat();
// Besides the shards, each world has its own listener.
members.push(...['wide', 'other', 'narrow'].map((list) => member(list, resource(LDS, 'listener', leaf(list, 64)))));

const worldAt = (root: string): World => ({ roots: [root], qualifiers: [] });
const peers = new Peers();
const streams: string[] = [];
const server = await startServer((stream) => {
  streams.push(stream);
  return worldAt('wide');
});

function moveAll(root: string): void {
  const world = worldAt(root);
  server.apply({ members: [], lists: [], worlds: streams.map((stream) => ({ stream, world })) });
}

/** CPU of the main thread between ticks of a 1 ms timer, in milliseconds. */
function watchRounds(): () => number[] {
  const rounds: number[] = [];
  let last = process.threadCpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.threadCpuUsage(last);
    last = process.threadCpuUsage();
    rounds.push((user + system) / 1000);
  }, 1);
  return () => {
    clearInterval(timer);
    return rounds.sort((a, b) => a - b);
  };
}

async function measure(name: string, start: () => void): Promise<void> {
  await delay(500);
  const delays = monitorEventLoopDelay({ resolution: 1 });
  const done = peers.done();
  const rounds = watchRounds();
  const cpuBefore = process.cpuUsage();
  delays.enable();
  const at = performance.now();
  start();
  await done;
  const wall = performance.now() - at;
  delays.disable();
  const { user, system } = process.cpuUsage(cpuBefore);
  const cpu = rounds();
  const share = (part: number): string => cpu[Math.floor((cpu.length - 1) * part)]!.toFixed(1);
  const ms = (nanoseconds: number): string => (nanoseconds / 1e6).toFixed(1);
  console.log(
    `${name.padEnd(58)} delay p50 ${ms(delays.percentile(50))} p99 ${ms(delays.percentile(99))} max ${ms(delays.max)} ms` +
      `  round p50 ${share(0.5)} p99 ${share(0.99)} max ${share(1)} ms` +
      `  cpu ${((user + system) / 1000).toFixed(0)} ms  wall ${wall.toFixed(0)} ms`,
  );
}

server.apply({
  members,
  lists: [
    { list: 'wide', children: shards },
    { list: 'other', children: shards.slice(1) },
    { list: 'narrow', children: shards.slice(0, SHARDS / 10) },
  ],
  worlds: [],
});
const versions = (typeUrl: string): Map<string, string> =>
  new Map(
    members.flatMap(({ resource: item }): [string, string][] =>
      item?.typeUrl === typeUrl ? [[item.name, item.name === nameOf(17) ? 'old' : item.version]] : [],
    ),
  );
const requests = [
  request({ typeUrl: CDS, node: 'sidecar~10.0.0.1~a.b~b.svc.cluster.local', versions: versions(CDS) }),
  request({ typeUrl: EDS, names: Array.from({ length: SERVICES }, (_, i) => nameOf(i)), versions: versions(EDS) }),
  request({ typeUrl: LDS }),
];
await measure('come back; one cluster and one assignment differ', () =>
  peers.connect({ port: server.port!, clients: CLIENTS, requests, atOnce: true, responses: 3 }),
);
// Clusters stay for a while after they have left the world, so at first only the listener differs.
for (const [root, what, responses] of [
  ['other', 'all but one list stay the same', 1],
  ['wide', 'and back', 1],
  ['narrow', 'a tenth of the lists', 1],
  ['wide', 'and back, before the clusters are gone', 1],
  ['narrow', 'a tenth of the lists, until the clusters are gone', 2],
  ['wide', 'and back, once they are gone', 3],
] as const) {
  await peers.expect(responses);
  await measure(`move: ${what}`, () => moveAll(root));
}
console.log(server.counts());
peers.end();
await server.close();
