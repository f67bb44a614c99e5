import { readFileSync, writeFileSync } from 'node:fs';
import { typeUrl } from '../src/envoy/encode/proto.ts';
import { type ServedType, servedTypes } from '../src/envoy/encode/served-types.ts';
import type { KubernetesObject } from '../src/api/object.ts';
import { Fleet, sidecarOf } from '../test/harness/fleet.ts';
import { field } from '../test/harness/raw-ads.ts';
import { Executions } from './executions.ts';
import { destinationRule, namespaceOf, scaleObjects, service, slice, virtualService } from './scale-mesh.ts';

/**
 * What changes cost, in work instead of time: how often blocks of our code are executed, and what is sent. The figures
 * are the same on every machine, so that a test can compare them with those in `bench/work.json` (`make work` rewrites
 * it). All of the engine but the network: objects, the graph, and the protocol of each stream.
 *
 *     node bench/work.ts [--write]
 */
const SERVICES = 100;
const PROXIES = 100;
const mesh = { services: SERVICES, namespaces: 5, endpoints: 5, routes: true };

/** Executions of blocks, by what they are part of; responses; and their bytes. */
interface Work {
  readonly graph: number;
  readonly ads: number;
  readonly responses: number;
  readonly bytes: number;
}

const urlOf = (type: ServedType): string => typeUrl(servedTypes[type]);

/** A delta Envoy that knows beforehand what it will ask for: all work is the server's. */
class Peer {
  readonly #fleet: Fleet;
  readonly #stream: string;
  #unanswered: (readonly [typeUrl: string, nonce: string])[] = [];
  responses = 0;
  bytes = 0;

  constructor(fleet: Fleet, stream: string) {
    this.#fleet = fleet;
    this.#stream = stream;
  }

  ask(type: ServedType, names: readonly string[] = []): void {
    this.#request(urlOf(type), names);
  }

