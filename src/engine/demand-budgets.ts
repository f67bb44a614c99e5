/** The ways in which proxies differ. Each difference needs its own resources. */
export type DemandKind = 'traits' | 'scopes' | 'routers' | 'workloads' | 'places';

/** What a proxy demands of each kind, or undefined if it demands nothing. */
export type Demand = Readonly<Record<DemandKind, string | undefined>> & {
  /** How many its workload counts as: it may have any number of ports. */
  readonly workloadSize?: number;
};

/** A workload counts once per this many ports that it serves. */
export const PORTS_OF_WORKLOAD = 40;

export const noDemand: Demand = {
  traits: undefined,
  scopes: undefined,
  routers: undefined,
  workloads: undefined,
  places: undefined,
};

/** How many different values are allowed: behind one address, and in total. */
export type DemandLimits = Readonly<Record<DemandKind, { readonly perPeer: number; readonly inAll: number }>>;

/**
 * A proxy's own node decides what is computed for it. Replicas share it, so the limit is not on proxies but on the
 * differences between them.
 *
 * - traits: every cluster, listener and virtual host of the mesh again. Measured: 13 KB and half a millisecond of work
 *   for each service, so one address has no more than 16 in a minute. All of them may fill 40 % of the heap. A mesh has
 *   a handful: sidecars and routers, with or without Istio's agent.
 * - scopes: a namespace, a Sidecar, the labels that rules mention. Measured: 90 KB at 1,000 services, 310 KB at 10,000. A
 *   quarter of the heap.
 * - routers: the labels that Gateways select by, the ports of Services. Estimated: 2 KB for each host. A quarter.
 * - workloads: what only the proxy itself says about its workload, if there is no Pod or WorkloadEntry: the labels,
 *   port numbers and addresses that Services select by. Measured: 3 KB and 80 µs for each port that it serves, again
 *   with every edit of a Service that selects it. A quarter; one address has no more than 256, of up to 40 ports each.
 *   A workload with more ports counts as several.
 * - places: what only the proxy itself says about its place: locality, cluster, node, and the labels that failover
 *   priorities compare. Each has its own assignments of services that prefer near endpoints or only use those of a
 *   node. Estimated: 1 KB for each service. A quarter; one address has no more than 256.
 *
 * The shares add up to more than the heap, because no mesh needs the maximum of everything. Half of each, or less where it
 * says so, may come from one address: enough for 2,000 proxies behind a load balancer or a node, while leaving as much for
 * others. The minimum fits honest meshes, however small the heap is.
 */
export function demandLimits(heapBytes: number, services: number): DemandLimits {
  const perService = (bytes: number): number => Math.max(1, services) * bytes;
  const of = (share: number, cost: number, least: number, most: number) => {
    const inAll = Math.min(most, Math.max(least, Math.floor((share * heapBytes) / cost)));
    return { inAll, perPeer: Math.ceil(inAll / 2) };
  };
  const atMost = (perPeer: number, limit: ReturnType<typeof of>) => ({
    ...limit,
    perPeer: Math.min(perPeer, limit.perPeer),
  });
  return {
    traits: atMost(16, of(0.4, perService(13_000), 12, 64)),
    scopes: of(0.25, 65_536 + Math.max(1, services) * 25, 2_000, 8_000),
    routers: of(0.25, perService(2_000), 200, 1_000),
    workloads: atMost(256, of(0.25, PORTS_OF_WORKLOAD * 3_200, 256, 1_000)),
    places: atMost(256, of(0.25, perService(1_000), 100, 1_000)),
  };
}

/** Their names in messages. */
export const demandKinds: Readonly<Record<DemandKind, string>> = {
  traits: 'kinds (node metadata)',
  scopes: 'scopes (namespace, labels)',
  routers: 'gateways (labels)',
  workloads: 'workloads without a Pod or WorkloadEntry (labels, ports, addresses)',
  places: 'places that no Pod or WorkloadEntry states (locality, cluster, node, labels)',
};

/**
 * Traits still count for this long after their last proxy is gone; otherwise a client could have new ones computed
 * endlessly. Milliseconds.
 */
const TRAITS_COUNT_MS = 60_000;

const kinds = Object.keys(demandKinds) as readonly DemandKind[];

export interface Admitted {
  readonly peer: string;
  readonly demand: Demand;
}

/** Counts the different demands of the proxies that Fairlead computes for. */
export class DemandBudgets {
  readonly #limits: () => DemandLimits;
  readonly #now: () => number;
  readonly #admitted = new Map<string, Admitted>();
  readonly #inAll: Counts;
  /** By address. */
  readonly #peers = new Map<string, Counts>();
  #lookAt = 0;

