import { isObject, type Json } from '../../api/json.ts';
import { aborted, type Clock } from '../../base/clock.ts';
import { FairSemaphore, Permit } from '../../base/fair-semaphore.ts';
import type { KubeApi } from '../client/client.ts';
import { collectionPath } from '../client/paths.ts';
import { TokenBucket } from '../client/token-bucket.ts';

const type = { group: '', version: 'v1', plural: 'namespaces' };
/** Somebody waits for a Pod: the limit for getting a turn, and again for the API server's answer. Milliseconds. */
const PATIENCE = 3_000;
/** Reads of one cluster, whoever causes them: more are not made. */
const RATE = { rate: 20, burst: 50 };
/** How many can be served within that, besides the current one. */
const MOST_WAITING = (RATE.rate * PATIENCE) / 1_000 - 1;

/** A caller that waits for the next read of a namespace. */
interface Waiter {
  readonly found: Promise<Json | undefined>;
  readonly settle: (found: Json | undefined | Promise<Json | undefined>) => void;
  /** Neither held nor waited for while the namespace is being read. */
  readonly turn: Permit;
  readonly stopClock: () => void;
}

/** By caller. */
type Waiters = Map<string, Waiter>;

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
  readonly #turns = new FairSemaphore(1, MOST_WAITING);
  /** By namespace; none is empty. */
  readonly #waiting = new Map<string, Waiters>();
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
    const waiters = this.#waiting.get(name) ?? new Map<string, Waiter>();
    const known = waiters.get(caller);
    if (known !== undefined) return known.found;
    if (this.#signal.aborted) return Promise.resolve(undefined);
    const { promise: found, resolve: settle } = Promise.withResolvers<Json | undefined>();
    const stopClock = this.#clock.after(PATIENCE, () => this.#refuse(name, caller));
    const waiter = { found, settle, turn: new Permit(this.#turns, caller), stopClock };
    this.#waiting.set(name, waiters.set(caller, waiter));
    // The next read is for all who ask until this one ends.
    if (!this.#reading.has(name)) this.#takeTurn(name, caller, waiter);
    return found;
  }

  #takeTurn(name: string, caller: string, waiter: Waiter): void {
    waiter.turn.take(
      () => this.#begin(name, waiter),
      1,
      () => this.#refuse(name, caller),
    );
  }

  #refuse(name: string, caller: string): void {
    const waiters = this.#waiting.get(name)!;
    const waiter = waiters.get(caller)!;
    waiters.delete(caller);
    if (waiters.size === 0) this.#waiting.delete(name);
    leave(waiter);
    waiter.settle(undefined);
  }

  /** It is the caller's turn, which lasts until there is budget. */
  #begin(name: string, waiter: Waiter): void {
    waiter.stopClock();
    const wait = this.#budget.take(this.#clock.now());
    if (wait > 0) {
      this.#cancel = this.#clock.after(wait, () => this.#begin(name, waiter));
      return;
    }
    const waiters = [...this.#waiting.get(name)!.values()];
    this.#waiting.delete(name);
    this.#reading.add(name);
    const found = this.#get(name).finally(() => this.#ended(name));
    for (const { settle } of waiters) settle(found);
    // When this turn ends, nobody is left in the queue who would read the same.
    for (const other of waiters) if (other !== waiter) leave(other);
    leave(waiter);
  }

  #ended(name: string): void {
    this.#reading.delete(name);
    const next = this.#waiting.get(name);
    for (const [caller, waiter] of next ?? []) {
      // The turn of one, if it comes at once, was for all of them.
      if (this.#waiting.get(name) !== next) return;
      this.#takeTurn(name, caller, waiter);
    }
  }

  #end(): void {
    this.#cancel?.();
    const all = [...this.#waiting.values()].flatMap((waiters) => [...waiters.values()]);
    this.#waiting.clear();
    for (const { settle, stopClock } of all) {
      stopClock();
      settle(undefined);
    }
  }

  async #get(name: string): Promise<Json | undefined> {
    const late = new AbortController();
    const cancel = this.#clock.after(PATIENCE, () => late.abort());
    const signal = AbortSignal.any([this.#signal, late.signal]);
    try {
      // As a list: that is what the control plane has a right to.
      const query = { fieldSelector: `metadata.name=${name}`, limit: 1 };
      // Not every part of a call notices that its signal has fired: reading credentials does not.
      const found = await Promise.race([this.#api.get(collectionPath(type), { query, signal }), aborted(signal)]);
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

function leave({ turn, stopClock }: Waiter): void {
  stopClock();
  turn.leave();
}
