import { isObject, type Json } from '../api/json.ts';
import type { Clock } from '../clock.ts';
import type { KubeApi } from './client.ts';
import { collectionPath } from './paths.ts';
import { TokenBucket } from './token-bucket.ts';

const type = { group: '', version: 'v1', plural: 'namespaces' };
/** Somebody waits for a Pod: so long for its turn, and so long for the API server. Milliseconds. */
const PATIENCE = 3_000;
/** Reads of one cluster, whoever causes them: more are not made. */
const RATE = { rate: 20, burst: 50 };
/** Namespaces that have their turn in time. */
const MOST_WAITING = (RATE.rate * PATIENCE) / 1_000;

interface Waiting {
  readonly found: Promise<Json | undefined>;
  readonly settle: (found: Json | undefined | Promise<Json | undefined>) => void;
}

/**
 * Reads single namespaces for callers that cannot wait for the watch. Namespaces take turns, with one read for all who
 * have asked for it until then: a namespace in which many Pods are created costs as much as any other.
 */
export class FreshNamespaces {
  readonly #api: KubeApi;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #budget: TokenBucket;
  /** By name, the next one first. */
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
   * As it is after this call; undefined if it is not there, or the API server cannot say soon, or too many are asked for.
   * Never rejects.
   */
  read(name: string): Promise<Json | undefined> {
    const known = this.#waiting.get(name);
    if (known !== undefined) return known.found;
    if (this.#waiting.size >= MOST_WAITING || this.#signal.aborted) return Promise.resolve(undefined);
    const { promise: found, resolve: settle } = Promise.withResolvers<Json | undefined>();
    this.#waiting.set(name, { found, settle });
    this.#serve();
    return found;
  }

  #serve(): void {
    if (this.#cancel !== undefined) return;
    for (const [name, { settle }] of this.#waiting) {
      // The next read is for all who ask until this one ends.
      if (this.#reading.has(name)) continue;
      const wait = this.#budget.take(this.#clock.now());
      if (wait > 0) {
        this.#cancel = this.#clock.after(wait, () => {
          this.#cancel = undefined;
          this.#serve();
        });
        return;
      }
      this.#waiting.delete(name);
      this.#reading.add(name);
      settle(
        this.#get(name).finally(() => {
          this.#reading.delete(name);
          this.#serve();
        }),
      );
    }
  }

  #end(): void {
    this.#cancel?.();
    for (const { settle } of this.#waiting.values()) settle(undefined);
    this.#waiting.clear();
  }

  async #get(name: string): Promise<Json | undefined> {
    try {
      // As a list: that is what the control plane has a right to.
      const found = await this.#api.get(collectionPath(type), {
        query: { fieldSelector: `metadata.name=${name}`, limit: 1 },
        signal: AbortSignal.any([this.#signal, AbortSignal.timeout(PATIENCE)]),
      });
      const items: unknown = isObject(found) ? found['items'] : undefined;
      const [item] = Array.isArray(items) ? (items as unknown[]) : [];
      return isObject(item) ? item : undefined;
    } catch {
      return undefined;
    }
  }
}
