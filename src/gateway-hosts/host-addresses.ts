import type { Clock } from '../base/clock.ts';
import { FairSemaphore, Permit } from '../base/fair-semaphore.ts';
import { isAddress } from '../model/address.ts';
import { compareText } from '../model/age.ts';
import { mostGateways } from '../model/network.ts';

/** What a name has been resolved to; `problem`: why the last attempt failed. */
export interface HostAddresses {
  readonly addresses: readonly string[];
  readonly problem?: string;
}

export interface LookedUp {
  readonly addresses: readonly string[];
  /** Seconds. */
  readonly ttl: number;
}

export interface GatewayHostsOptions {
  /** Rejects if the name has no address, and when the signal fires. */
  readonly lookUp: (host: string, signal: AbortSignal) => Promise<LookedUp>;
  /** Called whenever something about a name changes; undefined if it is no longer wanted. */
  readonly write: (host: string, found: HostAddresses | undefined) => void;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/** Milliseconds between two look-ups, whatever the name server says. */
const [SHORTEST, LONGEST] = [30_000, 3_600_000];
/** After a failure: first and longest delay. */
const [FIRST_RETRY, LONGEST_RETRY] = [1_000, 60_000];
const PATIENCE = 10_000;
const AT_ONCE = 8;
/** Others are not looked up: each is a name in a Service's status or in MeshNetworks. */
export const mostHosts = 1_000;

interface Entry {
  readonly turn: Permit;
  found: HostAddresses | undefined;
  failures: number;
  cancel: () => void;
}

/** Keeps the addresses of names up to date. A name that cannot be resolved any more keeps its last addresses. */
export class GatewayHosts {
  readonly #options: GatewayHostsOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #refused = new Set<string>();
  readonly #turns = new FairSemaphore(AT_ONCE);

  constructor(options: GatewayHostsOptions) {
    this.#options = options;
    options.signal.addEventListener('abort', () => {
      const entries = [...this.#entries.values()];
      this.#entries.clear();
      for (const entry of entries) entry.cancel();
    });
  }

  want(host: string): void {
    if (this.#options.signal.aborted || this.#entries.has(host)) return;
    if (this.#entries.size >= mostHosts) {
      this.#refused.add(host);
      this.#options.write(host, { addresses: [], problem: `more than ${mostHosts} names of gateways` });
      return;
    }
    this.#refused.delete(host);
    const entry: Entry = {
      turn: new Permit(this.#turns, host),
      found: undefined,
      failures: 0,
      cancel: () => undefined,
    };
    this.#entries.set(host, entry);
    this.#enqueue(host, entry);
  }

  unwant(host: string): void {
    this.#refused.delete(host);
    const entry = this.#entries.get(host);
    entry?.cancel();
    this.#entries.delete(host);
    this.#options.write(host, undefined);
    const [next] = this.#refused;
    if (next !== undefined && this.#entries.size < mostHosts) this.want(next);
  }

  #enqueue(host: string, entry: Entry): void {
    const { turn } = entry;
    entry.cancel = () => turn.leave();
    turn.take(() => void this.#lookUp(host, entry).finally(() => turn.leave()));
  }

  /** Never rejects. */
  async #lookUp(host: string, entry: Entry): Promise<void> {
    const { clock, signal: ended, lookUp, random } = this.#options;
    const end = new AbortController();
    const stop = (): void => end.abort();
    const cancelTimer = clock.after(PATIENCE, stop);
    ended.addEventListener('abort', stop);
    entry.cancel = stop;
    const result = await lookUp(host, end.signal).catch((error: unknown) => ({ problem: reasonOf(error, end.signal) }));
    cancelTimer();
    ended.removeEventListener('abort', stop);
    // It was given up meanwhile.
    if (ended.aborted || this.#entries.get(host) !== entry) return;
    const delay = this.#keep(host, entry, result);
    entry.cancel = clock.after(delay * (0.9 + 0.2 * random()), () => this.#enqueue(host, entry));
  }

  /** Milliseconds until the next attempt. */
  #keep(host: string, entry: Entry, result: LookedUp | { readonly problem: string }): number {
    const before = entry.found;
    if ('problem' in result) {
      entry.failures = Math.min(entry.failures + 1, 30);
      entry.found = { addresses: before?.addresses ?? [], problem: result.problem };
    } else {
      entry.failures = 0;
      const addresses = [...new Set(result.addresses.filter(isAddress))].sort(compareText).slice(0, mostGateways);
      entry.found = { addresses };
    }
    if (JSON.stringify(before) !== JSON.stringify(entry.found)) this.#options.write(host, entry.found);
    if ('problem' in result) return Math.min(LONGEST_RETRY, FIRST_RETRY * 2 ** (entry.failures - 1));
    return Math.min(LONGEST, Math.max(SHORTEST, result.ttl * 1_000));
  }
}

function reasonOf(error: unknown, { aborted }: AbortSignal): string {
  if (aborted) return `no answer within ${PATIENCE} ms`;
  return (error instanceof Error && (error as NodeJS.ErrnoException).code) || 'the look-up failed';
}
