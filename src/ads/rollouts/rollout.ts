import type { IdentityMemo } from '../../base/identity-memo.ts';
import { NamesByChanger } from './names-by-changer.ts';
import { type Audience, type Concerns, type Opinions, opinionsOf } from './opinions.ts';
import type { Recipient, Rejected } from './recipient.ts';
import { common } from '../store/names.ts';
import { isSame, rejectedAmong, type RejectedByName } from './rejected-by-name.ts';
import { Reached } from './reached.ts';
import { Remembered } from './remembered.ts';
import type { Names } from '../store/served.ts';

/** What rollouts have in common. */
interface Registry {
  /** What clients are waited for in place of the same. */
  readonly joined: IdentityMemo<Concern>;
  /** A new one whenever other objects have rollouts. */
  readonly epoch: object;
  /** Increasing. */
  nextId(): number;
  /** @param changers the same array wherever it is about the same resource. */
  about(changers: readonly Rollout[], resource: string, find: () => About): About;
  /** The same object for the same concerns. */
  audienceOf(concerns: Concerns): Audience;
  /** What is known {@link about} something may no longer be so. */
  outdate(): void;
  /** Nobody waits for this any more. */
  emptied(concern: Concern): void;
  rejected(concern: Concern): void;
  /** Nobody was waited for, and now somebody is. */
  reopened(rollout: Rollout): void;
  isGone(client: Recipient): boolean;
}

/** What there is to know about a resource, until something changes. */
export interface About {
  readonly changers: ReadonlySet<Rollout>;
  opinions: Opinions | undefined;
}

/** What one object has changed and not every client that it concerns has acknowledged. */
export class Rollout {
  /** As of `originKey`. */
  readonly key: string;
  readonly registry: Registry;
  /** The object restricts clients: none of them can delay it for others, or have it taken back. */
  readonly restricts: boolean;
  /** Concerns with somebody waiting, and others whose end has not been noticed yet. */
  readonly concerns = new Set<Concern>();
  /** How many of them count as open. */
  open = 0;
  #ended: Remembered<Concern> | undefined;
  #reconsideredAt = 0;

  constructor(key: string, registry: Registry, restricts: boolean) {
    this.key = key;
    this.registry = registry;
    this.restricts = restricts;
  }

