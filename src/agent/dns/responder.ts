import { answer, failure, notImplemented } from './answer.ts';
import type { NameTable } from './names.ts';
import { type Query, readQuery } from './query.ts';
import type { Protocol, Upstream } from './upstream.ts';

/** How many queries wait for other name servers at one time; each has a socket. */
const MOST_FORWARDED = 1_000;
const MOST_TCP_BYTES = 65_535;

export interface ResponderOptions {
  readonly names: NameTable;
  readonly upstream: Pick<Upstream, 'ask'>;
  /** In [0, 1). */
  readonly random: () => number;
}

/** What has become of messages. */
export interface DnsCounts {
  /** Answered from the table. */
  readonly answered: number;
  readonly forwarded: number;
  /** No name server has answered. */
  readonly unanswered: number;
  /** Refused because too many others were waiting for name servers. */
  readonly overloaded: number;
  /** Refused because there was no table yet. */
  readonly early: number;
  /** Dropped. */
  readonly malformed: number;
}

/** Decides what becomes of each message, whatever it came by. */
export class Responder {
  readonly #options: ResponderOptions;
  readonly #counts = { answered: 0, forwarded: 0, unanswered: 0, overloaded: 0, early: 0, malformed: 0 };
  #waiting = 0;

  constructor(options: ResponderOptions) {
    this.#options = options;
  }

  counts(): DnsCounts {
    return { ...this.#counts };
  }

  /** Undefined: no answer. Never rejects. */
  respond(message: Uint8Array, protocol: Protocol, signal: AbortSignal): Uint8Array | Promise<Uint8Array> | undefined {
    const query = readQuery(message);
    if (query === 'malformed') {
      this.#counts.malformed++;
      return undefined;
    }
    if (query === 'unsupported') return notImplemented(message);
    const { names, random } = this.#options;
    if (!names.isLoaded) {
      this.#counts.early++;
      return failure(query);
    }
    const found = query.type === 'other' ? undefined : names.lookup(query.name);
    if (found === undefined) return this.#forward(message, query, protocol, signal);
    this.#counts.answered++;
    return answer(query, found, protocol === 'udp' ? query.udpBytes : MOST_TCP_BYTES, random);
  }

  #forward(
    message: Uint8Array,
    query: Query,
    protocol: Protocol,
    signal: AbortSignal,
  ): Uint8Array | Promise<Uint8Array> {
    if (this.#waiting >= MOST_FORWARDED) {
      this.#counts.overloaded++;
      return failure(query);
    }
    this.#waiting++;
    this.#counts.forwarded++;
    return this.#options.upstream
      .ask(message, protocol, signal)
      .catch(() => undefined)
      .then((found) => {
        this.#waiting--;
        if (found !== undefined) return found;
        this.#counts.unanswered++;
        return failure(query);
      });
  }
}
