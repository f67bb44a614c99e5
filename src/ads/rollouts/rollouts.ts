import { IdentityMemo } from '../../base/identity-memo.ts';
import { Audience, type Concerns } from './opinions.ts';
import type { Names } from '../store/served.ts';
import type { Recipient } from './recipient.ts';
import { type About, type Concern, Rollout } from './rollout.ts';

export interface RolloutEvents {
  /** Calls back once, after this many milliseconds. */
  after(ms: number, work: () => void): void;
  /** Nobody waits for these any more, at least for the moment. Also called if nobody ever did. */
  settled(rollouts: ReadonlySet<Rollout>): void;
  /** What clients reject of these has changed, or clients are waited for again. */
  changed(rollouts: ReadonlySet<Rollout>): void;
}

/**
 * How long after the last acknowledgement a rollout counts as settled: a client that has acknowledged a listener may be
 * about to ask for the table that it names. Milliseconds.
 */
const SETTLE_MS = 50;

/** What nobody is waiting for, unless somebody is again soon. */
class Doubts {
  readonly concerns = new Set<Concern>();
  readonly rollouts = new Set<Rollout>();
}

/** The rollouts that are not over. An acknowledgement costs the same however many there are. */
export class Rollouts {
  readonly #events: RolloutEvents;
  readonly #open = new Map<string, Rollout>();
  /** A new one whenever other objects have rollouts. */
  epoch = {};
  /** Since the last check, and since the one before: only these have waited long enough. */
  #fresh = new Doubts();
  #due = new Doubts();
  #scheduled = false;
  #lastId = 0;
  /** Many clients may reject the same: it is found out once what is known about it. */
  readonly #about = new Map<readonly Rollout[], Map<string, About>>();
  readonly #audiences = new Map<string, Audience>();
  readonly joined = new IdentityMemo<Concern>();
  readonly #gone = new WeakSet<Recipient>();

  constructor(events: RolloutEvents) {
    this.#events = events;
  }

  get size(): number {
    return this.#open.size;
  }

  get(key: string): Rollout | undefined {
    return this.#open.get(key);
  }

  /**
   * Also for a rollout that is open already: what it changed before is not acknowledged yet.
   * @param restricts the object restricts clients.
   */
  begin(key: string, restricts = false): Rollout {
    let rollout = this.#open.get(key);
    if (rollout === undefined) {
      this.#open.set(key, (rollout = new Rollout(key, this, restricts)));
      this.epoch = {};
    }
    rollout.isDecided = false;
    this.#due.rollouts.delete(rollout);
    this.#fresh.rollouts.add(rollout);
    this.#schedule();
    return rollout;
  }

  /** It is over. */
  forget(key: string): void {
    const rollout = this.#open.get(key);
    if (rollout === undefined) return;
    rollout.end();
    this.#open.delete(key);
    this.epoch = {};
  }

  /** The open rollouts of the objects with these keys. Costs as much as the smaller of the two. */
  among(keys: Names): readonly Rollout[] {
    const found: Rollout[] = [];
    if (keys.size > this.#open.size) {
      for (const [key, rollout] of this.#open) if (keys.has(key)) found.push(rollout);
      return found;
    }
    for (const key of keys.keys()) {
      const rollout = this.#open.get(key);
      if (rollout !== undefined) found.push(rollout);
    }
    return found;
  }

  emptied(concern: Concern): void {
    this.#due.concerns.delete(concern);
    this.#fresh.concerns.add(concern);
    this.#schedule();
  }

  rejected({ rollouts }: Concern): void {
    this.#events.changed(rollouts);
  }

  reopened(rollout: Rollout): void {
    this.#events.changed(new Set([rollout]));
  }

  /** A client has disconnected. */
  left(client: Recipient): void {
    this.#gone.add(client);
  }

  isGone(client: Recipient): boolean {
    return this.#gone.has(client);
  }

  nextId(): number {
    return ++this.#lastId;
  }

  outdate(): void {
    if (this.#about.size > 0) this.#about.clear();
    if (this.#audiences.size > 0) this.#audiences.clear();
  }

  about(changers: readonly Rollout[], resource: string, find: () => About): About {
    let known = this.#about.get(changers);
    if (known === undefined) this.#about.set(changers, (known = new Map<string, About>()));
    let about = known.get(resource);
    if (about === undefined) known.set(resource, (about = find()));
    return about;
  }

  /** A client may reject thousands of names in each of these. */
  audienceOf(concerns: Concerns): Audience {
    const key = concerns.map(({ id }) => id).join();
    let audience = this.#audiences.get(key);
    if (audience === undefined) this.#audiences.set(key, (audience = Audience.of(concerns)));
    return audience;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#events.after(SETTLE_MS, () => this.#check());
  }

  #check(): void {
    this.#scheduled = false;
    const { concerns, rollouts: settled } = this.#due;
    this.#due = this.#fresh;
    this.#fresh = new Doubts();
    if (this.#due.concerns.size + this.#due.rollouts.size > 0) this.#schedule();
    for (const concern of concerns) for (const rollout of concern.close()) settled.add(rollout);
    for (const rollout of settled) {
      if (rollout.isSettled) rollout.isDecided = true;
      if (!rollout.isSettled || this.#open.get(rollout.key) !== rollout) settled.delete(rollout);
    }
    if (settled.size > 0) this.#events.settled(settled);
  }
}
