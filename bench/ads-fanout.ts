import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { MemberChange } from '../src/ads/store/publication.ts';
import type { EncodedResource } from '../src/ads/store/resource.ts';
import { CDS, EDS, LDS, RDS, firstRequests, leaf, member, Peers, request, resource, startServer } from './ads-peers.ts';

/**
 * What it costs the ADS server to push changes to many delta streams that see everything: CPU of this process (the
 * clients run in another one), and wall time until the last client has acknowledged.
 *
 *     node bench/ads-fanout.ts [clients] [services] [changes]
 */
const CLIENTS = Number(process.argv[2] ?? 1000);
const SERVICES = Number(process.argv[3] ?? 1870);
const CHANGES = Number(process.argv[4] ?? 10);

const hosts = Array.from(
  { length: SERVICES },
  (_, i) => `outbound|8080||svc-${i}.namespace-${i % 50}.svc.cluster.local`,
);
const fragments = hosts.map((name, i) => leaf(`virtual host ${i}`, 350, [name]));

function table(name: string, changed: number, revision: number): EncodedResource {
  const children = fragments.map((fragment, i) =>
    i === changed ? leaf(`changed ${revision}`, 350, [hosts[i]!]) : fragment,
  );
  const hash = createHash('sha1')
    .update(children.map((child) => child.hash).join())
    .digest('base64url')
    .slice(0, 22);
  return resource(RDS, name, { children, hash, length: children.reduce((sum, child) => sum + child.length, 0) });
}

/** Every proxy has the shared lists and its own list, as in a mesh. */
function initial(): MemberChange[] {
  const members: MemberChange[] = [];
  const add = (list: string, item: EncodedResource): void => {
    members.push(member(list, item));
  };
  hosts.forEach((name, i) => {
    add(`shard-${i % 400}`, resource(CDS, name, leaf(`cluster ${i}`, 1000)));
    add(`shard-${(i % SERVICES) % 400}`, resource(EDS, name, leaf(`endpoints ${i}`, 450)));
  });
  for (let i = 0; i < 4; i++) add('scope', resource(LDS, `listener-${i}`, leaf(`listener ${i}`, 4000)));
  for (const name of ['8080', '9090']) add('scope', table(name, -1, 0));
  for (let i = 0; i < CLIENTS; i++) {
    add(`inbound-${i}`, resource(LDS, 'virtualInbound', leaf(`inbound ${i % 3}`, 4000)));
    add(`inbound-${i}`, resource(CDS, 'inbound|8080||', leaf('inbound', 600)));
  }
  return members;
}

const peers = new Peers();
let streams = 0;
const server = await startServer(() => ({ roots: ['scope', `inbound-${streams++ % CLIENTS}`], qualifiers: [] }));
const current = new Map<string, EncodedResource>();
function publish(members: readonly MemberChange[], lists: { list: string; children: string[] }[] = []): void {
  for (const { list, resource: item } of members) {
    if (item !== undefined && (!list.startsWith('inbound') || list === 'inbound-0'))
      current.set(`${item.typeUrl} ${item.name}`, item);
  }
  server.apply({ members, lists, worlds: [] });
}
publish(initial(), [{ list: 'scope', children: Array.from({ length: 400 }, (_, i) => `shard-${i}`) }]);

async function measure(name: string, start: () => void, responses: number | undefined): Promise<void> {
  await delay(300);
  globalThis.gc?.();
  if (responses !== undefined) await peers.expect(responses);
  const before = process.cpuUsage();
  const at = performance.now();
  const reported = peers.done();
  start();
  const { bytes } = await reported;
  const wall = performance.now() - at;
  await delay(150);
  const { user, system } = process.cpuUsage(before);
  const rss = process.memoryUsage().rss / 1e6;
  console.log(
    `${name.padEnd(34)} cpu ${((user + system) / 1000).toFixed(0).padStart(6)} ms (user ${(user / 1000).toFixed(0)})` +
      `  wall ${wall.toFixed(0).padStart(5)} ms  ${(bytes / CLIENTS / 1000).toFixed(1).padStart(7)} KB per stream  RSS ${rss.toFixed(0)} MB`,
  );
}

const node = 'sidecar~10.0.0.1~a.b~b.svc.cluster.local';
const names = hosts;
const fresh = firstRequests({ node, names, tables: ['8080', '9090'] });
const { port } = server;
const connect = (requests: readonly string[], atOnce: boolean, responses: number) => (): void =>
  peers.connect({ port: port!, clients: CLIENTS, requests, atOnce, responses });

const memory = (): { readonly rss: number; readonly heap: number } => {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  return { rss: rss / 1000, heap: heapUsed / 1000 };
};
const alone = memory();
await measure('connect, from nothing', connect(fresh, false, 4), undefined);
for (let i = 1; i <= CHANGES; i++) {
  const name = hosts[i % SERVICES]!;
  const change = (): void =>
    publish([member(`shard-${(i % SERVICES) % 400}`, resource(EDS, name, leaf(`changed ${i}`, 1100)))]);
  await measure('one assignment', change, 1);
}
for (let i = 1; i <= 3; i++) {
  await measure('one route table', () => publish([member('scope', table('8080', 7, i))]), 1);
}
for (let i = 1; i <= 2; i++) {
  const at = SERVICES - i;
  const change = (): void =>
    publish([member(`shard-${at % 400}`, resource(CDS, hosts[at]!, leaf(`changed ${i}`, 1000)))]);
  await measure('one cluster and its assignment', change, 2);
}
await delay(2000);
const idle = memory();
const perStream = (of: 'rss' | 'heap'): string => ((idle[of] - alone[of]) / CLIENTS).toFixed(0);
console.log(`idle: ${perStream('rss')} KB per stream, ${perStream('heap')} KB of it in the heap`, server.counts());

await peers.disconnect();
await delay(500);
const versions = (typeUrl: string): Map<string, string> =>
  new Map([...current.values()].filter((item) => item.typeUrl === typeUrl).map((item) => [item.name, item.version]));
const inboundFirst = current.get(`${LDS} virtualInbound`)!;
const known = [
  request({ typeUrl: CDS, node, versions: versions(CDS) }),
  request({ typeUrl: EDS, names, versions: versions(EDS) }),
  request({ typeUrl: LDS, versions: new Map([...versions(LDS), ['virtualInbound', `not ${inboundFirst.version}`]]) }),
  request({ typeUrl: RDS, names: ['8080', '9090'], versions: versions(RDS) }),
];
// Everything but the inbound listener is known, so that there is exactly one response to wait for.
await measure('reconnect, with versions', connect(known, true, 1), undefined);
console.log(server.counts());
peers.end();
await server.close();
