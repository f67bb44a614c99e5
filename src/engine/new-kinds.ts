import type { ConnectedProxy } from '../ads/types.ts';
import type { Inputs } from '../mesh/inputs.ts';
import { SHARDS } from '../mesh/objects/services.ts';

/** For this many services, one commit builds the views of a kind: about 100 ms of work. */
const SERVICES_AT_ONCE = 250;

export interface NewKindsOptions {
  /** Contains entered proxies once a commit has included them: what they need was then published, or failed. */
  readonly proxies: Pick<Inputs['proxies'], 'get'>;
  readonly enter: (proxy: ConnectedProxy) => void;
  /** Whether resources of this kind are already computed. */
  readonly isMade: (traits: string) => boolean;
  /** The views for which the proxy would be the first; undefined: such views exist already. */
  readonly newViewsOf: (proxy: ConnectedProxy) => string | undefined;
  /** The next commit builds views up to this many shards of each namespace; undefined: completely. */
  readonly makeShards: (views: string, shards: number | undefined) => void;
  /** Number of services in the mesh. */
  readonly services: () => number;
  /** Whether changes wait for the next commit. */
  readonly isBusy: () => boolean;
}

interface Making {
  readonly traits: string;
  /** The proxies that began it and are still connected. */
  readonly streams: Set<string>;
  /** The views that remain to be built; undefined: none. */
  views: { readonly key: string; readonly shards: number; readonly atOnce: number } | undefined;
}

/**
 * Admits proxies to the graph, but those with new traits only one kind at a time, and has the kind's views built over
 * several commits. Computing a kind takes seconds in a large mesh, and a commit is published as a whole: changes that
 * arrive during one of these get a commit of their own before the next.
 */
export class NewKinds {
  readonly #options: NewKindsOptions;
  #making: Making | undefined;
  /** The next commit builds nothing new. */
  #resting = false;
  /** By stream, in order of arrival. */
  readonly #waiting = new Map<string, { readonly proxy: ConnectedProxy; readonly traits: string }>();

  constructor(options: NewKindsOptions) {
    this.#options = options;
  }

  connected(proxy: ConnectedProxy, traits: string | undefined): void {
    if (traits !== undefined && !this.#mayEnter(proxy, traits)) this.#waiting.set(proxy.stream, { proxy, traits });
    else this.#options.enter(proxy);
  }

  disconnected(stream: string): void {
    this.#waiting.delete(stream);
    // A proxy that entered leaves with a commit, as it came: until then, no other kind enters.
    this.#making?.streams.delete(stream);
  }

  /** Call after every commit. */
  committed(): void {
    const making = this.#making;
    if (making !== undefined) {
      if (!this.#hasEntered(making)) return;
      this.#resting = !this.#resting && this.#options.isBusy();
      if (this.#resting) return;
      if (making.views !== undefined) {
        this.#makeMore(making, making.views);
        return;
      }
      this.#making = undefined;
    }
    for (const [stream, { proxy, traits }] of this.#waiting) {
      if (!this.#mayEnter(proxy, traits)) continue;
      this.#waiting.delete(stream);
      this.#options.enter(proxy);
    }
  }

  /** Also true if no proxy is left that could. */
  #hasEntered({ streams }: Making): boolean {
    return streams.size === 0 || [...streams].some((stream) => this.#options.proxies.get(stream) !== undefined);
  }

  #makeMore(making: Making, { key, shards, atOnce }: NonNullable<Making['views']>): void {
    const more = shards + atOnce;
    const goesOn = more < SHARDS && this.#options.isMade(making.traits);
    making.views = goesOn ? { key, shards: more, atOnce } : undefined;
    this.#options.makeShards(key, goesOn ? more : undefined);
  }

  #mayEnter(proxy: ConnectedProxy, traits: string): boolean {
    if (this.#options.isMade(traits)) return true;
    this.#making ??= { traits, streams: new Set(), views: this.#firstShards(proxy) };
    if (this.#making.traits !== traits) return false;
    this.#making.streams.add(proxy.stream);
    return true;
  }

  #firstShards(proxy: ConnectedProxy): Making['views'] {
    const { newViewsOf, services, makeShards } = this.#options;
    const key = newViewsOf(proxy);
    const atOnce = Math.max(1, Math.floor((SHARDS * SERVICES_AT_ONCE) / Math.max(1, services())));
    if (key === undefined || atOnce >= SHARDS) return undefined;
    makeShards(key, atOnce);
    return { key, shards: atOnce, atOnce };
  }
}
