import { isObject, type Json } from '../api/json.ts';
import type { Clock } from '../clock.ts';
import { FairSemaphore } from '../fair-semaphore.ts';
import type { KubeApi } from './client.ts';
import { collectionPath } from './paths.ts';
import { TokenBucket } from './token-bucket.ts';

const type = { group: '', version: 'v1', plural: 'namespaces' };
/** Somebody waits for a Pod: so long for its turn, and so long for the API server. Milliseconds. */
const PATIENCE = 3_000;
/** Reads of one cluster, whoever causes them: more are not made. */
const RATE = { rate: 20, burst: 50 };
/** Namespaces that have their turn in time, beside the one whose turn it is. */
const MOST_WAITING = (RATE.rate * PATIENCE) / 1_000 - 1;

/** Those who wait for the next read of a namespace. */
interface Waiting {
  readonly name: string;
  readonly found: Promise<Json | undefined>;
  readonly settle: (found: Json | undefined | Promise<Json | undefined>) => void;
  /** How each caller gives up its turn, if it has one. */
  readonly turns: Map<string, (() => void) | undefined>;
}

/**
 * Reads single namespaces for callers that cannot wait for the watch. Callers take turns, because anybody can invent
 * names of namespaces, and so do the namespaces of one caller. One read is for all who have asked for the namespace until
 * then: a namespace in which many Pods are created costs as much as any other.
 */
export class FreshNamespaces {
  readonly #api: KubeApi;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #budget: TokenBucket;
  readonly #turns = new FairSemaphore(1);
  readonly #waiting = new Map<string, Waiting>();
  readonly #reading = new Set<string>();
  #cancel: (() => void) | undefined;

  constructor(api: KubeApi, clock: Clock, signal: AbortSignal) {
    this.#api = api;
    this.#clock = clock;
    this.#signal = signal;
    this.#budget = new TokenBucket({ ...RATE, now: clock.now() });
    signal.addEventListener('abort', () => this.#end(), { once: true });
  }

  /**
   * As it is after this call; undefined if it is not there, or the API server cannot say soon, or the caller asks for more
   * than its share. Never rejects.
   */
  read(name: string, caller: string): Promise<Json | undefined> {
    const known = this.#waiting.get(name);
    if (known?.turns.has(caller) === true) return known.found;
    if (this.#signal.aborted || this.#turns.isCrowded(caller, MOST_WAITING)) return Promise.resolve(undefined);
    const waiting = known ?? { name, turns: new Map(), ...promise() };
    waiting.turns.set(caller, undefined);
    this.#waiting.set(name, waiting);
    // The next read is for all who ask until this one ends.
    if (!this.#reading.has(name)) this.#takeTurn(waiting, caller);
    return waiting.found;
  }

  #takeTurn(waiting: Waiting, caller: string): void {
    const giveUp = this.#turns.wait(caller, 1, () => this.#begin(waiting, caller));
    if (this.#waiting.get(waiting.name) === waiting) waiting.turns.set(caller, giveUp);
  }

  /** It is the caller's turn, which lasts until there is budget. */
  #begin(waiting: Waiting, caller: string): void {
    const wait = this.#budget.take(this.#clock.now());
    if (wait > 0) {
      this.#cancel = this.#clock.after(wait, () => this.#begin(waiting, caller));
      return;
    }
    const { name, settle, turns } = waiting;
    this.#waiting.delete(name);
    this.#reading.add(name);
    settle(this.#get(name).finally(() => this.#ended(name)));
    for (const giveUp of turns.values()) giveUp?.();
    this.#turns.leave(caller, 1);
  }

  #ended(name: string): void {
    this.#reading.delete(name);
    const next = this.#waiting.get(name);
    for (const caller of next?.turns.keys() ?? []) this.#takeTurn(next!, caller);
  }

  #end(): void {
    this.#cancel?.();
    for (const { settle } of this.#waiting.values()) settle(undefined);
    this.#waiting.clear();
  }

  async #get(name: string): Promise<Json | undefined> {
    const late = new AbortController();
    const cancel = this.#clock.after(PATIENCE, () => late.abort());
    try {
      // As a list: that is what the control plane has a right to.
      const found = await this.#api.get(collectionPath(type), {
        query: { fieldSelector: `metadata.name=${name}`, limit: 1 },
        signal: AbortSignal.any([this.#signal, late.signal]),
      });
      const items: unknown = isObject(found) ? found['items'] : undefined;
      const [item] = Array.isArray(items) ? (items as unknown[]) : [];
      return isObject(item) ? item : undefined;
    } catch {
      return undefined;
    } finally {
      cancel();
    }
  }
}

function promise(): Pick<Waiting, 'found' | 'settle'> {
  const { promise: found, resolve: settle } = Promise.withResolvers<Json | undefined>();
  return { found, settle };
}
