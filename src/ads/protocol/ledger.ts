import { GONE, type NewRefusal, Refusals } from './refusals.ts';
import { type Held, type Names, Served, versionOf } from '../store/served.ts';

/** Names with what a client holds of them. */
export type HeldNames = ReadonlyMap<string, Held>;

/** All that there is to know of a client that refuses nothing. */
export interface Marks {
  readonly pending: HeldNames;
  readonly kept: HeldNames;
  readonly asked: HeldNames;
}

/**
 * What a client is owed of one type, by name. A name that is in none of these is current at the client, and that is
 * nearly every name nearly always: the maps exist only while they have something in them.
 */
export class Ledger {
  readonly #pending = new CopiedOnWrite();
  readonly #kept = new CopiedOnWrite();
  readonly #asked = new CopiedOnWrite();
  #refusals: Refusals | undefined;
  #partial: Map<string, Set<Served>> | undefined;

  /** Owed names, with what the client holds of them (as far as responses on their way will be accepted). */
  get pending(): HeldNames | undefined {
    return this.#pending.names;
  }

  /** Names that left the world and are served on, unchanged. */
  get kept(): HeldNames | undefined {
    return this.#kept.names;
  }

  /** Names that have to be answered even if the client holds the present version, once they are owed. */
  get asked(): Pick<HeldNames, 'has' | 'keys'> | undefined {
    return this.#asked.names;
  }

  /** Undefined as long as nothing is refused, and again when the last refusal is over. */
  get refusals(): Refusals | undefined {
    return this.#refusals?.size === 0 ? undefined : this.#refusals;
  }

  clear(): void {
    this.take(NO_MARKS);
    this.#partial = this.#refusals = undefined;
  }

