import type { Worker } from '../engine/wanted.ts';

/** Has what is wanted of each cluster answered by those who can ask there: nobody, before a cluster is connected. */
export class WantedByCluster<Wanted> implements Worker<Wanted> {
  readonly #clusterOf: (key: string) => string | undefined;
  readonly #forget: (key: string, cluster: string | undefined) => void;
  readonly #wanted = new Map<string, Wanted>();
  readonly #joined = new Set<{ readonly cluster: string | undefined; readonly worker: Worker<Wanted> }>();

  /**
   * @param clusterOf undefined: the own one.
   * @param forget takes back what is wanted no longer, whether or not the cluster is connected.
   */
  constructor(
    clusterOf: (key: string) => string | undefined,
    forget: (key: string, cluster: string | undefined) => void,
  ) {
    this.#clusterOf = clusterOf;
    this.#forget = forget;
  }

  has(cluster: string): boolean {
    return [...this.#wanted.keys()].some((key) => this.#clusterOf(key) === cluster);
  }

  /** The worker is given what is wanted of the cluster, until the signal fires. */
  join(cluster: string | undefined, worker: Worker<Wanted>, signal: AbortSignal): void {
    const joined = { cluster, worker };
    this.#joined.add(joined);
    signal.addEventListener('abort', () => this.#joined.delete(joined), { once: true });
    for (const [key, wanted] of this.#wanted) if (this.#clusterOf(key) === cluster) worker.want(key, wanted);
  }

  want(key: string, wanted: Wanted): void {
    this.#wanted.set(key, wanted);
    for (const worker of this.#workersOf(this.#clusterOf(key))) worker.want(key, wanted);
  }

  unwant(key: string): void {
    const cluster = this.#clusterOf(key);
    this.#wanted.delete(key);
    for (const worker of this.#workersOf(cluster)) worker.unwant(key);
    this.#forget(key, cluster);
  }

  *#workersOf(of: string | undefined): Generator<Worker<Wanted>> {
    for (const { cluster, worker } of this.#joined) if (cluster === of) yield worker;
  }
}
