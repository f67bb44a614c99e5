import type { InFlight } from './in-flight.ts';
import { Concern } from '../rollouts/rollout.ts';
import { haveCommon } from '../store/names.ts';
import type { Recipient } from '../rollouts/recipient.ts';
import { ownSizeOf, rejectedAmong, type RejectedByName } from '../rollouts/rejected-by-name.ts';
import type { Names } from '../store/served.ts';
import type { Sent } from './sent.ts';

/** Where a client is, as far as one type goes. */
export interface Standing {
  /** Everything is owed. */
  readonly all: boolean;
  /** Names that are owed, or undefined if there are none. */
  readonly pending: Names | undefined;
  readonly inFlight: InFlight;
  /** What the client rejects of these names now. */
  rejectedOf(names: Names): RejectedByName;
}

/** More concerns in one place are joined: objects may go on changing while a client says nothing. */
const MOST = 16;

/**
 * What concerns a client in resources of one type, and is not acknowledged yet. Each concern is in one place: it is owed;
 * or on its way, with the newest response that has something of it; or rejected. Empty in the steady state.
 */
export class Awaited {
  readonly #recipient: Recipient;
  #owed: readonly Concern[] = NONE;
  #rejected: readonly Concern[] = NONE;

  constructor(recipient: Recipient) {
    this.#recipient = recipient;
  }

  /** Something is to be sent, or has turned out not to be. */
  get owes(): boolean {
    return this.#owed.length > 0;
  }

  /** What the client is owed and restricts clients; usually nothing. */
  get restrictions(): readonly Concern[] {
    return this.#owed.filter(({ rollouts }) => [...rollouts].some(({ restricts }) => restricts));
  }

  /** Something of what is waited for is rejected. */
  get rejects(): boolean {
    return this.#rejected.length > 0;
  }

  /** How many names are remembered as rejected: once for each concern. */
  rejectedNames(inFlight: Iterable<Sent>): number {
    let names = 0;
    for (const { rejections } of this.#all(inFlight)) {
      const rejected = rejections.get(this.#recipient);
      if (rejected !== undefined) names += ownSizeOf(rejected);
    }
    return names;
  }

  owe(concern: Concern): void {
    // It may be on its way: then the client has asked once more.
    const own = concern.once(this.#recipient);
    own.begin(this.#recipient);
    this.#owed = this.#with(this.#owed, own);
  }

  /** What was rejected may be superseded. */
  changed(): void {
    for (const concern of this.#rejected) this.#owed = this.#with(this.#owed, concern);
    this.#rejected = NONE;
  }

  /** Something was sent, or nothing is owed any more. */
  look(standing: Standing): void {
    const owed = this.#owed;
    this.#owed = NONE;
    for (const concern of owed) this.#place(concern, standing);
    // Older responses may have been folded into one.
    for (const sent of standing.inFlight)
      if (sent.concerns.length > MOST) sent.concerns = [Concern.join(sent.concerns, this.#recipient)];
  }

  /** What a rejected response had is owed again, or is a rejection; what was sent along with it is uncertain. */
  answered(accepted: readonly Sent[], rejected: readonly Sent[], standing: Standing): void {
    if (rejected.length === 0) {
      for (const { concerns, nonce } of accepted) for (const each of concerns) this.#await(each, standing, nonce);
      return;
    }
    const uncertain = [...accepted, ...rejected, ...standing.inFlight].map((sent) => {
      const { concerns } = sent;
      sent.concerns = NONE;
      return concerns;
    });
    for (const concern of uncertain.flat()) this.#place(concern, standing);
  }

  /**
   * The client has said something: it may have accepted what it rejected, or given it up. It may reject thousands of
   * resources: only those of which there is news are looked at.
   */
  heard(standing: Standing, news: Names | 'all'): void {
    const rejected = this.#rejected;
    this.#rejected = NONE;
    for (const concern of rejected)
      if (isNews(concern.names, standing, news)) this.#place(concern, standing);
      else this.#rejected = [...this.#rejected, concern];
  }

  /** The client is gone. */
  close(inFlight: Iterable<Sent>): void {
    const all = this.#all(inFlight);
    this.#owed = this.#rejected = NONE;
    for (const concern of all) concern.leave(this.#recipient);
  }

  #all(inFlight: Iterable<Sent>): readonly Concern[] {
    return [...this.#owed, ...this.#rejected, ...[...inFlight].flatMap(({ concerns }) => concerns)];
  }

  /** What of it is still owed stays so. */
  #place(concern: Concern, standing: Standing): void {
    const { all, pending } = standing;
    const [free, bound] = all ? [undefined, concern] : this.#split(concern, pending);
    if (bound !== undefined) this.#owed = this.#with(this.#owed, bound);
    if (free !== undefined) this.#await(free, standing);
  }

  /** None of it is owed. @param before nonce of a response that was accepted: newer ones do not matter. */
  #await(concern: Concern, standing: Standing, before = Infinity): void {
    const sent = standing.inFlight.newestWith(concern.names, before);
    if (sent !== undefined) {
      sent.concerns = this.#with(sent.concerns, concern);
      return;
    }
    const rejected = standing.rejectedOf(concern.names);
    const [free, bound] = this.#split(concern, rejected);
    free?.end(this.#recipient);
    if (bound === undefined) return;
    this.#rejected = this.#with(this.#rejected, bound);
    bound.reject(this.#recipient, bound === concern ? rejected : rejectedAmong(bound.names, [rejected]));
  }

  #split(concern: Concern, names: Names | undefined): ReturnType<Concern['split']> {
    return names === undefined || names.size === 0 ? [concern, undefined] : concern.split(names, this.#recipient);
  }

  #with(concerns: readonly Concern[], concern: Concern): readonly Concern[] {
    const all = [...concerns, concern];
    return all.length > MOST ? [Concern.join(all, this.#recipient)] : all;
  }
}

/** Whether some of what was rejected may no longer be, or not as before. */
function isNews(names: Names, { all, pending, inFlight }: Standing, news: Names | 'all'): boolean {
  if (all || news === 'all' || haveCommon(names, news)) return true;
  return (pending !== undefined && haveCommon(names, pending)) || inFlight.newestWith(names, Infinity) !== undefined;
}

const NONE: readonly Concern[] = [];
