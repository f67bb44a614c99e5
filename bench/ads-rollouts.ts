import { setTimeout as delay } from 'node:timers/promises';
import type { EncodedResource } from '../src/ads/store/resource.ts';
import type { Rollout } from '../src/ads/rollouts/rollout.ts';
import { Rollouts } from '../src/ads/rollouts/rollouts.ts';
import { CDS, EDS, LDS, RDS, firstRequests, leaf, member, Peers, resource, startServer } from './ads-peers.ts';

/**
 * What it costs the ADS server to know who has acknowledged a change: CPU of this process from the change until the last
 * of many clients has acknowledged it, with a rollout and without, by turns; and the memory of rollouts that nobody
 * acknowledges.
 *
 *     node --expose-gc bench/ads-rollouts.ts [clients] [services] [rounds]
 */
const CLIENTS = Number(process.argv[2] ?? 1000);
const SERVICES = Number(process.argv[3] ?? 400);
const ROUNDS = Number(process.argv[4] ?? 15);
/** Longer than an acknowledged rollout takes to count as over. */
const REST_MS = 400;

const settled = new Set<Rollout>();
const rollouts = new Rollouts({
  after: (ms, work) => void setTimeout(work, ms),
  settled: (found) => {
    for (const rollout of found) {
      settled.add(rollout);
      rollouts.forget(rollout.key);
    }
  },
  changed: () => {},
});
const server = await startServer(() => ({ roots: ['all'], qualifiers: [] }), rollouts);
const names = Array.from({ length: SERVICES }, (_, i) => `outbound|8080||svc-${i}.ns.svc.cluster.local`);
const parts = names.map((name, i) => leaf(`virtual host ${i}`, 350, [name]));
let revision = 0;
/** Of the service that is changed. */
let at = 0;

function assignment(service: number): EncodedResource {
  return resource(EDS, names[service % SERVICES]!, leaf(`endpoints ${++revision}`, 1100));
}

function table(service: number): EncodedResource {
  const changed = leaf(`changed ${++revision}`, 350, [names[service % SERVICES]!]);
  const children = parts.map((part, i) => (i === service % SERVICES ? changed : part));
  const length = children.reduce((sum, child) => sum + child.length, 0);
  return resource(RDS, '8080', { children, hash: `table ${revision}`, length });
}

/** With a rollout, if it has a key. */
function publish(item: EncodedResource, key?: string): Rollout | undefined {
  const rollout = key === undefined ? undefined : rollouts.begin(key);
  server.apply({
    members: [{ ...member('all', item), ...(rollout && { rollouts: [rollout] }) }],
    lists: [],
    worlds: [],
  });
  return rollout;
}

server.apply({
  members: [
    ...names.map((name, i) => member('all', resource(CDS, name, leaf(`cluster ${i}`, 1000)))),
    ...names.map((_, i) => member('all', assignment(i))),
    member('all', resource(LDS, 'listener', leaf('listener', 4000))),
    member('all', table(0)),
  ],
  lists: [],
  worlds: [],
});

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
const heap = async (): Promise<number> => {
  for (let i = 0; i < 3; i++) {
    await delay(2 * REST_MS);
    globalThis.gc?.();
  }
  return process.memoryUsage().heapUsed;
};
/** Rollouts that nobody acknowledges: enough for differences that small. */
const OPEN = 2 * SERVICES;

for (const [variant, sotw] of [
  ['delta', false],
  ['state of the world', true],
] as const) {
  const peers = new Peers();
  const node = 'sidecar~10.0.0.1~a.b~b.svc.cluster.local';
  const connected = peers.done();
  peers.connect({
    port: server.port!,
    sotw,
    clients: CLIENTS,
    requests: firstRequests({ sotw, node, names, tables: ['8080'] }),
    atOnce: false,
    responses: 4,
  });
  await connected;

  const measure = async (item: EncodedResource, key?: string): Promise<number> => {
    await delay(REST_MS);
    globalThis.gc?.();
    await peers.expect(1);
    const done = peers.done();
    const before = process.cpuUsage();
    const rollout = publish(item, key);
    await done;
    await delay(REST_MS);
    const { user, system } = process.cpuUsage(before);
    while (rollout !== undefined && !settled.has(rollout)) await delay(10);
    return (user + system) / 1000;
  };
  for (const [what, make] of [
    ['one assignment', assignment],
    ['one route table', table],
  ] as const) {
    const [without, tracked]: [number[], number[]] = [[], []];
    for (let round = -2; round < ROUNDS; round++) {
      const [plain, open] = [() => measure(make(++at)), () => measure(make(++at), `${variant} ${what} ${round}`)];
      // By turns, who is first has no advantage. The first ones warm up.
      const first = round % 2 === 0 ? await plain() : undefined;
      const pair = [await open(), first ?? (await plain())] as const;
      if (round < 0) continue;
      without.push(pair[1]);
      tracked.push(pair[0]);
    }
    const [a, b] = [median(without), median(tracked)];
    console.log(
      `${variant}, ${what}: cpu ${a.toFixed(1)} ms, with a rollout ${b.toFixed(1)} ms: ${(b / a).toFixed(2)} of it,` +
        ` ${(((b - a) * 1000) / CLIENTS).toFixed(1)} us per acknowledgement`,
    );
  }

  await peers.mute(true);
  const grown = async (key?: (i: number) => string): Promise<number> => {
    const before = await heap();
    for (let i = 0; i < OPEN; i++) {
      publish(assignment(i), key?.(i));
      if (i % 10 === 9) await delay(5);
    }
    return (await heap()) - before;
  };
  await grown();
  const plain = await grown();
  const open = await grown((i) => `${variant} open ${i}`);
  console.log(
    `${variant}, ${rollouts.size} rollouts that ${CLIENTS} clients do not acknowledge:` +
      ` ${((open - plain) / OPEN / 1024).toFixed(1)} KB each`,
  );
  await peers.disconnect();
  await delay(REST_MS);
  peers.end();
}
console.log(`failures: ${rollouts.size}`);
await server.close();