  /** All there is to know, shared from now on; undefined if there is more than marks. */
  get marks(): Marks | undefined {
    if (this.refusals !== undefined) return undefined;
    return { pending: this.#pending.share(), kept: this.#kept.share(), asked: this.#asked.share() };
  }

  /** Takes over what is the same for others. */
  take({ pending, kept, asked }: Marks): void {
    this.#pending.take(pending);
    this.#kept.take(kept);
    this.#asked.take(asked);
  }

  owe(name: string, held: Held): void {
    this.#pending.set(name, held);
  }

  /** These stay owed, and nothing else; `unanswered` ones, now or before, are to be answered as soon as they are owed again. */
  oweOnly(names: HeldNames, unanswered?: ReadonlySet<string>): void {
    const owed = this.pending ?? NONE;
    this.#pending.take(names);
    for (const name of [...(this.asked?.keys() ?? [])]) {
      if (owed.has(name) && !names.has(name) && unanswered?.has(name) !== true) this.#asked.delete(name);
    }
  }

  /** What is kept, shared from now on. */
  shareKept(): HeldNames {
    return this.#kept.share();
  }

  /** Owed in any case. */
  ask(name: string, held: Held): void {
    if (this.pending?.has(name) !== true) this.owe(name, held);
    this.#asked.set(name, undefined);
  }

  keep(name: string, held: Held): void {
    this.#kept.set(name, held);
  }

  /** Ends the keeping of a name; what the client holds of it. */
  unkeep(name: string): Held {
    const held = this.kept?.get(name);
    this.#kept.delete(name);
    return held;
  }

  /** Ends the keeping of these names: that they are gone is owed. */
  letGo(names: Names): void {
    if (names === this.kept && this.pending === undefined) {
      this.#pending.take(this.#kept.share());
      this.#kept.take(NONE);
    } else for (const name of names.keys()) if (this.kept?.has(name) === true) this.owe(name, this.unkeep(name));
  }

  /** `was` is what the client holds unless the name is owed already; `gone`: it left the world, and clients keep it. */
  mark(name: string, was: Held, gone: boolean): void {
    if (this.kept?.has(name) === true) {
      if (gone) return;
      const kept = this.unkeep(name);
      if (this.pending?.has(name) !== true) this.owe(name, kept);
      return;
    }
    const owed = this.pending?.has(name) === true;
    const held = owed ? this.pending!.get(name) : was;
    const uses = this.uses(name, held);
    if (!gone) {
      if (!owed) this.owe(name, uses);
      return;
    }
    if (uses !== undefined) this.keep(name, uses);
    if (owed && uses !== undefined && uses === held && this.asked?.has(name) !== true) this.settled(name);
  }

  /** What the client uses where it is thought to hold this: something else if that was refused. */
  uses(name: string, held: Held): Held {
    const version = versionOf(held);
    return version !== undefined && this.#forbids(name, version) ? this.refusals!.held(name) : held;
  }

  /** The same, for when it is refused once more what it is just sent again. */
  goesBackTo(name: string, held: Held): Held {
    const version = versionOf(held);
    return version !== undefined && this.refusals?.refused(name, version) === true ? this.refusals.held(name) : held;
  }

  /** Not owed any more. */
  settled(name: string): void {
    this.#pending.delete(name);
    this.#asked.delete(name);
  }

  /** The client does not want it any more. */
  forget(name: string): void {
    this.settled(name);
    this.unkeep(name);
    this.certain(name);
    this.refusals?.forget(name);
  }

  refuse(name: string, refusal: NewRefusal): void {
    (this.#refusals ??= new Refusals()).refuse(name, refusal);
  }

  /** It left the world, and what the client had when it last refused something of it is not certain. */
  uncertain(name: string, present: Served | undefined): boolean {
    return present === undefined && this.kept?.has(name) !== true && this.refusals?.has(name) === true;
  }

  /** What this client is to have, where the world has `present`. */
  target(name: string, present: Served | undefined): Served | undefined {
    const target = present ?? this.kept?.get(name);
    return target instanceof Served ? target : undefined;
  }

  /**
   * What this client is to be given in its place: the same, unless that was refused. Undefined: nothing that it would
   * take, or nothing whose bytes are still there.
   */
  offer(name: string, present: Served | undefined): Served | undefined {
    const target = this.target(name, present);
    if (target === undefined || !this.#forbids(name, target.version)) return target;
    const held = this.refusals?.held(name);
    return held instanceof Served && !this.#forbids(name, held.version) ? held : undefined;
  }

  /** The client has nothing under this name and takes nothing of what there is, or the name is gone. */
  lacks(name: string, present: Served | undefined): boolean {
    if (this.target(name, present) === undefined) return this.kept?.has(name) !== true;
    return this.offer(name, present) === undefined && this.refusals?.held(name) === undefined;
  }

  /** To hear that a name is gone was refused. */
  refusesRemoval(name: string): boolean {
    return this.#forbids(name, GONE);
  }

  /** Something else than the world's own resources is to be offered of some name. */
  get deviates(): boolean {
    return this.kept !== undefined || this.refusals !== undefined;
  }

  /** What the client may have taken of responses that it refused without saying what of. */
  get partial(): ReadonlyMap<string, ReadonlySet<Served>> | undefined {
    return this.#partial;
  }

  took(name: string, item: Served): void {
    const partial = (this.#partial ??= new Map<string, Set<Served>>());
    const items = partial.get(name);
    if (items === undefined) partial.set(name, new Set([item]));
    // Only a client that keeps refusing gets more than one or two: the oldest has long been replaced.
    else if (items.add(item).size > MAX_PARTIAL) for (const oldest of items) return void items.delete(oldest);
  }

  /** It refused this very item. What it may have taken of earlier responses it still may have. */
  tookNot(name: string, item: Served): void {
    const items = this.#partial?.get(name);
    if (items?.delete(item) === true && items.size === 0) this.certain(name);
  }

  /** It is certain again what the client has. */
  certain(name: string): void {
    if (this.#partial?.delete(name) === true && this.#partial.size === 0) this.#partial = undefined;
  }

  certainOfAll(): void {
    this.#partial = undefined;
  }

  #forbids(name: string, version: string): boolean {
    return this.refusals?.forbids(name, version) === true;
  }
}

const MAX_PARTIAL = 8;

/** No names. There is one such map, so that it is known by identity. */
export const NONE: HeldNames = new Map();
const NO_MARKS: Marks = { pending: NONE, kept: NONE, asked: NONE };

/**
 * Names of one client that may be those of others too: streams that leave a world together owe the same thousands of
 * names, and share a map until one of them deviates.
 */
class CopiedOnWrite {
  /** Undefined: none. */
  names: HeldNames | undefined;
  #own: Map<string, Held> | undefined;

  share(): HeldNames {
    this.#own = undefined;
    return this.names ?? NONE;
  }

  take(names: HeldNames): void {
    this.names = names.size === 0 ? undefined : names;
    this.#own = undefined;
  }

  set(name: string, held: Held): void {
    this.#writable().set(name, held);
  }

  delete(name: string): void {
    if (this.names?.has(name) !== true) return;
    if (this.names.size === 1) this.take(NONE);
    else this.#writable().delete(name);
  }

  #writable(): Map<string, Held> {
    return (this.#own ??= this.names = new Map(this.names));
  }
}
