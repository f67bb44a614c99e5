import type { IdentityMemo } from '../../base/identity-memo.ts';
import type { Concern } from './concern.ts';
import type { Audience, Concerns, Opinions } from './opinions.ts';
import type { Recipient, Rejected } from './recipient.ts';
import { Remembered } from './remembered.ts';

/** What rollouts have in common. */
export interface Registry {
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
  /** Those with somebody waiting, and others whose end has not been noticed yet. */
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

  /** Those that have not acknowledged everything, whether or not they have rejected something. */
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
