import type { KubernetesObject } from '../api/object.ts';
import type { Write } from '../cache/graph.ts';
import type { Clock } from '../base/clock.ts';
import type { FormerObject, Inputs } from '../mesh/inputs.ts';

/**
 * How long a former version of a PeerAuthentication counts, in milliseconds: clients follow when servers have had time to
 * accept what comes, and servers reject what came when clients have had time to follow.
 */
export const FORMER_MS = { formerPeersOfClients: 5_000, formerPeersOfServers: 15_000 } as const;

/** Beyond these, the oldest changes count at once. The second: characters of specs in JSON. */
const mostChanges = 10_000;
const mostText = 16 * 1024 * 1024;

type Lagging = keyof typeof FORMER_MS;

interface Change {
  readonly key: string;
  readonly at: number;
  /** What it was changed to; undefined: it was deleted. */
  readonly object: KubernetesObject | undefined;
  /** Characters of its spec. */
  readonly size: number;
}

export interface PeerHistoryOptions {
  readonly inputs: Pick<Inputs, Lagging>;
  readonly write: (write: Write) => void;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  /** From then on, proxies have what objects mean. */
  readonly isServing: () => boolean;
  readonly signal: AbortSignal;
}

/**
 * Remembers for a short time what PeerAuthentications were, so that clients and servers, which get their config
 * independently of one another, can change from one mode to the other without losing a request.
 */
export class PeerHistory {
  readonly #options: PeerHistoryOptions;
  readonly #newest = new Map<string, KubernetesObject>();
  readonly #lagging: readonly Lag[];

  constructor(options: PeerHistoryOptions) {
    this.#options = options;
    const { inputs, write, clock, signal } = options;
    this.#lagging = (Object.keys(FORMER_MS) as Lagging[]).map(
      (name) => new Lag(FORMER_MS[name], clock, signal, (key, former) => write(inputs[name].write(key, former))),
    );
  }

  /** The object has changed, or is gone. To be called along with the write that says so. */
  changed(key: string, object: KubernetesObject | undefined): void {
    const before = this.#newest.get(key);
    if (object === undefined) this.#newest.delete(key);
    else this.#newest.set(key, object);
    if (!this.#options.isServing()) return;
    const spec = specOf(object);
    if (specOf(before) === spec) return;
    for (const lag of this.#lagging) lag.changed(key, before, object, spec?.length ?? 0);
  }
}

function specOf(object: (KubernetesObject & { readonly spec?: unknown }) | undefined): string | undefined {
  return object && JSON.stringify(object.spec ?? {});
}

/** Objects as they were some time ago, where that differs from what they are. */
class Lag {
  readonly #ms: number;
  readonly #clock: Pick<Clock, 'now' | 'after'>;
  readonly #signal: AbortSignal;
  readonly #write: (key: string, former: FormerObject | undefined) => void;
  /** Oldest first. */
  readonly #changes: Change[] = [];
  /** The sum of their sizes. */
  #text = 0;
  /** How many of these are of an object. */
  readonly #pending = new Map<string, number>();
  #cancel: (() => void) | undefined;

  constructor(
    ms: number,
    clock: Pick<Clock, 'now' | 'after'>,
    signal: AbortSignal,
    write: (key: string, former: FormerObject | undefined) => void,
  ) {
    this.#ms = ms;
    this.#clock = clock;
    this.#signal = signal;
    this.#write = write;
    signal.addEventListener('abort', () => this.#cancel?.(), { once: true });
  }

  changed(key: string, before: KubernetesObject | undefined, object: KubernetesObject | undefined, size: number): void {
    const pending = this.#pending.get(key) ?? 0;
    if (pending === 0) this.#write(key, former(before));
    this.#pending.set(key, pending + 1);
    this.#changes.push({ key, at: this.#clock.now() + this.#ms, object, size });
    this.#text += size;
    while (this.#changes.length > mostChanges || this.#text > mostText) this.#follow();
    this.#wait();
  }

  /** The oldest change counts now. */
  #follow(): void {
    const { key, object, size } = this.#changes.shift()!;
    this.#text -= size;
    const pending = (this.#pending.get(key) ?? 1) - 1;
    if (pending > 0) this.#pending.set(key, pending);
    else this.#pending.delete(key);
    this.#write(key, pending > 0 ? former(object) : undefined);
  }

  #wait(): void {
    const [next] = this.#changes;
    if (this.#cancel !== undefined || next === undefined || this.#signal.aborted) return;
    this.#cancel = this.#clock.after(Math.max(0, next.at - this.#clock.now()), () => {
      this.#cancel = undefined;
      const now = this.#clock.now();
      while (this.#changes[0] !== undefined && this.#changes[0].at <= now) this.#follow();
      this.#wait();
    });
  }
}

function former(object: KubernetesObject | undefined): FormerObject {
  return object === undefined ? {} : { object };
}
