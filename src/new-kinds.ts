import type { ConnectedProxy } from './ads/types.ts';

export interface NewKindsOptions {
  readonly enter: (proxy: ConnectedProxy) => void;
  /** Something of this kind is made already. */
  readonly isMade: (traits: string) => boolean;
  /** What this proxy asked for was published. */
  readonly isIn: (stream: string) => boolean;
}

/**
 * Lets proxies into the mesh, but of those that bring traits that nobody has only one kind at a time. To make a kind is
 * seconds of work in a large mesh, and a commit is published as a whole: changes and proxies of others go between.
 */
export class NewKinds {
  readonly #options: NewKindsOptions;
  #making: { readonly stream: string; readonly traits: string } | undefined;
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
    if (this.#making?.stream !== stream) return;
    this.#making = undefined;
    this.#next();
  }

  /** Something was published. */
  committed(): void {
    if (this.#making !== undefined && this.#options.isIn(this.#making.stream)) this.#making = undefined;
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
    if (this.#options.isMade(traits) || this.#making?.traits === traits) return true;
    if (this.#making !== undefined) return false;
    this.#making = { stream, traits };
    return true;
  }
}
