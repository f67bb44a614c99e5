import { BARRIER_TIMES } from '../../src/ads/protocol/barrier-times.ts';
import { Canaries } from '../../src/ads/protocol/canaries.ts';
import { shareForRejected } from '../../src/ads/protocol/rejected-room.ts';
import { Delivery, type DeliveryContext } from '../../src/ads/protocol/delivery.ts';
import { ContentHasher } from '../../src/ads/store/content-hash.ts';
import { originKey } from '../../src/ads/store/origins.ts';
import { NameSets } from '../../src/ads/store/name-set.ts';
import type { Rollout } from '../../src/ads/rollouts/rollout.ts';
import { References } from '../../src/ads/store/served.ts';
import { Store } from '../../src/ads/store/store.ts';
import type { WorldView } from '../../src/ads/store/world.ts';
import type { ConnectedProxy } from '../../src/ads/types.ts';
import { Frames } from '../../src/ads/wire/frames.ts';
import { FieldReader } from '../../src/ads/wire/field-reader.ts';
import { readDeltaRequest, readRequest } from '../../src/ads/wire/wire-read.ts';
import { kindOf } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { Graph, type Write } from '../../src/cache/graph.ts';
import { catalog } from '../../src/engine/catalog.ts';
import { ProgressOfObjects } from '../../src/engine/progress.ts';
import { typeUrl } from '../../src/envoy/encode/proto.ts';
import { type Mesh, buildMesh } from '../../src/mesh.ts';
import { isInForceBy } from '../../src/mesh/findings/conditions.ts';
import { ONE, defaultMeshOptions } from '../../src/mesh/inputs.ts';
import { type ServedType, servedTypes } from '../../src/envoy/encode/served-types.ts';
import { snapshotOf } from '../../src/debug/snapshot.ts';
import { connectedProxy, testEncoder, testProtos, writeOf } from './mesh.ts';
import { field } from './raw-ads.ts';

const typeNames = ['cds', 'eds', 'lds', 'rds', 'sds'] as const;

/** By `type name`, the version of every resource that a proxy has when it has everything. */
export type Versions = ReadonlyMap<string, string>;

export function versionsOf(store: Store, mesh: Mesh, stream: string): Versions {
  const snapshot = snapshotOf(store, mesh.worldOf(stream), testProtos());
  return new Map(
    typeNames.flatMap((type) => snapshot[type].map(({ name, version }) => [`${type} ${name}`, version] as const)),
  );
}

/** Objects in, and proxies that take what comes of them, one step at a time: all of the engine but network and time. */
export class Fleet {
  readonly graph = new Graph();
  readonly mesh: Mesh;
  readonly store = new Store(new ContentHasher([1, 2]));
  readonly progress: ProgressOfObjects;
  readonly proxies = new Map<string, FleetProxy>();
  readonly #context: Omit<DeliveryContext, 'delta' | 'recipient'>;
  readonly #hasher = new ContentHasher([3, 4]);
  #timers: { readonly at: number; readonly work: () => void }[] = [];
  /** As of the last commit. */
  readonly #versions = new Map<string, Versions>();
  now = 0;

