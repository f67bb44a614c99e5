import type { ConnectedProxy } from '../ads/types.ts';
import type { Inputs } from '../mesh/inputs.ts';
import { SHARDS } from '../mesh/objects/services.ts';

/** For this many services, one commit builds or removes the views of a kind: about 100 ms of work. */
const SERVICES_AT_ONCE = 250;
/** A kind keeps its place in the queue for this long after the last proxy that waited. Milliseconds. */
export const PLACE_MS = 60_000;

export interface ProxyClassBuilderOptions {
  /** Contains proxies once a commit has included them: what they need was then published, or failed. */
  readonly proxies: Pick<Inputs['proxies'], 'get'>;
  readonly enter: (proxy: ConnectedProxy) => void;
  readonly leave: (stream: string) => void;
  /** Whether resources of this kind are already computed. */
  readonly isMade: (traits: string) => boolean;
  /** The views of the proxy, by key, or undefined if it has none. */
  readonly viewsOf: (proxy: ConnectedProxy) => string | undefined;
  /** How many proxies have these views, as of the last commit. */
  readonly proxiesWith: (views: string) => number;
  /** The next commit builds views up to this many shards of each namespace; undefined: completely. */
  readonly makeShards: (views: string, shards: number | undefined) => void;
  /** Number of services in the mesh. */
  readonly services: () => number;
  /** Whether changes wait for the next commit. */
  readonly isBusy: () => boolean;
  /** Milliseconds; only differences count. */
  readonly now: () => number;
}

/** A kind that is being built; or views whose removal has been stopped, which many kinds may share. */
interface Making {
  readonly traits: string | undefined;
  /** The proxies that began it and are still connected. */
  readonly streams: Set<string>;
  /** The views that remain to be built, or undefined if none remain. */
  views: { readonly key: string; readonly shards: number } | undefined;
}

/** Views whose last proxy is gone, and that are removed when their turn comes. */
interface Unused {
  /** The last proxy: the graph has it until its views are removed. */
  readonly stream: string;
  /** Proxies that have come since, and need them again. */
  readonly others: Set<string>;
}

/** Views that are being removed. */
interface Removing extends Unused {
  readonly views: string;
  /** How many shards the last step left. */
  shards: number;
}

/** Proxies with the same traits, in the queue. */
interface Waiting {
  /** By stream. */
  readonly proxies: Map<string, ConnectedProxy>;
  /** When the last of them left. */
  leftAt: number;
}

/**
 * Lets proxies into the graph, and out of it: those with new traits only one kind at a time. The views of a kind are
 * built over several commits, and removed over several when its last proxy is gone. To compute a kind takes seconds in a
 * large mesh, and a commit is published as a whole: changes that arrive during one of these get a commit of their own
 * before the next.
 */
export class ProxyClassBuilder {
  readonly #options: ProxyClassBuilderOptions;
  #making: Making | undefined;
  #removing: Removing | undefined;
  /** The next commit neither builds nor removes anything. */
  #resting = false;
  /** By traits, the first kind first; there are no more than admission allows in {@link PLACE_MS}. */
  readonly #waiting = new Map<string, Waiting>();
  /** By key of the views. */
  readonly #unused = new Map<string, Unused>();
  /** Streams that leave with one of the next commits, by their views. */
  readonly #leaving = new Map<string, Set<string>>();

  constructor(options: ProxyClassBuilderOptions) {
    this.#options = options;
  }