  /** Takes what there is. */
  take(): boolean {
    const { delivery } = this.#fleet.proxies.get(this.#stream)!;
    let any = false;
    for (let frame = delivery!.next(this.#fleet.now); frame !== undefined; frame = delivery!.next(this.#fleet.now)) {
      any = true;
      this.responses++;
      this.bytes += frame.length;
      const [url, nonce] = headOf(frame.slices[0]!);
      this.#unanswered.push([url, nonce]);
    }
    return any;
  }

  /** Acknowledges what it took. */
  answer(): void {
    for (const [url, nonce] of this.#unanswered.splice(0)) this.#request(url, [], nonce);
  }

  #request(url: string, names: readonly string[], nonce?: string): void {
    const fields = [field(2, url), ...names.map((name) => field(3, name))];
    if (nonce !== undefined) fields.push(field(6, nonce));
    const { delivery } = this.#fleet.proxies.get(this.#stream)!;
    delivery!.request(this.#fleet.read(Buffer.concat(fields), true), this.#fleet.now);
  }
}

/** Field 4 (type URL), then field 5 (nonce), behind the prefix. */
function headOf(slice: Uint8Array): [string, string] {
  const head = Buffer.from(slice.buffer, slice.byteOffset + 5, Math.min(slice.length - 5, 200));
  const typeEnd = 2 + head[1]!;
  return [head.toString('latin1', 2, typeEnd), head.toString('latin1', typeEnd + 2, typeEnd + 2 + head[typeEnd + 1]!)];
}

const fleet = new Fleet();
fleet.set(...scaleObjects(mesh));
const executions = new Executions();
await executions.start();
const peers: Peer[] = [];
const figures: Record<string, Work> = {};

function exchange(): void {
  for (let busy = true; busy;) {
    busy = false;
    for (const peer of peers) busy = peer.take() || busy;
    for (const peer of peers) peer.answer();
  }
}

/** The first time, the work is that of a first time. */
async function measure(name: string, work: () => void): Promise<void> {
  const sum = (of: 'responses' | 'bytes'): number => peers.reduce((all, peer) => all + peer[of], 0);
  const [responses, bytes] = [sum('responses'), sum('bytes')];
  await executions.take();
  work();
  const { graph, ads } = await executions.take();
  figures[name] = { graph, ads, responses: sum('responses') - responses, bytes: sum('bytes') - bytes };
}

const streams = Array.from({ length: PROXIES }, (_, i) => {
  const namespace = namespaceOf(i, mesh);
  return sidecarOf(`p-${i} 10.9.${i >> 8}.${i & 255}`, namespace, { app: `s-${i}` });
});
await measure('all connect', () => {
  for (const proxy of streams) {
    fleet.connect(proxy, true);
    peers.push(new Peer(fleet, proxy.stream));
  }
});
const namesOf = (stream: string, type: ServedType): string[] =>
  [...fleet.versions(stream).keys()].flatMap((key) => (key.startsWith(`${type} `) ? [key.slice(type.length + 1)] : []));
const wanted = streams.map(({ stream }) => [namesOf(stream, 'eds'), namesOf(stream, 'rds')] as const);
await measure('all ask', () => {
  peers.forEach((peer, i) => {
    const [endpoints, tables] = wanted[i]!;
    peer.ask('cds');
    peer.take();
    peer.ask('eds', endpoints);
    peer.ask('lds');
    peer.take();
    peer.ask('rds', tables);
    peer.answer();
  });
  exchange();
});

let shift = 0;
const endpoint = (i: number): void => fleet.set(slice(i, mesh, 5, ++shift));
const change = async (name: string, work: () => void): Promise<void> => {
  work();
  exchange();
  fleet.pass(10_000);
  await measure(name, () => {
    work();
    exchange();
  });
  fleet.pass(10_000);
};
await change('an endpoint changes', () => endpoint(7));
for (const behind of [10, 20]) {
  await change(`an endpoint changes ${behind} times before anybody looks`, () => {
    for (let i = 0; i < behind; i++) endpoint(i);
  });
}
let weight = 0;
await change('the weight of a route changes', () => fleet.set(virtualService(5, mesh, (weight += 10))));
const nobody: KubernetesObject = destinationRule(SERVICES + 999, mesh);
let generation = 1;
await change('a DestinationRule that concerns nobody changes', () => {
  generation++;
  fleet.set({
    ...nobody,
    metadata: { ...nobody.metadata, generation },
    spec: { host: 'nowhere', subsets: [{ name: `v${generation}` }] },
  } as KubernetesObject);
});
let created = SERVICES;
const create = (): void => {
  fleet.set(service(created, mesh), slice(created, mesh, 5));
  const name = `outbound|8080||s-${created}.${namespaceOf(created, mesh)}.svc.cluster.local`;
  created++;
  for (const peer of peers) {
    peer.take();
    peer.ask('eds', [name]);
  }
};
await change('a service is created', create);
await change('a service is deleted', () => {
  created--;
  fleet.delete(service(created, mesh), slice(created, mesh, 5));
  exchange();
  fleet.pass(10_000);
  for (const { delivery } of fleet.proxies.values()) delivery!.tick(fleet.now);
});

const second = (): void => {
  fleet.pass(1_000);
  for (const { delivery } of fleet.proxies.values()) delivery!.tick(fleet.now);
  exchange();
};
for (let i = 0; i < 60; i++) second();
await measure('a second passes', second);

const file = new URL('work.json', import.meta.url);
if (process.argv.includes('--write')) writeFileSync(file, `${JSON.stringify(figures, undefined, 2)}\n`);
const recorded = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Work>;
/** By share, at least one: V8 now and then counts a block once more, or once less. What is sent is exact. */
const SLACK = { graph: 0.0005, ads: 0.0005, responses: 0, bytes: 0 } as const satisfies Record<keyof Work, number>;
let more = 0;
for (const [name, work] of Object.entries(figures)) {
  const was = recorded[name];
  for (const [what, count] of Object.entries(work) as [keyof Work, number][]) {
    const isMore = was === undefined || count > was[what] + Math.ceil(was[what] * SLACK[what]);
    if (isMore) more++;
    console.log(`${name}: ${what} ${count}${isMore ? `, MORE than ${was?.[what] ?? 'nothing'}` : ''}`);
  }
}
console.log(`above the recorded figures: ${more}`);
