import type { Clock } from '../base/clock.ts';
import { FreshAnswers, NoAnswer } from '../base/fresh-answers.ts';
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
const RETRY = { first: 1_000, longest: 60_000 };
const PATIENCE = 10_000;
const AT_ONCE = 8;
/** Others are not looked up: each is a name in a Service's status or in MeshNetworks. */
export const mostHosts = 1_000;

/** Keeps the addresses of names up to date. A name that cannot be resolved any more keeps its last addresses. */
export class GatewayHosts {
  readonly #write: GatewayHostsOptions['write'];
  readonly #answers: FreshAnswers<string, HostAddresses>;
  readonly #refused = new Set<string>();

  constructor({ lookUp, ...options }: GatewayHostsOptions) {
    this.#write = options.write;
    this.#answers = new FreshAnswers({
      ...options,
      ask: async (host, signal) => {
        const { addresses, ttl } = await lookUp(host, signal);
        const answer = { addresses: usable(addresses) };
        return { answer, again: Math.min(LONGEST, Math.max(SHORTEST, ttl * 1_000)) };
      },
      failed: (error, { answer }): HostAddresses => ({ addresses: answer?.addresses ?? [], problem: reasonOf(error) }),
      retry: RETRY,
      patience: () => PATIENCE,
      isSame: () => true,
      atOnce: AT_ONCE,
      clientOf: (host) => host,
    });
  }

  want(host: string): void {
    if (!this.#answers.has(host) && this.#answers.size >= mostHosts) {
      this.#refused.add(host);
      this.#write(host, { addresses: [], problem: `more than ${mostHosts} names of gateways` });
      return;
    }
    this.#refused.delete(host);
    this.#answers.want(host, host);
  }

  unwant(host: string): void {
    if (this.#refused.delete(host)) this.#write(host, undefined);
    this.#answers.unwant(host);
    const [next] = this.#refused;
    if (next !== undefined && this.#answers.size < mostHosts) this.want(next);
  }
}

function usable(addresses: readonly string[]): readonly string[] {
  return [...new Set(addresses.filter(isAddress))].sort(compareText).slice(0, mostGateways);
}

function reasonOf(error: unknown): string {
  if (error instanceof NoAnswer) return error.message;
  return (error instanceof Error && (error as NodeJS.ErrnoException).code) || 'the look-up failed';
}