  connected(proxy: ConnectedProxy, traits: string | undefined): void {
    if (traits === undefined || this.#tryEnter(proxy, traits)) this.#enter(proxy);
    else this.#waitingFor(traits).proxies.set(proxy.stream, proxy);
  }

  #enter(proxy: ConnectedProxy): void {
    this.#options.enter(proxy);
    if (this.#unused.size === 0) return;
    const views = this.#options.viewsOf(proxy);
    if (views !== undefined) this.#unused.get(views)?.others.add(proxy.stream);
  }

  /** It waits for other kinds to be built. */
  isDeferred(stream: string): boolean {
    return [...this.#waiting.values()].some(({ proxies }) => proxies.has(stream));
  }

  disconnected(stream: string): void {
    for (const waiting of this.#waiting.values())
      if (waiting.proxies.delete(stream)) waiting.leftAt = this.#options.now();
    // A proxy that entered leaves with a commit, as it came: until then, no other kind enters.
    this.#making?.streams.delete(stream);
  }

  /** Nothing needs to be computed for the proxy any more. */
  gone(stream: string): void {
    const { proxies, viewsOf, proxiesWith, leave } = this.#options;
    for (const { others } of this.#unused.values()) others.delete(stream);
    const proxy = proxies.get(stream);
    const views = proxy && viewsOf(proxy);
    if (views === undefined || this.#shardsAtOnce >= SHARDS || this.#unused.has(views)) {
      leave(stream);
      return;
    }
    const leaving = this.#leaving.get(views) ?? new Set();
    if (proxiesWith(views) > leaving.size + 1) {
      this.#leaving.set(views, leaving.add(stream));
      leave(stream);
      return;
    }
    this.#unused.set(views, { stream, others: new Set() });
    if (this.#making === undefined && this.#removing === undefined) this.#next();
  }

  /** Call after every commit. */
  committed(): void {
    this.#forgetLeft();
    if (this.#making === undefined && this.#removing === undefined) return;
    if (this.#making !== undefined && !this.#hasEntered(this.#making)) return;
    this.#resting = !this.#resting && this.#options.isBusy();
    if (this.#resting) return;
    const hasRemoved = this.#removing !== undefined;
    if (this.#removing !== undefined) this.#removeMore(this.#removing);
    else this.#makeMore(this.#making!);
    if (this.#making !== undefined || this.#removing !== undefined) return;
    // By turns: whoever flaps keeps nobody waiting.
    if (hasRemoved) this.#admitNext();
    if (this.#making === undefined) this.#next();
  }

  #forgetLeft(): void {
    for (const [views, streams] of this.#leaving) {
      for (const stream of streams) if (this.#options.proxies.get(stream) === undefined) streams.delete(stream);
      if (streams.size === 0) this.#leaving.delete(views);
    }
  }

  #next(): void {
    for (const [views, unused] of this.#unused) {
      if (unused.others.size === 0) {
        this.#removing = { views, ...unused, shards: SHARDS };
        // Removes nothing yet, but causes the commit that the first step follows.
        this.#options.makeShards(views, SHARDS);
        return;
      }
      this.#unused.delete(views);
      this.#options.leave(unused.stream);
    }
    this.#admitNext();
  }

  #admitNext(): void {
    for (const [traits, { proxies }] of this.#waiting) {
      for (const [stream, proxy] of proxies) {
        if (!this.#tryEnter(proxy, traits)) break;
        proxies.delete(stream);
        this.#enter(proxy);
        if (proxies.size === 0) this.#waiting.delete(traits);
      }
    }
  }

  #removeMore(removing: Removing): void {
    const { leave, makeShards } = this.#options;
    const { views, stream, others, shards } = removing;
    if (others.size > 0) {
      this.#removing = undefined;
      this.#unused.delete(views);
      leave(stream);
      this.#making = { traits: undefined, streams: new Set(others), views: { key: views, shards } };
      this.#makeMore(this.#making);
    } else if (shards > 0) {
      removing.shards = Math.max(0, shards - this.#shardsAtOnce);
      makeShards(views, removing.shards);
      // Without shards until it is certain that nobody came with the commit that it leaves with.
      if (removing.shards === 0) leave(stream);
    } else {
      this.#removing = undefined;
      this.#unused.delete(views);
      makeShards(views, undefined);
    }
  }

  #makeMore(making: Making): void {
    const { proxiesWith, makeShards } = this.#options;
    if (making.views === undefined) {
      this.#making = undefined;
      return;
    }
    const { key, shards } = making.views;
    const unused = this.#unused.get(key);
    if (unused !== undefined && unused.others.size === 0) {
      this.#making = undefined;
      this.#removing = { views: key, ...unused, shards };
      this.#removeMore(this.#removing);
      return;
    }
    const more = shards + this.#shardsAtOnce;
    const goesOn = more < SHARDS && (making.streams.size > 0 || proxiesWith(key) > 0);
    making.views = goesOn ? { key, shards: more } : undefined;
    makeShards(key, goesOn ? more : undefined);
  }

  /** Also true if no proxy is left that could. */
  #hasEntered({ streams }: Making): boolean {
    return streams.size === 0 || [...streams].some((stream) => this.#options.proxies.get(stream) !== undefined);
  }

  /** Returns whether the proxy may enter. The first one of a kind begins to make it. */
  #tryEnter(proxy: ConnectedProxy, traits: string): boolean {
    if (this.#options.isMade(traits)) return true;
    if (this.#removing !== undefined) return false;
    this.#making ??= { traits, streams: new Set(), views: this.#makeFirst(proxy) };
    if (this.#making.traits !== traits) return false;
    this.#making.streams.add(proxy.stream);
    return true;
  }

  #makeFirst(proxy: ConnectedProxy): Making['views'] {
    const { viewsOf, proxiesWith, makeShards } = this.#options;
    const key = viewsOf(proxy);
    const shards = this.#shardsAtOnce;
    if (key === undefined || shards >= SHARDS || proxiesWith(key) > 0) return undefined;
    makeShards(key, shards);
    return { key, shards };
  }

  get #shardsAtOnce(): number {
    return Math.max(1, Math.floor((SHARDS * SERVICES_AT_ONCE) / Math.max(1, this.#options.services())));
  }

  #waitingFor(traits: string): Waiting {
    this.#forgetPlaces();
    let waiting = this.#waiting.get(traits);
    if (waiting === undefined) this.#waiting.set(traits, (waiting = { proxies: new Map(), leftAt: 0 }));
    return waiting;
  }

  #forgetPlaces(): void {
    const before = this.#options.now() - PLACE_MS;
    for (const [traits, { proxies, leftAt }] of this.#waiting)
      if (proxies.size === 0 && leftAt <= before) this.#waiting.delete(traits);
  }
}
