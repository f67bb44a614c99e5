import type { InFlight } from './in-flight.ts';
import { Concern } from '../rollouts/rollout.ts';
import { haveCommon } from '../store/names.ts';
import type { Recipient } from '../rollouts/recipient.ts';
import { ownSizeOf, refusedAmong, type RefusedByName } from '../rollouts/refused-by-name.ts';
import type { Names } from '../store/served.ts';
import type { Sent } from './sent.ts';

/** Where a client is, as far as one type goes. */
export interface Standing {
  /** Everything is owed. */
  readonly all: boolean;
  /** Names that are owed; undefined: none. */
  readonly pending: Names | undefined;
  readonly inFlight: InFlight;
  /** What the client refuses of these names now. */
  refusedOf(names: Names): RefusedByName;
}

/** More concerns in one place are joined: objects may go on changing while a client says nothing. */
const MOST = 16;

/**
 * What concerns a client in resources of one type, and is not acknowledged yet. Each concern is in one place: it is owed;
 * or on its way, with the newest response that has something of it; or refused. Empty in the steady state.
 */
export class Awaited {
  readonly #recipient: Recipient;
  #owed: readonly Concern[] = NONE;
  #refused: readonly Concern[] = NONE;

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

  /** Something of what is waited for is refused. */
  get refuses(): boolean {
    return this.#refused.length > 0;
  }

  /** How many names are remembered as refused: once for each concern. */
  refusedNames(inFlight: Iterable<Sent>): number {
    let names = 0;
    for (const { refusals } of this.#all(inFlight)) {
      const refused = refusals.get(this.#recipient);
      if (refused !== undefined) names += ownSizeOf(refused);
    }
    return names;
  }

  owe(concern: Concern): void {
    // It may be on its way: then the client has asked once more.
    const own = concern.once(this.#recipient);
    own.begin(this.#recipient);
    this.#owed = this.#with(this.#owed, own);
  }

  /** What was refused may be superseded. */
  changed(): void {
    for (const concern of this.#refused) this.#owed = this.#with(this.#owed, concern);
    this.#refused = NONE;
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

  /** What was rejected is owed again, or refused; what was sent along with it is uncertain. */
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
   * The client has said something: it may have accepted what it refused, or given it up. It may refuse thousands of
   * resources: only those of which there is news are looked at.
   */
  heard(standing: Standing, news: Names | 'all'): void {
    const refused = this.#refused;
    this.#refused = NONE;
    for (const concern of refused)
      if (isNews(concern.names, standing, news)) this.#place(concern, standing);
      else this.#refused = [...this.#refused, concern];
  }

  /** The client is gone. */
  close(inFlight: Iterable<Sent>): void {
    const all = this.#all(inFlight);
    this.#owed = this.#refused = NONE;
    for (const concern of all) concern.leave(this.#recipient);
  }

  #all(inFlight: Iterable<Sent>): readonly Concern[] {
    return [...this.#owed, ...this.#refused, ...[...inFlight].flatMap(({ concerns }) => concerns)];
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
    const refused = standing.refusedOf(concern.names);
    const [free, bound] = this.#split(concern, refused);
    free?.end(this.#recipient);
    if (bound === undefined) return;
    this.#refused = this.#with(this.#refused, bound);
    bound.refuse(this.#recipient, bound === concern ? refused : refusedAmong(bound.names, [refused]));
  }

  #split(concern: Concern, names: Names | undefined): ReturnType<Concern['split']> {
    return names === undefined || names.size === 0 ? [concern, undefined] : concern.split(names, this.#recipient);
  }

  #with(concerns: readonly Concern[], concern: Concern): readonly Concern[] {
    const all = [...concerns, concern];
    return all.length > MOST ? [Concern.join(all, this.#recipient)] : all;
  }
}

/** Whether some of what was refused may no longer be, or not as before. */
function isNews(names: Names, { all, pending, inFlight }: Standing, news: Names | 'all'): boolean {
  if (all || news === 'all' || haveCommon(names, news)) return true;
  return (pending !== undefined && haveCommon(names, pending)) || inFlight.newestWith(names, Infinity) !== undefined;
}

const NONE: readonly Concern[] = [];