  constructor() {
    const encoder = testEncoder();
    this.mesh = buildMesh(this.graph, encoder);
    const clock = {
      now: () => this.now,
      after: (ms: number, work: () => void) => {
        this.#timers.push({ at: this.now + ms, work });
        return () => {};
      },
    };
    this.progress = new ProgressOfObjects({
      inputs: this.mesh.inputs,
      clock,
      isInForce: (key, object) => isInForceBy(this.mesh.verdicts.get(key), object),
    });
    const { store } = this;
    this.#context = {
      sets: new NameSets(this.#hasher),
      address: '',
      rollouts: this.progress.rollouts,
      broughtIn: (batch, view, type) => store.broughtIn(batch, view, type),
      once: (resource) => store.once(resource),
      remember: (view) => store.remember(view),
      move: (before, after, news) => store.move(before, after, news),
      update: (sight, news) => store.update(sight, news),
      shared: () => store.work,
      types: catalog(encoder),
      frames: new Frames(),
      references: new References(),
      times: BARRIER_TIMES,
      rejected: shareForRejected(),
      canaries: new Canaries({ now: () => 0, after: () => {}, isOn: false }),
      unguarded: false,
    };
    this.graph.observe((draft) => {
      this.progress.published(draft);
      const publication = this.mesh.publicationOf(draft, this.progress.rolloutsIn(draft));
      for (const { stream, world, rollouts } of publication.worlds)
        if (world !== undefined) this.#move(this.proxies.get(stream)?.delivery, this.store.enter(world), rollouts);
      this.store.apply(publication);
      this.#context.frames.outdate();
    });
    this.commit([this.mesh.inputs.options.write(ONE, defaultMeshOptions)]);
  }

  commit(writes: readonly Write[]): void {
    this.graph.commit(writes);
    this.#versions.clear();
    for (const failure of this.graph.failures.values()) throw failure.error;
  }

  /** In one commit; undefined: the object is deleted. */
  apply(...changes: readonly (readonly [object: KubernetesObject, value: KubernetesObject | undefined])[]): void {
    this.commit(changes.map(([object, value]) => writeOf(this.mesh, object, value)));
  }

  set(...objects: readonly KubernetesObject[]): void {
    this.apply(...objects.map((object) => [object, object] as const));
  }

  delete(...objects: readonly KubernetesObject[]): void {
    this.apply(...objects.map((object) => [object, undefined] as const));
  }

  connect(proxy: ConnectedProxy, delta: boolean): FleetProxy {
    const connected = new FleetProxy(this, proxy.stream, delta);
    this.proxies.set(proxy.stream, connected);
    this.commit([this.mesh.inputs.proxies.write(proxy.stream, proxy)]);
    const { stream } = proxy;
    const context = { ...this.#context, delta, recipient: { stream, nodeId: proxy.nodeId, build: '', tenant: '' } };
    connected.delivery = this.#open(context, this.store.enter(this.mesh.worldOf(stream)));
    return connected;
  }

  #move(delivery: Delivery | undefined, view: WorldView, rollouts: readonly Rollout[] = []): void {
    const former = delivery?.view ?? view;
    delivery?.move(view, rollouts);
    this.store.leave(former);
  }

  #open(context: DeliveryContext, view: WorldView): Delivery {
    const ignored = (): void => {};
    const events = { wake: ignored, sent: ignored, rejected: ignored, unknownType: ignored, timedOut: ignored };
    return new Delivery(context, view, { ...events, asked: ignored, overdue: ignored, expired: ignored });
  }

  disconnect(stream: string): void {
    const { delivery } = this.proxies.get(stream)!;
    this.proxies.delete(stream);
    delivery!.close();
    this.store.leave(delivery!.view);
    this.commit([this.mesh.inputs.proxies.write(stream, undefined)]);
  }

  read(message: Uint8Array, delta: boolean) {
    return (delta ? readDeltaRequest : readRequest)(Buffer.from(message), this.#hasher);
  }

  versions(stream: string): Versions {
    let versions = this.#versions.get(stream);
    if (versions === undefined) this.#versions.set(stream, (versions = versionsOf(this.store, this.mesh, stream)));
    return versions;
  }

  /** Every proxy has its turn. */
  serve(): void {
    for (const proxy of this.proxies.values()) proxy.serve();
  }

  /** Proxies take and answer everything, for long enough that nothing is kept for them any more. */
  rest(): void {
    for (let second = 0; second < 60; second++) {
      this.pass(1_000);
      for (const proxy of this.proxies.values()) {
        proxy.delivery!.tick(this.now);
        proxy.speak();
      }
    }
  }

  pass(ms: number): void {
    this.now += ms;
    for (;;) {
      const [next] = this.#timers.sort((a, b) => a.at - b.at);
      if (next === undefined || next.at > this.now) return;
      this.#timers.shift();
      next.work();
    }
  }
}

