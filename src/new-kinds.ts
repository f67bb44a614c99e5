import type { ConnectedProxy } from './ads/types.ts';
import type { Inputs } from './mesh/inputs.ts';

export interface NewKindsOptions {
  /** Where those that entered are, once a commit had them: what they need was published then, or failed. */
  readonly proxies: Pick<Inputs['proxies'], 'get'>;
  readonly enter: (proxy: ConnectedProxy) => void;
  /** Resources of this kind are computed already. */
  readonly isMade: (traits: string) => boolean;
  /** Whether changes wait for the next commit. */
  readonly isBusy: () => boolean;
}

/**
 * Admits proxies to the graph, but those with new traits only one kind at a time. To compute a kind takes seconds in a
 * large mesh, and a commit is published as a whole: what came meanwhile has a commit without any before the next one.
 */
export class NewKinds {
  readonly #options: NewKindsOptions;
  #making: { readonly traits: string; readonly streams: Set<string> } | undefined;
  /** The next commit makes none. */
  #resting = false;
  /** By stream, in the order in which they came. */
  readonly #waiting = new Map<string, { readonly proxy: ConnectedProxy; readonly traits: string }>();

  constructor(options: NewKindsOptions) {
    this.#options = options;
  }

  connected(proxy: ConnectedProxy, traits: string | undefined): void {
    if (traits !== undefined && !this.#mayEnter(proxy.stream, traits))
      this.#waiting.set(proxy.stream, { proxy, traits });
    else this.#options.enter(proxy);
  }

  disconnected(stream: string): void {
    this.#waiting.delete(stream);
    // Who entered goes with a commit, as he came: until then no other kind enters.
    this.#making?.streams.delete(stream);
  }

  /** Call after every commit. */
  committed(): void {
    const { proxies } = this.#options;
    const streams = [...(this.#making?.streams ?? [])];
    const made = streams.some((stream) => proxies.get(stream) !== undefined);
    if (made || streams.length === 0) this.#making = undefined;
    this.#resting = made && this.#options.isBusy();
    this.#next();
  }

  #next(): void {
    for (const [stream, { proxy, traits }] of this.#waiting) {
      if (!this.#mayEnter(stream, traits)) continue;
      this.#waiting.delete(stream);
      this.#options.enter(proxy);
    }
  }

  #mayEnter(stream: string, traits: string): boolean {
    if (this.#options.isMade(traits)) return true;
    if (this.#making === undefined && !this.#resting) this.#making = { traits, streams: new Set() };
    if (this.#making?.traits !== traits) return false;
    this.#making.streams.add(stream);
    return true;
  }
}