  /** @param now milliseconds; only differences count. */
  constructor(limits: () => DemandLimits, now: () => number) {
    this.#limits = limits;
    this.#now = now;
    this.#inAll = new Counts(now);
  }

  /** The kind for which there is no room, for this address or in total; undefined: admitted until {@link release}. */
  admit(
    stream: string,
    peer: string,
    demand: Demand,
  ): { readonly kind: DemandKind; readonly ofPeer: boolean } | undefined {
    this.release(stream);
    if (kinds.every((kind) => demand[kind] === undefined)) return undefined;
    const ofPeer = this.#peers.get(peer);
    for (const kind of kinds) {
      const value = demand[kind];
      if (value === undefined) continue;
      const size = sizeOf(kind, demand);
      // What others demand already has room: the limits, for which all services are counted, matter to few proxies.
      if (ofPeer?.has(kind, value) === false && !ofPeer.hasRoom(kind, value, size, this.#limits()[kind].perPeer))
        return { kind, ofPeer: true };
      if (!this.#inAll.has(kind, value) && !this.#inAll.hasRoom(kind, value, size, this.#limits()[kind].inAll))
        return { kind, ofPeer: false };
    }
    this.#forgetIdlePeers();
    const counts = ofPeer ?? new Counts(this.#now);
    this.#peers.set(peer, counts);
    this.#admitted.set(stream, { peer, demand });
    for (const each of [counts, this.#inAll]) each.add(demand, 1);
    return undefined;
  }

  release(stream: string): void {
    const admitted = this.#admitted.get(stream);
    if (admitted === undefined) return;
    this.#admitted.delete(stream);
    const { peer, demand } = admitted;
    const counts = this.#peers.get(peer)!;
    for (const each of [counts, this.#inAll]) each.add(demand, -1);
    this.#forgetIdlePeers();
  }

  /** Drops addresses with nothing left to count, once a minute at most. */
  #forgetIdlePeers(): void {
    if (this.#now() < this.#lookAt) return;
    this.#lookAt = this.#now() + TRAITS_COUNT_MS;
    for (const [peer, counts] of this.#peers) if (counts.isEmpty) this.#peers.delete(peer);
  }

  /** What a stream was admitted with. */
  admitted(stream: string): Admitted | undefined {
    return this.#admitted.get(stream);
  }

  /** How many different values there are; for workloads, how many they count as. */
  sizes(): Readonly<Record<DemandKind, number>> {
    return this.#inAll.sizes();
  }
}

const sizeOf = (kind: DemandKind, { workloadSize = 1 }: Demand): number => (kind === 'workloads' ? workloadSize : 1);

interface Counted {
  /** How many proxies have it. */
  readonly proxies: number;
  /** How many it counts as: its size when the first of them was admitted. */
  readonly size: number;
}

/** The values in use. */
class Counts {
  readonly #now: () => number;
  readonly #byKind: Readonly<Record<DemandKind, Map<string, Counted>>> = {
    traits: new Map(),
    scopes: new Map(),
    routers: new Map(),
    workloads: new Map(),
    places: new Map(),
  };
  readonly #sizes: Record<DemandKind, number> = { traits: 0, scopes: 0, routers: 0, workloads: 0, places: 0 };
  /** Traits without a proxy, and when they stop counting; oldest first. */
  readonly #former = new Map<string, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  has(kind: DemandKind, value: string): boolean {
    return this.#byKind[kind].has(value);
  }

  /** For a value that it does not have. */
  hasRoom(kind: DemandKind, value: string, size: number, limit: number): boolean {
    const after = this.#sizes[kind] + size;
    if (kind !== 'traits') return after <= limit;
    this.#forget();
    return this.#former.has(value) || after + this.#former.size <= limit;
  }

  add(demand: Demand, by: 1 | -1): void {
    for (const kind of kinds) {
      const value = demand[kind];
      if (value === undefined) continue;
      const values = this.#byKind[kind];
      const { proxies: before, size } = values.get(value) ?? { proxies: 0, size: sizeOf(kind, demand) };
      const proxies = before + by;
      if (proxies > 0) values.set(value, { proxies, size });
      else values.delete(value);
      if (before === 0 || proxies === 0) this.#sizes[kind] += by * size;
      if (kind !== 'traits') continue;
      this.#former.delete(value);
      if (proxies === 0) this.#former.set(value, this.#now() + TRAITS_COUNT_MS);
    }
  }

  get isEmpty(): boolean {
    this.#forget();
    return this.#former.size === 0 && kinds.every((kind) => this.#byKind[kind].size === 0);
  }

  sizes(): Record<DemandKind, number> {
    return { ...this.#sizes };
  }

  /** Forgets expired traits; the oldest come first. */
  #forget(): void {
    for (const [value, until] of this.#former) {
      if (until > this.#now()) return;
      this.#former.delete(value);
    }
  }
}
