import type { ConnectedProxy } from '../ads/types.ts';
import type { Inputs } from '../mesh/inputs.ts';
import { SHARDS } from '../mesh/objects/services.ts';

/** For so many services the views of a kind are made in one commit: about 100 ms of work. */
const SERVICES_AT_ONCE = 250;

export interface NewKindsOptions {
  /** Where those that entered are, once a commit had them: what they need was published then, or failed. */
  readonly proxies: Pick<Inputs['proxies'], 'get'>;
  readonly enter: (proxy: ConnectedProxy) => void;
  /** Resources of this kind are computed already. */
  readonly isMade: (traits: string) => boolean;
  /** The views that a proxy would be the first to have; undefined: there are such. */
  readonly newViewsOf: (proxy: ConnectedProxy) => string | undefined;
  /** The next commit makes views as far as this many shards of each namespace; undefined: as a whole. */
  readonly makeShards: (views: string, shards: number | undefined) => void;
  /** Of the mesh. */
  readonly services: () => number;
  /** Whether changes wait for the next commit. */
  readonly isBusy: () => boolean;
}

interface Making {
  readonly traits: string;
  /** Those who began it, and are still there. */
  readonly streams: Set<string>;
  /** What is left of its views; undefined: nothing. */
  views: { readonly key: string; readonly shards: number; readonly atOnce: number } | undefined;
}

/**
 * Admits proxies to the graph, but those with new traits only one kind at a time, and has its views made in several
 * commits. To compute a kind takes seconds in a large mesh, and a commit is published as a whole: what came during one of
 * these has a commit of its own before the next.
 */
export class NewKinds {
  readonly #options: NewKindsOptions;
  #making: Making | undefined;
  /** The next commit makes nothing new. */
  #resting = false;
  /** By stream, in the order in which they came. */
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
    // Who entered goes with a commit, as he came: until then no other kind enters.
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

  /** Or nobody is left who would. */
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
