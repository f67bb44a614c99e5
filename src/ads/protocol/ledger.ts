import { GONE, type NewRejection, Rejections } from './rejections.ts';
import type { Sent } from './sent.ts';
import { type Held, type Names, Served, versionOf } from '../store/served.ts';

/** Names with what a client holds of them. */
export type HeldNames = ReadonlyMap<string, Held>;

/** Everything known about a client that rejects nothing. */
export interface Marks {
  readonly pending: HeldNames;
  readonly kept: HeldNames;
  readonly asked: HeldNames;
}

/**
 * What clients are owed that were owed nothing before, and that see the same changes: one object for all of them, with
 * what follows from it until the next publication.
 */
export class CommonMarks implements Marks {
  readonly pending: HeldNames;
  readonly kept: HeldNames;
  readonly asked: HeldNames;
  /** By kind of stream, the response, and what is owed afterwards. */
  readonly responses: { [kind in 'delta' | 'state of the world']?: { readonly sent: Sent | undefined; after: Marks } } =
    {};
  /** Which assignments lose their last ready endpoint, or bring the first one. */
  readiness: Readonly<Record<'emptied' | 'filled', ReadonlySet<string>>> | undefined;
  /** What was computed since the publication that this follows from. */
  readonly #work: object;

  private constructor({ pending, kept, asked }: Marks, work: object) {
    this.pending = pending;
    this.kept = kept;
    this.asked = asked;
    this.#work = work;
  }

  /** @param mark marks it for a client of which nothing is known. */
  static of(mark: (ledger: Ledger) => void, work: object): CommonMarks {
    const ledger = new Ledger();
    mark(ledger);
    return new CommonMarks(ledger.marks!, work);
  }

  isOf(work: object): boolean {
    return this.#work === work;
  }
}

/**
 * What a client is owed of one type, by name. A name that is in none of these maps is current at the client, as nearly
 * every name nearly always is: the maps exist only while they have entries.
 */
export class Ledger {
  readonly #pending = new CopiedOnWrite();
  readonly #kept = new CopiedOnWrite();
  readonly #asked = new CopiedOnWrite();
  #rejections: Rejections | undefined;
  #common: CommonMarks | undefined;
  #partial: Map<string, Set<Served>> | undefined;

  /** Owed names, with what the client holds of them (provided that it accepts the responses on their way). */
  get pending(): HeldNames | undefined {
    return this.#pending.names;
  }

  /** Names that left the world and are still served, unchanged. */
  get kept(): HeldNames | undefined {
    return this.#kept.names;
  }

  /** Names that must be answered once they are owed, even if the client holds the present version. */
  get asked(): Pick<HeldNames, 'has' | 'keys'> | undefined {
    return this.#asked.names;
  }

  /** Undefined as long as nothing is rejected, and again when the last rejection is over. */
  get rejections(): Rejections | undefined {
    return this.#rejections?.size === 0 ? undefined : this.#rejections;
  }

  /** As of {@link Rejections.takeNews}. */
  takeNews(): Names {
    return this.#rejections?.takeNews() ?? NONE;
  }

  clear(): void {
    this.take(NO_MARKS);
    this.#partial = this.#rejections = undefined;
  }

  /** Everything known, shared from now on; undefined if there is more than marks. */
  get marks(): Marks | undefined {
    if (this.rejections !== undefined) return undefined;
    return { pending: this.#pending.share(), kept: this.#kept.share(), asked: this.#asked.share() };
  }

  /** Nothing is known but that all is current at the client. */
  get isClean(): boolean {
    return this.pending === undefined && this.kept === undefined && this.asked === undefined && !this.#rejects;
  }

  get #rejects(): boolean {
    return this.rejections !== undefined;
  }

