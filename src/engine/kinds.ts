import type { ConnectedProxy } from '../ads/types.ts';
import type { Inputs } from '../mesh/inputs.ts';
import { SHARDS } from '../mesh/objects/services.ts';

/** For this many services, one commit builds or removes the views of a kind: about 100 ms of work. */
const SERVICES_AT_ONCE = 250;
/** A kind keeps its place in the queue for this long after the last proxy that waited. Milliseconds. */
export const PLACE_MS = 60_000;

export interface KindsOptions {
  /** Contains proxies once a commit has included them: what they need was then published, or failed. */
  readonly proxies: Pick<Inputs['proxies'], 'get'>;
  readonly enter: (proxy: ConnectedProxy) => void;
  readonly leave: (stream: string) => void;
  /** Whether resources of this kind are already computed. */
  readonly isMade: (traits: string) => boolean;
  /** The views of the proxy, by key; undefined: it has none. */
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
  /** The views that remain to be built; undefined: none. */
  views: { readonly key: string; readonly shards: number } | undefined;
}

/** Views that are being removed. */
interface Removing {
  readonly views: string;
  /** The last proxy that had them: it is gone, but the graph has it until the views are removed. */
  readonly stream: string;
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
export class Kinds {
  readonly #options: KindsOptions;
  #making: Making | undefined;
  #removing: Removing | undefined;
  /** The next commit neither builds nor removes anything. */
  #resting = false;
  /** By traits, the first kind first; there are no more than admission allows in {@link PLACE_MS}. */
  readonly #waiting = new Map<string, Waiting>();
  /** Gone proxies that may be the last ones to have their views: by views, their streams. */
  readonly #last = new Map<string, string>();
  /** How many proxies with these views have left since the last commit. */
  readonly #left = new Map<string, number>();

  constructor(options: KindsOptions) {
    this.#options = options;
  }

  connected(proxy: ConnectedProxy, traits: string | undefined): void {
    if (traits === undefined || this.#tryEnter(proxy, traits)) this.#options.enter(proxy);
    else this.#waitingFor(traits).proxies.set(proxy.stream, proxy);
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
    const proxy = proxies.get(stream);
    const views = proxy && viewsOf(proxy);
    if (views === undefined || this.#shardsAtOnce >= SHARDS || this.#last.has(views)) {
      leave(stream);
      return;
    }
    const left = (this.#left.get(views) ?? 0) + 1;
    this.#left.set(views, left);
    if (proxiesWith(views) > left) {
      leave(stream);
      return;
    }
    this.#last.set(views, stream);
    if (this.#making === undefined && this.#removing === undefined) this.#next();
  }

  /** Call after every commit. */
  committed(): void {
    this.#left.clear();
    if (this.#making === undefined && this.#removing === undefined) return;
    if (this.#making !== undefined && !this.#hasEntered(this.#making)) return;
    this.#resting = !this.#resting && this.#options.isBusy();
    if (this.#resting) return;
    if (this.#removing !== undefined) this.#removeMore(this.#removing);
    else this.#makeMore(this.#making!);
    if (this.#making === undefined && this.#removing === undefined) this.#next();
  }

  /** Removes first: admission no longer counts what is to be removed. */
  #next(): void {
    const [last] = this.#last;
    if (last !== undefined) {
      const [views, stream] = last;
      this.#removing = { views, stream, shards: SHARDS };
      // Removes nothing yet: after the commit that this causes, it is known whether others have these views.
      this.#options.makeShards(views, SHARDS);
      return;
    }
    for (const [traits, { proxies }] of this.#waiting) {
      for (const [stream, proxy] of proxies) {
        if (!this.#tryEnter(proxy, traits)) break;
        proxies.delete(stream);
        this.#options.enter(proxy);
        if (proxies.size === 0) this.#waiting.delete(traits);
      }
    }
  }

  #removeMore(removing: Removing): void {
    const { proxiesWith, leave, makeShards } = this.#options;
    const { views, stream, shards } = removing;
    if (shards > 0 && proxiesWith(views) <= 1) {
      removing.shards = Math.max(0, shards - this.#shardsAtOnce);
      makeShards(views, removing.shards || undefined);
      if (removing.shards === 0) leave(stream);
      return;
    }
    this.#removing = undefined;
    this.#last.delete(views);
    if (shards === 0) return;
    // Others that have come meanwhile need them.
    leave(stream);
    this.#making = { traits: undefined, streams: new Set(), views: { key: views, shards } };
    this.#makeMore(this.#making);
  }

  #makeMore(making: Making): void {
    const { proxiesWith, makeShards } = this.#options;
    if (making.views === undefined) {
      this.#making = undefined;
      return;
    }
    const { key, shards } = making.views;
    const more = shards + this.#shardsAtOnce;
    const goesOn = more < SHARDS && proxiesWith(key) > 0;
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
