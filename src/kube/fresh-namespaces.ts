import { isObject, type Json } from '../api/json.ts';
import type { Clock } from '../clock.ts';
import type { KubeApi } from './client.ts';
import { collectionPath } from './paths.ts';
import { TokenBucket } from './token-bucket.ts';

const type = { group: '', version: 'v1', plural: 'namespaces' };
/** Somebody waits for a Pod. Milliseconds. */
const PATIENCE = 3_000;
/** Reads, whoever causes them: more are not made. */
const RATE = { rate: 20, burst: 50 };

/** Reads single namespaces for callers that cannot wait for the watch. */
export class FreshNamespaces {
  readonly #api: KubeApi;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #budget: TokenBucket;

  constructor(api: KubeApi, clock: Clock, signal: AbortSignal) {
    this.#api = api;
    this.#clock = clock;
    this.#signal = signal;
    this.#budget = new TokenBucket({ ...RATE, now: clock.now() });
  }

  /** As it is now; undefined if it is not there, or the API server cannot say soon. Never rejects. */
  async read(name: string): Promise<Json | undefined> {
    if (this.#budget.take(this.#clock.now()) > 0) return undefined;
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