  /** What was taken over from others last, if it is still all that is known, and nothing has been published since. */
  commonIn(work: object): CommonMarks | undefined {
    const common = this.#common;
    if (common?.isOf(work) !== true || this.#rejects) return undefined;
    const isSame =
      (this.pending ?? NONE) === common.pending &&
      (this.kept ?? NONE) === common.kept &&
      (this.#asked.names ?? NONE) === common.asked;
    return isSame ? common : undefined;
  }

  /** Takes over what other clients are owed, too; undefined: something else has changed for this client alone. */
  share(common: CommonMarks | undefined): void {
    this.#common = common;
    if (common !== undefined) this.take(common);
  }

  /** Takes over marks that are the same for other clients. */
  take({ pending, kept, asked }: Marks): void {
    this.#pending.take(pending);
    this.#kept.take(kept);
    this.#asked.take(asked);
  }

  owe(name: string, held: Held): void {
    this.#pending.set(name, held);
  }

  /** Only these stay owed; `unanswered` names, present and earlier, must be answered once they are owed again. */
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

  /** Still owed, but no longer in any case. */
  answered(name: string): void {
    this.#asked.delete(name);
  }

  keep(name: string, held: Held): void {
    this.#kept.set(name, held);
  }

  /** Stops keeping a name. Returns what the client holds of it. */
  unkeep(name: string): Held {
    const held = this.kept?.get(name);
    this.#kept.delete(name);
    return held;
  }

  /** Stops keeping these names: their removal is owed. */
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

  /** What the client uses if it is assumed to hold this: something else if it rejected that. */
  uses(name: string, held: Held): Held {
    const version = versionOf(held);
    return version !== undefined && this.#forbids(name, version) ? this.rejections!.held(name) : held;
  }

  /** The same, in case it rejects once more what it is being sent. */
  goesBackTo(name: string, held: Held): Held {
    const version = versionOf(held);
    return version !== undefined && this.rejections?.rejected(name, version) === true
      ? this.rejections.held(name)
      : held;
  }

  /** No longer owed. */
  settled(name: string): void {
    this.#pending.delete(name);
    this.#asked.delete(name);
  }

  /** The client no longer wants it. */
  forget(name: string): void {
    this.settled(name);
    this.unkeep(name);
    this.certain(name);
    this.rejections?.forget(name);
  }

  reject(name: string, rejection: NewRejection): void {
    (this.#rejections ??= new Rejections()).reject(name, rejection);
  }

  /** It left the world, and what the client had when it last rejected some version of it is uncertain. */
  uncertain(name: string, present: Served | undefined): boolean {
    return present === undefined && this.kept?.has(name) !== true && this.rejections?.has(name) === true;
  }

  /** What this client should have, given that the world has `present`. */
  target(name: string, present: Served | undefined): Served | undefined {
    const target = present ?? this.kept?.get(name);
    return target instanceof Served ? target : undefined;
  }

  /**
   * What this client is to be given instead: the same, unless it rejected that. Undefined: nothing that it would
   * accept, or nothing whose bytes are still available.
   */
  offer(name: string, present: Served | undefined): Served | undefined {
    const target = this.target(name, present);
    if (target === undefined || !this.#forbids(name, target.version)) return target;
    const held = this.rejections?.held(name);
    return held instanceof Served && !this.#forbids(name, held.version) ? held : undefined;
  }

  /** The client has nothing under this name and accepts nothing that there is, or the name is gone. */
  lacks(name: string, present: Served | undefined): boolean {
    if (this.target(name, present) === undefined) return this.kept?.has(name) !== true;
    return this.offer(name, present) === undefined && this.rejections?.held(name) === undefined;
  }

  /** The client rejected the removal of this name. */
  rejectsRemoval(name: string): boolean {
    return this.#forbids(name, GONE);
  }

  /** For some name, something other than the world's own resource is to be offered. */
  get deviates(): boolean {
    return this.kept !== undefined || this.rejections !== undefined;
  }

  /** What the client may have applied from responses that it rejected without naming the culprit. */
  get partial(): ReadonlyMap<string, ReadonlySet<Served>> | undefined {
    return this.#partial;
  }

  took(name: string, item: Served): void {
    const partial = (this.#partial ??= new Map<string, Set<Served>>());
    const items = partial.get(name);
    if (items === undefined) partial.set(name, new Set([item]));
    // Only a client that keeps rejecting gets more than one or two: the oldest was replaced long ago.
    else if (items.add(item).size > MAX_PARTIAL) for (const oldest of items) return void items.delete(oldest);
  }

  /** The client rejected this very item. It may still have what it took from earlier responses. */
  tookNot(name: string, item: Served): void {
    const items = this.#partial?.get(name);
    if (items?.delete(item) === true && items.size === 0) this.certain(name);
  }

  /** What the client has is certain again. */
  certain(name: string): void {
    if (this.#partial?.delete(name) === true && this.#partial.size === 0) this.#partial = undefined;
  }

  certainOfAll(): void {
    this.#partial = undefined;
  }

  #forbids(name: string, version: string): boolean {
    return this.rejections?.forbids(name, version) === true;
  }
}

const MAX_PARTIAL = 8;

/** No names. There is only one such map, so it can be recognized by identity. */
export const NONE: HeldNames = new Map();
const NO_MARKS: Marks = { pending: NONE, kept: NONE, asked: NONE };

/**
 * Names of one client that may be shared with others: streams that leave a world together are owed the same thousands
 * of names, and share a map until one of them deviates.
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
