import { BadRequest } from '../bad-request.ts';
import type { NameSet, NameSets } from '../store/name-set.ts';
import type { Batch } from '../store/served.ts';
import type { ResourceType } from '../types.ts';
import { MAX_NAMES, type WireNames } from '../wire/wire-read.ts';
import type { WorldView } from '../store/world.ts';

const EVERYTHING = {};
const NAMES = {};

/** Where interests are kept. */
export interface InterestContext {
  readonly sets: NameSets;
  /** A client names what it wants once; in state of the world, with every request. */
  readonly delta: boolean;
  /** IP address of the client. */
  readonly address: string;
}

/** The outcome of a request that names everything that a client wants. */
export interface Replaced {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Named again after a request that left them out and was ignored. */
  readonly again: readonly string[];
  /** The client was sent everything all along. */
  readonly sawAll: boolean;
  readonly wildcard: 'begins' | 'ends' | 'stays';
}

/** What a client has asked for of one type: names, everything, or both. */
export class Interest {
  /** Everything, whether named or not. */
  wildcard = false;
  names: NameSet;
  readonly #type: ResourceType;
  readonly #context: InterestContext;
  /** The client has named names, including `*`: from then on an empty list means none, not all. */
  #explicit = false;
  /** Names that ignored requests left out. */
  #givenUp: Set<string> | undefined;
  #gaveUpWildcard = false;

  constructor(type: ResourceType, context: InterestContext) {
    this.#type = type;
    this.#context = context;
    this.names = context.sets.empty;
  }

  get isEmpty(): boolean {
    return !this.wildcard && this.names.size === 0;
  }

  /** Identical objects for clients that have asked for the same. */
  get key(): readonly [object, object] {
    return [this.wildcard ? EVERYTHING : NAMES, this.names];
  }

  /** The same as one object, or undefined if there are both a wildcard and names. */
  get only(): object | undefined {
    if (!this.wildcard) return this.names;
    return this.names.size === 0 ? EVERYTHING : undefined;
  }

  has(name: string): boolean {
    return this.wildcard || this.names.has(name);
  }

  /** What the world has of this interest, and the names that it lacks. */
  in(view: WorldView): { batches: readonly Batch[]; missing: readonly string[] } {
    const { typeUrl } = this.#type;
    if (!this.wildcard) return view.select(typeUrl, this.names);
    const missing = [...this.names.names].filter((name) => view.resolve(typeUrl, name) === undefined);
    return { batches: view.all(typeUrl), missing };
  }

  /** Takes the first request of a stream. */
  begin(names: WireNames): void {
    this.#explicit = names.any;
    this.wildcard = names.star || (this.#type.wildcard && !names.any);
    this.#set(this.#setOf(names));
  }

  close(): void {
    this.#set(this.#context.sets.empty);
  }

  /** Delta: adds these names. Returns those that the client already sees, and the others. */
  add(names: WireNames): { again: readonly string[]; fresh: readonly string[] } {
    const added = names.strings();
    this.#explicit ||= names.any;
    const again = added.filter((name) => this.has(name));
    const fresh = added.filter((name) => !this.has(name));
    if (this.names.size + added.length > MAX_NAMES) throw new BadRequest('the stream has too many names', true);
    if (added.length > 0) this.#set(this.#context.sets.with(this.names, added, this.#context.address));
    return { again, fresh };
  }

  /** Delta. */
  remove(names: readonly string[]): void {
    if (names.length > 0) this.#set(this.#context.sets.without(this.names, names, this.#context.address));
  }

  /** State of the world: the names replace the former ones. Undefined if nothing was said. */
  replace(names: WireNames): Replaced | undefined {
    if (this.wildcard && !this.#explicit && !names.any) return undefined;
    this.#explicit ||= names.any;
    const next = this.#setOf(names);
    const before = this.names;
    const sawAll = this.wildcard && !this.#gaveUpWildcard;
    const ends = this.wildcard && !names.star;
    this.wildcard = names.star;
    const replaced: Replaced = {
      added: next === before ? [] : [...next.names].filter((name) => !before.has(name)),
      removed: next === before ? [] : [...before.names].filter((name) => !names.star && !next.has(name)),
      again: [...(this.#givenUp ?? [])].filter((name) => next.has(name)),
      sawAll,
      wildcard: ends ? 'ends' : names.star && !sawAll ? 'begins' : 'stays',
    };
    this.#givenUp = undefined;
    this.#gaveUpWildcard = false;
    this.#set(next);
    return replaced;
  }

  /**
   * State of the world: a request that answers an old response is ignored. But the client has given up what it leaves
   * out: if the next request names it again, that must be answered. And a client that has named names knows how to ask
   * for none.
   */
  unheard(names: WireNames, isOnItsWay: (name: string) => boolean): void {
    const { sets } = this.#context;
    const heard = this.#setOf(names);
    if (heard !== this.names) {
      for (const name of this.names.names) if (!heard.has(name)) (this.#givenUp ??= new Set<string>()).add(name);
    }
    // What the client asks for again before the newest response arrives, it takes from that response.
    for (const name of this.#givenUp ?? []) if (heard.has(name) && isOnItsWay(name)) this.#givenUp!.delete(name);
    sets.release(heard);
    this.#explicit ||= names.any;
    this.#gaveUpWildcard ||= this.wildcard && !names.star && this.#explicit;
  }

  #setOf(names: WireNames): NameSet {
    const { sets, address, delta } = this.#context;
    return sets.of(names, address, !delta);
  }

  /** Takes ownership of a set that is already held. */
  #set(names: NameSet): void {
    this.#context.sets.release(this.names);
    this.names = names;
  }
}