/** Asks for all clusters and listeners, and for what these name. Answers when it is told to. */
export class FleetProxy {
  readonly stream: string;
  readonly delta: boolean;
  delivery: Delivery | undefined;
  readonly #fleet: Fleet;
  readonly #names = new Map<ServedType, ReadonlySet<string>>();
  readonly #newest = new Map<string, string>();
  #unanswered: (readonly [typeUrl: string, nonce: string])[] = [];

  constructor(fleet: Fleet, stream: string, delta: boolean) {
    this.#fleet = fleet;
    this.stream = stream;
    this.delta = delta;
  }

  /** Takes what there is, and asks for what it names, but answers nothing. */
  serve(): void {
    do {
      for (const type of typeNames) this.#subscribe(type);
    } while (this.#take());
  }

  /** The same, and answers everything. */
  speak(): void {
    do {
      this.serve();
      for (const [typeUrl, nonce] of this.#unanswered.splice(0))
        this.#ask(typeUrl, this.delta ? [] : this.#all(typeUrl), [], nonce);
    } while (this.#take());
  }

  #take(): boolean {
    let any = false;
    for (;;) {
      const frame = this.delivery!.next(this.#fleet.now);
      if (frame === undefined) return any;
      any = true;
      const reader = new FieldReader(Buffer.concat(frame.slices), 5);
      let [url, nonce] = ['', ''];
      while (reader.next()) {
        if (reader.field === 4) url = reader.string();
        else if (reader.field === 5) nonce = reader.string();
      }
      this.#newest.set(url, nonce);
      this.#unanswered.push([url, nonce]);
    }
  }

  #subscribe(type: ServedType): void {
    const isAll = type === 'cds' || type === 'lds';
    const before = this.#names.get(type);
    if (isAll && before !== undefined) return;
    const present = [...this.#fleet.versions(this.stream).keys()].filter((key) => key.startsWith(`${type} `));
    const names = new Set(isAll ? [] : present.map((key) => key.slice(4)));
    const added = [...names].filter((name) => before?.has(name) !== true);
    const removed = [...(before ?? [])].filter((name) => !names.has(name));
    if (!isAll && added.length + removed.length === 0) return;
    this.#names.set(type, names);
    const url = typeUrl(servedTypes[type]);
    if (this.delta) this.#ask(url, added, removed);
    else this.#ask(url, [...names], [], this.#newest.get(url));
  }

  #all(url: string): string[] {
    const type = typeNames.find((name) => typeUrl(servedTypes[name]) === url)!;
    return [...(this.#names.get(type) ?? [])];
  }

  #ask(url: string, names: readonly string[], removed: readonly string[], nonce?: string): void {
    const fields = [
      field(this.delta ? 2 : 4, url),
      ...names.map((name) => field(3, name)),
      ...removed.map((name) => field(4, name)),
      ...(nonce === undefined ? [] : [field(this.delta ? 6 : 5, nonce)]),
    ];
    this.delivery!.request(this.#fleet.read(Buffer.concat(fields), this.delta), this.#fleet.now);
  }
}

/** Of an object's rollout. */
export function keyOf({ apiVersion, kind, metadata: { namespace = '', name } }: KubernetesObject): string {
  const { group } = kindOf(apiVersion, kind)!;
  return originKey({ group, kind, source: defaultMeshOptions.clusterId, namespace, name });
}

/** @param id `name address` */
export function sidecarOf(
  id: string,
  namespace: string,
  labels: Readonly<Record<string, string>>,
  type = 'sidecar',
): ConnectedProxy {
  const [name = '', address = ''] = id.split(' ');
  return connectedProxy(name, {
    id: `${type}~${address}~${name}.${namespace}~${namespace}.svc.cluster.local`,
    metadata: { NAMESPACE: namespace, INSTANCE_IPS: address, LABELS: labels },
  });
}