  /** What it means for whom, as far as it is about what is in force and remembered: also where nobody waits. */
  *present(): Generator<Concern> {
    for (const concern of new Set([...this.concerns, ...(this.#ended ?? [])])) if (this.isAbout(concern)) yield concern;
  }

  /** Nobody is waiting for it. */
  get isSettled(): boolean {
    return this.open === 0;
  }

  /** Everybody has what it changed, or nobody asks any more. */
  isOver = false;

  /** Its publication has gone to everybody, and it is known whom it concerns. */
  isDecided = false;

  /** The clients that have not acknowledged everything, whether or not they have rejected something. */
  waiting(): ReadonlySet<Recipient> {
    return union([...this.concerns].map(({ waiting }) => waiting));
  }

  /**
   * Those that reject something of it now, each with the first of that.
   * @param alone only what is not the fault of another object just as well.
   */
  rejections({ alone = false } = {}): ReadonlyMap<Recipient, Rejected> {
    const found = new Map<Recipient, Rejected>();
    for (const concern of this.concerns)
      for (const recipient of concern.rejections.keys()) {
        const first = found.has(recipient) ? undefined : concern.firstRejected(this, recipient, alone);
        if (first !== undefined) found.set(recipient, first);
      }
    return found;
  }

  /** How many clients it has concerned since the last {@link restart}: of those that are gone only if nobody is left. */
  reached(known = new Map<string, number>()): number {
    const concerns = [...(this.#ended ?? []), ...this.concerns].filter(({ isLook }) => !isLook);
    // What is changed together mostly concerns the same clients.
    const key = concerns.map(({ id }) => id).join();
    let count = known.get(key);
    if (count === undefined) known.set(key, (count = this.#count(concerns)));
    return count;
  }

  #count(concerns: readonly Concern[]): number {
    const clients = new Set(concerns.flatMap(({ reached }) => [...reached]));
    let connected = 0;
    for (const client of clients) if (!this.registry.isGone(client)) connected++;
    return connected > 0 ? connected : clients.size;
  }

  /** Nobody is waiting for this part of it any more. */
  ended(concern: Concern): void {
    this.open--;
    this.concerns.delete(concern);
    if (!concern.isLook) (this.#ended ??= new Remembered()).add(concern);
  }

  /** From now on, it is about another generation. Clients that acknowledged earlier changes no longer count. */
  restart(): void {
    this.#ended = undefined;
    this.reconsider();
  }

  /** Others may remember it for a while, but not for what it knew. */
  end(): void {
    this.isOver = true;
    this.#ended = undefined;
  }

  /** From now on, another generation may be in force. What clients make of it is yet to be seen. */
  reconsider(): void {
    this.#reconsideredAt = this.registry.nextId();
    this.registry.outdate();
  }

  /** Whether this is about what is in force now. */
  isAbout({ whole }: Concern): boolean {
    return whole.id > this.#reconsideredAt;
  }
}

/**
 * What some changes mean for clients that have asked for the same: shared by all of them. Each is waited for until it has
 * acknowledged all of it, or until it is gone.
 */
export class Concern {
  readonly id: number;
  /** Names of other types mean something else. Empty: this is a look. */
  readonly typeUrl: string;
  /** By the name of a resource, the objects that changed it. */
  readonly names: ReadonlyMap<string, readonly Rollout[]>;
  readonly rollouts: ReadonlySet<Rollout>;
  readonly waiting = new Set<Recipient>();
  readonly reached: Reached;
  readonly rejections = new Map<Recipient, RejectedByName>();
  /** What this was split off from, or the oldest that it was joined from; itself if it was neither. */
  readonly whole: Concern;
  readonly #registry: Registry;
  /** What this was split into, by the rollouts of the second part. */
  #parts: Map<string, readonly [Concern, Concern]> | undefined;
  #byChanger: NamesByChanger<Rollout> | undefined;
  #isOpen = false;

  /** @param names with at least one rollout. */
  constructor(typeUrl: string, names: ReadonlyMap<string, readonly Rollout[]>, whole?: Concern) {
    this.typeUrl = typeUrl;
    this.names = names;
    this.whole = whole ?? this;
    this.rollouts = new Set([...names.values()].flat());
    const [{ registry }] = [...this.rollouts] as [Rollout];
    this.#registry = registry;
    this.reached = new Reached((client) => registry.isGone(client));
    this.id = registry.nextId();
  }

  /** For clients that have not looked yet whether a change concerns them. */
  static look(rollouts: readonly Rollout[]): Concern {
    return new Concern('', new Map([['', rollouts]]));
  }

  get isLook(): boolean {
    return this.typeUrl === '';
  }

  /** Whether an object changed this resource that restricts clients. */
  restricts(name: string): boolean {
    return this.names.get(name)?.some(({ restricts }) => restricts) === true;
  }

  begin(recipient: Recipient): void {
    this.waiting.add(recipient);
    if (!this.isLook) this.reached.add(recipient);
    this.#registry.outdate();
    if (this.#isOpen) return;
    this.#isOpen = true;
    for (const rollout of this.rollouts) {
      rollout.open++;
      rollout.concerns.add(this);
      if (!rollout.isDecided) continue;
      rollout.isDecided = false;
      this.#registry.reopened(rollout);
    }
  }

  /** The objects that have changed one of these resources, here or elsewhere, without everybody having taken it. */
  changersOf(name: string): ReadonlySet<Rollout> {
    return this.#about(name).changers;
  }

  /** By anybody. */
  rejectedNames(): ReadonlySet<string> {
    const found = new Set<string>();
    for (const rejected of this.rejections.values()) {
      if (found.size === this.names.size) break;
      for (const name of rejected.keys()) found.add(name);
    }
    return found;
  }

  /** The first of what a client rejects here that is the fault of an object; as of `#isBlamed`. */
  firstRejected(rollout: Rollout, recipient: Recipient, alone: boolean): Rejected | undefined {
    const rejected = this.rejections.get(recipient)!;
    this.#byChanger ??= new NamesByChanger(this.names);
    for (const names of this.#byChanger.of(rollout))
      for (const name of common(names, rejected)) {
        const first = rejected.get(name)!;
        if (this.#isBlamed(rollout, first, recipient, alone)) return first;
      }
    return undefined;
  }

  /**
   * Whether what a client rejects here is the fault of an object that changed it. Those are to blame that the resource
   * was made from and that are waiting for this client; if there are none, all of its changers.
   * @param alone and of no other.
   */
  #isBlamed(rollout: Rollout, { name, origins }: Rejected, recipient: Recipient, alone: boolean): boolean {
    const { changers } = this.#about(name);
    const isRejected = (concern: Concern): boolean =>
      concern.typeUrl === this.typeUrl && concern.rejections.get(recipient)?.has(name) === true;
    const isMaker = ({ key, concerns }: Rollout): boolean =>
      origins.has(key) && (concerns.has(this) || some(concerns, isRejected));
    const isOther = (changer: Rollout): boolean => changer !== rollout && isMaker(changer);
    if (isMaker(rollout)) return !alone || !some(changers, isOther);
    return (!alone || changers.size === 1) && !some(changers, isOther);
  }

  /** What all clients make of one of these resources, apart from what restricts them, whatever else each has asked for. */
  opinionsOn(name: string): Opinions {
    const about = this.#about(name);
    return (about.opinions ??= opinionsOf(
      this.typeUrl,
      name,
      [...about.changers].flatMap((changer) => (changer.restricts ? [] : [...changer.present()])),
      (concerns) => this.#registry.audienceOf(concerns),
    ));
  }

  #about(name: string): About {
    const own = this.names.get(name) ?? NO_ROLLOUTS;
    const changersIn = ({ typeUrl, names }: Concern): readonly Rollout[] =>
      typeUrl === this.typeUrl ? (names.get(name) ?? NO_ROLLOUTS) : NO_ROLLOUTS;
    return this.#registry.about(own, `${this.typeUrl} ${name}`, () => {
      const changers = new Set(own.flatMap(({ concerns }) => [...concerns].flatMap(changersIn)));
      return { changers, opinions: undefined };
    });
  }

  /** Not the end: it waits until the client takes it, or something else. */
  reject(recipient: Recipient, rejected: RejectedByName): void {
    const known = this.rejections.get(recipient);
    if (known !== undefined && isSame(known, rejected)) return;
    this.rejections.set(recipient, rejected);
    this.#registry.outdate();
    this.#registry.rejected(this);
  }

  /** The client has acknowledged it, or does not have to. */
  end(recipient: Recipient): void {
    const rejected = this.rejections.delete(recipient);
    const isLast = this.waiting.delete(recipient) && this.waiting.size === 0;
    this.#registry.outdate();
    if (rejected) this.#registry.rejected(this);
    if (isLast) this.#registry.emptied(this);
  }

  /** The client is gone, or waited for by other concerns: this one has not reached it. */
  leave(recipient: Recipient): void {
    this.reached.delete(recipient);
    this.end(recipient);
  }

  /** The same, for a client that may be waited for here already. */
  once(recipient: Recipient): Concern {
    return this.waiting.has(recipient) ? new Concern(this.typeUrl, this.names, this.whole) : this;
  }

  /** Returns the rollouts that no longer wait for anybody here, unless somebody does. */
  close(): ReadonlySet<Rollout> {
    if (this.waiting.size > 0 || !this.#isOpen) return NOTHING;
    this.#isOpen = false;
    this.#registry.outdate();
    for (const rollout of this.rollouts) rollout.ended(this);
    return this.rollouts;
  }

  /**
   * In two: what does not depend on some names, and what does, each waited for from now on instead of the whole.
   * Undefined: nothing.
   */
  split(names: Names, recipient: Recipient): readonly [free: Concern | undefined, bound: Concern | undefined] {
    const bound = new Set<Rollout>();
    for (const name of common(this.names, names)) {
      for (const each of this.names.get(name)!) bound.add(each);
      if (bound.size === this.rollouts.size) break;
    }
    if (bound.size === 0) return [this, undefined];
    if (bound.size === this.rollouts.size) return [undefined, this];
    const [a, b] = this.#split(bound);
    const parts = [a.once(recipient), b.once(recipient)] as const;
    replace([this], parts, recipient);
    return parts;
  }

  /** All of several, for clients that they are still to wait for: one object, in whatever order they are named. */
  static together(concerns: readonly Concern[]): Concern {
    const [first, second] = concerns as readonly [Concern, Concern?];
    if (second === undefined) return first;
    const sorted = concerns.toSorted((a, b) => a.id - b.id);
    return first.#registry.joined.of(sorted, () => joinedFrom(sorted));
  }

  /** One in place of several. Shared by clients in the same place. */
  static join(concerns: readonly Concern[], recipient: Recipient): Concern {
    const [first] = concerns as [Concern];
    const joined = first.#registry.joined.of(concerns, () => joinedFrom(concerns)).once(recipient);
    replace(concerns, [joined], recipient);
    return joined;
  }

  #split(bound: ReadonlySet<Rollout>): readonly [Concern, Concern] {
    const key = Array.from(bound, (rollout) => rollout.key)
      .sort()
      .join(' ');
    let parts = this.#parts?.get(key);
    if (parts !== undefined) return parts;
    parts = [this.#only((rollout) => !bound.has(rollout)), this.#only((rollout) => bound.has(rollout))];
    this.#parts ??= new Map();
    if (this.#parts.size < MOST_PARTS) this.#parts.set(key, parts);
    return parts;
  }

  #only(wanted: (rollout: Rollout) => boolean): Concern {
    const names = [...this.names].map(([name, rollouts]) => [name, rollouts.filter(wanted)] as const);
    const own = new Map(names.filter(([, rollouts]) => rollouts.length > 0));
    return new Concern(this.typeUrl, own, this.whole);
  }
}

/** Ways to split a concern that clients share. Each client may be held back by something else. */
const MOST_PARTS = 16;

function joinedFrom(concerns: readonly Concern[]): Concern {
  const names = new Map<string, readonly Rollout[]>();
  for (const concern of concerns)
    for (const [name, rollouts] of concern.names)
      names.set(name, joinRollouts(names.get(name) ?? NO_ROLLOUTS, rollouts));
  const [oldest] = concerns.map(({ whole }) => whole).sort((a, b) => a.id - b.id) as [Concern];
  return new Concern(oldest.typeUrl, names, oldest);
}

/** A client is waited for by other concerns, which know what it has rejected. */
function replace(former: readonly Concern[], by: readonly Concern[], recipient: Recipient): void {
  const rejected = former.flatMap(({ rejections }) => rejections.get(recipient) ?? []);
  for (const concern of by) {
    concern.begin(recipient);
    const own = rejectedAmong(concern.names, rejected);
    if (own.size > 0) concern.reject(recipient, own);
  }
  for (const concern of former) concern.leave(recipient);
}

function some<T>(all: Iterable<T>, is: (each: T) => boolean): boolean {
  for (const each of all) if (is(each)) return true;
  return false;
}

const NOTHING: ReadonlySet<Rollout> = new Set();
export const NO_ROLLOUTS: readonly Rollout[] = [];

export function joinRollouts(a: readonly Rollout[], b: readonly Rollout[]): readonly Rollout[] {
  if (a === b || b.length === 0) return a;
  if (a.length === 0) return b;
  return [...new Set([...a, ...b])];
}

function union<T>(sets: readonly ReadonlySet<T>[]): ReadonlySet<T> {
  const [first = new Set<T>()] = sets;
  return sets.length < 2 ? first : new Set(sets.flatMap((set) => [...set]));
}
