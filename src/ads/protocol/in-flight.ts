import type { Frame } from '../wire/frames.ts';
import { fold, itemsOf, namesOf, type Sent, type Subscribed } from './sent.ts';
import { haveCommon } from '../store/names.ts';
import type { Held, Names, Served } from '../store/served.ts';

/** What a client's answer said about earlier responses. */
export interface Settled {
  readonly accepted: readonly Sent[];
  readonly rejected: readonly Sent[];
}

const NONE: readonly Sent[] = [];
const NOTHING: Settled = { accepted: NONE, rejected: NONE };
/** A client that never answers costs bounded memory: beyond this number, records are folded into one. */
const MAX_RECORDS = 32;
/** The same for the names in newer records: this many, or as many as were folded before. */
const MAX_NEWER_NAMES = 65_536;

/** The responses of one type that the client has not answered yet, oldest first. */
export class InFlight {
  readonly #delta: boolean;
  readonly #subscribed: Subscribed;
  readonly #responses: Sent[] = [];
  #sentNonce = 0;
  #ackedNonce = 0;
  #sentAt = -Infinity;

  constructor(delta: boolean, subscribed: Subscribed) {
    this.#delta = delta;
    this.#subscribed = subscribed;
  }

  /** Nonce of the newest response; 0 before the first. */
  get sentNonce(): number {
    return this.#sentNonce;
  }

  /** When the newest response was handed to the connection; -Infinity before the first. */
  get sentAt(): number {
    return this.#sentAt;
  }

  /** Nonce of the newest accepted response; 0 before the first. */
  get ackedNonce(): number {
    return this.#ackedNonce;
  }

  /** A response is handed to the connection. */
  handed(sent: Sent, { nonce, version }: Pick<Frame, 'nonce' | 'version'>, now: number): void {
    this.#sentNonce = sent.nonce = sent.first = nonce;
    sent.version = version;
    this.#sentAt = sent.at = now;
  }

  get size(): number {
    return this.#responses.length;
  }

  get oldest(): Sent | undefined {
    return this.#responses[0];
  }

  get newest(): Sent | undefined {
    return this.#responses.at(-1);
  }

  [Symbol.iterator](): Iterator<Sent> {
    return this.#responses[Symbol.iterator]();
  }

  add(sent: Sent): void {
    if (this.#responses.length > 0) this.#foldIfMany();
    this.#responses.push(sent);
  }

  #foldIfMany(): void {
    const responses = this.#responses;
    const [oldest, ...newer] = responses as [Sent, ...Sent[]];
    const names = newer.reduce((sum, each) => sum + namesOf(each), 0);
    const tooMany = responses.length >= MAX_RECORDS || names > Math.max(MAX_NEWER_NAMES, namesOf(oldest));
    if (tooMany) responses.splice(0, responses.length, fold(oldest, newer, this.#subscribed));
  }

  clear(): void {
    this.#responses.length = 0;
  }

  /** The newest response, older than `before`, that tells the client something about one of these names. */
  newestWith(names: Names, before: number): Sent | undefined {
    for (let i = this.#responses.length - 1; i >= 0; i--) {
      const sent = this.#responses[i]!;
      if (sent.nonce >= before) continue;
      if (sent.prior === undefined || haveCommon(names, sent.prior)) return sent;
    }
    return undefined;
  }

  /** The newest resource with this name that is on its way. */
  last(name: string): Served | undefined {
    for (let i = this.#responses.length - 1; i >= 0; i--) {
      for (const batch of this.#responses[i]!.batches) {
        const item = batch.get(name);
        if (item !== undefined) return item;
      }
    }
    return undefined;
  }

  /** The same for many names: for all, if none are given. */
  lastOf(names?: readonly string[]): ReadonlyMap<string, Served> {
    const last = new Map<string, Served>();
    if (names === undefined) {
      for (const sent of this.#responses) for (const item of itemsOf(sent)) last.set(item.name, item);
      return last;
    }
    for (const name of names) {
      const item = this.last(name);
      if (item !== undefined) last.set(name, item);
    }
    return last;
  }

  /**
   * What the client had of these names is not what it was assumed to have: the first response on its way with such a
   * name was sent on that wrong assumption. Later ones replace that one.
   */
  amend(priors: ReadonlyMap<string, Held>): void {
    let rest = priors;
    for (const sent of this.#responses) {
      if (rest.size === 0) return;
      const carried = [...rest].filter(([name]) => sent.batches.some((batch) => batch.get(name) !== undefined));
      if (carried.length === 0) continue;
      const prior = sent.prior && new Map(sent.prior);
      const others = new Map(rest);
      for (const [name, held] of carried) {
        prior?.set(name, held);
        others.delete(name);
      }
      sent.prior = prior;
      rest = others;
    }
  }

  /**
   * Settles an answer to a response. Undefined if that response is no longer the newest.
   *
   * In delta, every response is answered. In state of the world, an answer also stands for all earlier responses; and a
   * rejection that reports the version of the very response it answers accepts that response: Envoy held the answer
   * back, and the error belongs to an earlier response.
   */
  settle(nonce: number, error: boolean, version: string): Settled | undefined {
    const responses = this.#responses;
    let index = 0;
    while (index < responses.length && !isIn(responses[index]!, nonce)) index++;
    if (index === responses.length) index = -1;
    if (index < 0) return nonce === this.#sentNonce ? NOTHING : undefined;
    const answered = responses[index]!;
    if (!error) this.#ackedNonce = Math.max(this.#ackedNonce, nonce);
    if (this.#delta) {
      if (!error && nonce < answered.nonce) return NOTHING;
      if (responses.length === 1) responses.pop();
      else responses.splice(index, 1);
      return error ? { accepted: NONE, rejected: [answered] } : { accepted: [answered], rejected: NONE };
    }
    const upTo = responses.splice(0, index + 1);
    if (!error) return { accepted: upTo, rejected: [] };
    if (index > 0 && version === answered.version) return { accepted: [answered], rejected: upTo.slice(0, -1) };
    return { accepted: [], rejected: upTo };
  }
}

/** Whether a response stands for this nonce. */
export function isIn({ first, nonce: last }: Sent, nonce: number): boolean {
  return first <= nonce && nonce <= last;
}
