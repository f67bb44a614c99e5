import { Backoff } from '../base/backoff.ts';
import { type Clock, sleep } from '../base/clock.ts';
import { IdleResetBackoff } from '../base/idle-reset-backoff.ts';
import type { EtcdConnection } from './connection.ts';
import { EtcdError, printable } from './error.ts';
import { leaseGrant, leaseKeepAlive } from './messages.ts';

export interface LeasesOptions {
  /** Seconds after which keys are gone if nobody keeps them alive. */
  readonly ttl: number;
  /** Keys on one lease. */
  readonly mostKeys?: number;
  /** These keys are gone, or will be: their lease is. */
  readonly onLost: (keys: readonly string[]) => void;
  readonly clock: Clock;
  readonly random: () => number;
}

interface Lease {
  readonly id: bigint;
  readonly keys: Set<string>;
  /** When it is gone unless it is kept alive. Milliseconds of `clock.now()`. */
  until: number;
}

/** As Cilium has it. */
const MOST_KEYS = 1_000;
const FIRST_DELAY = 1_000;
const LONGEST_DELAY = 60_000;

/**
 * The leases that our keys hang on, each with a bounded number of them. They outlive connections: one that is kept alive
 * over the next connection in time is still good.
 */
export class Leases {
  readonly #options: LeasesOptions;
  readonly #leases = new Map<bigint, Lease>();
  /** key -> its lease */
  readonly #holders = new Map<string, Lease>();
  #granting: Promise<Lease> | undefined;
  /** An etcd may grant leases and know nothing of them afterwards. */
  readonly #spacing: IdleResetBackoff;
  #hasLost = false;

  constructor(options: LeasesOptions) {
    this.#options = options;
    const { clock, random } = options;
    this.#spacing = new IdleResetBackoff({ base: FIRST_DELAY, cap: LONGEST_DELAY, clock, random });
  }

  /** The lease to write this key with. Rejects with {@link EtcdError}. */
  async hold(key: string, connection: EtcdConnection, { signal }: { readonly signal: AbortSignal }): Promise<bigint> {
    for (;;) {
      const lease = this.#holders.get(key) ?? this.#withRoom();
      if (lease !== undefined) {
        lease.keys.add(key);
        this.#holders.set(key, lease);
        return lease.id;
      }
      // Whoever comes meanwhile waits for the same one.
      this.#granting ??= this.#grant(connection, signal).finally(() => (this.#granting = undefined));
      await this.#granting;
    }
  }

  /** Whether this is the lease that the key is written with. */
  holds(key: string, lease: bigint): boolean {
    return this.#holders.get(key)?.id === lease;
  }

  /** The key was deleted. */
  release(key: string): void {
    this.#holders.get(key)?.keys.delete(key);
    this.#holders.delete(key);
  }

  /** etcd says that there is no such lease. */
  lose(id: bigint): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    this.#leases.delete(id);
    this.#hasLost = true;
    for (const key of lease.keys) this.#holders.delete(key);
    if (lease.keys.size > 0) this.#options.onLost([...lease.keys]);
  }

  /** Keeps them alive until the signal fires or the connection ends. */
  async run(connection: EtcdConnection, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { clock, random } = this.#options;
    const backoff = new Backoff({ base: FIRST_DELAY, cap: LONGEST_DELAY, random });
    const ended = new AbortController();
    void connection.ended.then(() => ended.abort());
    while (!signal.aborted && connection.failure === undefined) {
      await this.#keepAlive(connection, signal, () => backoff.reset());
      if (connection.failure === undefined)
        await sleep(clock, backoff.next(), { signal: AbortSignal.any([signal, ended.signal]) });
    }
  }

  /** Until the stream ends, however it does: the connection says what is wrong with it. */
  async #keepAlive(connection: EtcdConnection, signal: AbortSignal, works: () => void): Promise<void> {
    const { clock, ttl } = this.#options;
    /** When those that were not answered yet were sent. */
    const sent = new Map<bigint, number>();
    const stream = connection.open(leaseKeepAlive, {
      signal,
      onMessage: ({ id, ttl: seconds }) => {
        works();
        const lease = this.#leases.get(id);
        const at = sent.get(id);
        if (lease === undefined || at === undefined) return;
        sent.delete(id);
        if (seconds <= 0n) this.lose(id);
        else lease.until = at + 1_000 * Number(seconds);
      },
    });
    let cancel = (): void => undefined;
    const tick = (): void => {
      for (const { id, until } of [...this.#leases.values()]) {
        if (clock.now() >= until) this.lose(id);
        else if (!sent.has(id)) {
          sent.set(id, clock.now());
          stream.send({ id });
        }
      }
      cancel = clock.after((1_000 * ttl) / 3, tick);
    };
    tick();
    await stream.ended.catch(() => undefined);
    cancel();
  }

  #withRoom(): Lease | undefined {
    const { mostKeys = MOST_KEYS } = this.#options;
    return [...this.#leases.values()].find(({ keys }) => keys.size < mostKeys);
  }

  async #grant(connection: EtcdConnection, signal: AbortSignal): Promise<Lease> {
    const { clock, ttl } = this.#options;
    if (this.#hasLost) {
      this.#hasLost = false;
      const delay = this.#spacing.next();
      if (delay > 0) await Promise.race([sleep(clock, delay, { signal }), connection.ended]);
    }
    const at = clock.now();
    const { id, ttl: seconds, error } = await connection.call(leaseGrant, { ttl: BigInt(ttl) }, { signal });
    if (error !== '' || id === 0n) throw new EtcdError('Refused', `no lease: ${printable(error)}`);
    if (seconds < BigInt(ttl)) throw new EtcdError('Refused', `a lease for ${seconds} s instead of ${ttl} s`);
    if (this.#leases.has(id)) throw new EtcdError('Malformed', 'a lease was granted twice');
    const lease = { id, keys: new Set<string>(), until: at + 1_000 * Number(seconds) };
    this.#leases.set(id, lease);
    return lease;
  }
}
