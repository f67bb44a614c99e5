import { common } from '../store/names.ts';
import type { Names } from '../store/served.ts';
import { NamesByChanger } from './names-by-changer.ts';
import { type Opinions, opinionsOf } from './opinions.ts';
import { Reached } from './reached.ts';
import type { Recipient, Rejected } from './recipient.ts';
import { isSame, rejectedAmong, type RejectedByName } from './rejected-by-name.ts';
import { type About, joinRollouts, NO_ROLLOUTS, type Registry, type Rollout } from './rollout.ts';

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
