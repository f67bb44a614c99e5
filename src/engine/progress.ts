import { type CustomKindName, kinds, restricts } from '../api/kinds.ts';
import { type KubernetesObject, sourceOfKey } from '../api/object.ts';
import type { Recipient, Rejected } from '../ads/rollouts/recipient.ts';
import type { Rollout } from '../ads/rollouts/rollout.ts';
import { Rollouts } from '../ads/rollouts/rollouts.ts';
import type { Draft, Input, Write } from '../cache/graph.ts';
import type { Clock } from '../base/clock.ts';
import { type Inputs, ONE, type RejectedGeneration } from '../mesh/inputs.ts';
import { generationKey, parseGenerationKey } from '../mesh/objects/in-force.ts';
import type { RolloutsOf } from '../mesh/publication.ts';
import type { Progress, RejectedResource } from '../status/programmed.ts';
import { rolloutsIn } from './rollouts-of-draft.ts';

/** An object, and one generation of it. */
export interface ObjectGeneration {
  readonly kind: CustomKindName;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
}

export interface ProgressOptions {
  readonly inputs: Inputs;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  /** Whether this generation is in force; by `originKey`. */
  readonly isInForce: (key: string, generation: ObjectGeneration) => boolean;
}

interface Entry {
  readonly object: ObjectGeneration;
  /** When this generation was published, on the clock. */
  readonly since: number;
  /** The resourceVersion up to which objects of its kind were known then. */
  readonly version: string;
  /** It was deleted, and proxies still have something of it. */
  isDeleted: boolean;
  acknowledged: { readonly proxies: number } | undefined;
  published: Published;
}

/** What decides what is in force of an object, as of the last publication: inputs may be ahead of what proxies know. */
interface Published {
  /** It waits for other objects. */
  readonly isWaiting: boolean;
  /** What proxies have said of this generation. */
  readonly rejected: RejectedGeneration['generations'][number] | undefined;
  /** Clients or servers still go by what a PeerAuthentication was. */
  readonly isLagging: boolean;
}

/** An object that has been published, or deleted. */
export interface Tracked {
  readonly key: string;
  readonly object: ObjectGeneration;
  readonly since: number;
  readonly version: string;
  readonly isDeleted: boolean;
  /** By all whom it concerns. */
  readonly isAcknowledged: boolean;
  /** Only its condition says so. */
  readonly isRecalled: boolean;
  /** What proxies have said of this generation, as of the last publication: then it is not in force. */
  readonly rejected: RejectedGeneration['generations'][number] | undefined;
  /** Computed whenever it is read: where many clients reject something, it costs as many steps. */
  readonly progress: Progress;
}

/**
 * Knows of every object with conditions how far its newest generation has come: which of the connected proxies have yet
 * to acknowledge what it changed. Keyed by {@link originKey}.
 */
export class ProgressOfObjects {
  readonly rollouts: Rollouts;
  readonly #options: ProgressOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #kindOf: ReadonlyMap<Input<unknown>, CustomKindName>;
  /** Inputs whose keys are those of PeerAuthentications. */
  readonly #former: readonly Input<unknown>[];
  /** Inputs whose keys are ours. */
  readonly #ofGenerations: readonly Input<unknown>[];
  /** Objects whose condition is yet to say that this replica's proxies have acknowledged them. */
  readonly #unconfirmed = new Set<string>();
  /** The oldest first. */
  readonly #deleted = new Set<string>();
  #unfollowed = 0;
  readonly #observers: ((keys: ReadonlySet<string>) => void)[] = [];
  /** Yet to be told of. */
  readonly #changed = new Set<string>();
  /** What is published now was there before this replica served anybody. */
  #isFirst = true;
  #seen: Readonly<Record<string, string>> = {};
  #isAcknowledged: (object: ObjectGeneration) => boolean = () => false;

  constructor(options: ProgressOptions) {
    this.#options = options;
    const { inputs, clock } = options;
    this.rollouts = new Rollouts({
      after: (ms, work) => void clock.after(ms, work),
      settled: (rollouts) => this.#settled(rollouts),
      changed: (rollouts) => this.#tellSoon(rollouts),
    });
    this.#former = [inputs.formerPeersOfClients, inputs.formerPeersOfServers] as readonly Input<unknown>[];
    this.#kindOf = new Map([
      ...customKinds.map((name) => [inputs.objects[name] as Input<unknown>, name] as const),
      ...this.#former.map((input) => [input, 'PeerAuthentication'] as const),
    ]);
    const { formerGenerations, rejectedGenerations, waiting } = inputs;
    this.#ofGenerations = [formerGenerations, rejectedGenerations, waiting] as readonly Input<unknown>[];
  }

  /** Called with the keys of all objects whose progress may have changed: what changes together, in one call. */
  onChange(observer: (keys: ReadonlySet<string>) => void): void {
    this.#observers.push(observer);
  }

  /** @param isAcknowledged whether the condition of an object says that every proxy has acknowledged a generation. */
  recall(isAcknowledged: (object: ObjectGeneration) => boolean): void {
    this.#isAcknowledged = isAcknowledged;
  }

  get(key: string): Tracked | undefined {
    const entry = this.#entries.get(key);
    return entry && this.#tracked(key, entry);
  }

  /** By kind, the resourceVersion up to which every object has been published. */
  get seen(): Readonly<Record<string, string>> {
    return this.#seen;
  }

  /** What not every proxy has acknowledged. */
  *unfinished(): Generator<Tracked> {
    for (const [key, entry] of this.#entries) if (entry.acknowledged === undefined) yield this.#tracked(key, entry);
  }

  /** Deleted objects that were followed no further because there were too many. */
  get unfollowed(): number {
    return this.#unfollowed;
  }

  /** What others are to know until the condition of the object says so, as far as it concerns somebody. */
  *unconfirmed(): Generator<Tracked> {
    for (const key of [...this.#unconfirmed]) {
      const tracked = this.get(key);
      if (tracked === undefined) this.#unconfirmed.delete(key);
      else if (!tracked.isDeleted) yield tracked;
    }
    for (const tracked of this.unfinished()) if (!tracked.isDeleted) yield tracked;
  }

  /** The condition of an object may have changed. */
  confirm(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.isDeleted || !this.#isAcknowledged(entry.object)) return;
    this.#unconfirmed.delete(key);
    if (entry.acknowledged === undefined && this.#recall(key, entry)) this.#tell(key);
  }

  /**
   * Others, too, may write conditions. So these do not count against what is known here: whom it concerns, and that it is
   * rejected.
   */
  #recall(key: string, entry: Entry): boolean {
    if (this.#progressOf(key, entry).state !== 'concernsNobody') return false;
    entry.acknowledged = { proxies: 0 };
    this.rollouts.forget(key);
    return true;
  }

  /** To be called with every draft before it goes to proxies. Begins the rollouts of what it writes. */
  published({ writes }: Pick<Draft, 'writes'>): void {
    for (const write of writes) {
      const key = this.#keyOf(write);
      if (key === undefined) continue;
      if (!this.#former.includes(write.input) && !this.#ofGenerations.includes(write.input)) this.#note(key, write);
      const entry = this.#entries.get(key);
      if (entry === undefined) continue;
      const wasRejected = entry.published.rejected !== undefined;
      entry.published = this.#published(key, entry.object);
      const isRejected = entry.published.rejected !== undefined;
      if (isRecalled(entry) && isRejected) entry.acknowledged = undefined;
      if (entry.acknowledged !== undefined) continue;
      const rollout = this.rollouts.begin(key, restricts(entry.object.kind));
      if (isRejected !== wasRejected) rollout.reconsider();
    }
    const { versions } = this.#options.inputs;
    if (writes.some(({ input }) => input === versions)) this.#seen = Object.fromEntries(versions.entries());
    this.#isFirst = false;
  }

  /** Which rollouts the changes of a draft are part of. */
  rolloutsIn(draft: Pick<Draft, 'causesOf' | 'writes'>): RolloutsOf {
    return rolloutsIn(draft, this.rollouts, this.#keyOf);
  }

  #note(key: string, { value }: Write): void {
    const known = this.#entries.get(key);
    if (value === undefined) {
      if (known === undefined) return;
      // Whether or not everybody has it: now they are to give it up.
      this.#entries.set(key, { ...known, since: this.#now(), isDeleted: true, acknowledged: undefined });
      this.#deleted.delete(key);
      this.#deleted.add(key);
      this.#followLess();
      return;
    }
    this.#deleted.delete(key);
    // The inputs of objects contain nothing else.
    const { kind, metadata } = value as KubernetesObject & { readonly kind: CustomKindName };
    const { namespace = '', name, uid = '', generation = 0 } = metadata;
    const object: ObjectGeneration = { kind, namespace, name, uid, generation };
    if (known?.isDeleted === false && known.object.uid === uid && known.object.generation === generation) return;
    const version = this.#options.inputs.versions.get(kind) ?? '0';
    const published = this.#published(key, object);
    const entry: Entry = { object, since: this.#now(), version, isDeleted: false, acknowledged: undefined, published };
    this.#entries.set(key, entry);
    this.#unconfirmed.delete(key);
    this.rollouts.get(key)?.restart();
    if (this.#isFirst && this.#isAcknowledged(object)) this.#recall(key, entry);
    this.#tell(key);
  }

  /** Nobody waits for a condition of these. */
  #followLess(): void {
    for (const oldest of this.#deleted) {
      if (this.#deleted.size <= MOST_DELETED) return;
      this.#unfollowed++;
      this.#forgetDeleted(oldest);
    }
  }

  #forgetDeleted(key: string): void {
    this.#deleted.delete(key);
    this.#entries.delete(key);
    this.rollouts.forget(key);
  }

  #settled(rollouts: ReadonlySet<Rollout>): void {
    const counts = new Map<string, number>();
    const changed = new Set<string>();
    for (const rollout of rollouts) {
      const { key } = rollout;
      const entry = this.#entries.get(key);
      if (entry === undefined || entry.published.isLagging) continue;
      const proxies = this.#isInForce(key, entry) ? rollout.reached(counts) : 0;
      if (entry.isDeleted) this.#forgetDeleted(key);
      else if (proxies > 0) {
        entry.acknowledged = { proxies };
        if (!this.#isAcknowledged(entry.object)) this.#unconfirmed.add(key);
        this.rollouts.forget(key);
      } else if (this.#isAcknowledged(entry.object)) this.#recall(key, entry);
      changed.add(key);
    }
    if (changed.size > 0) this.#tellAll(changed);
  }

  /** A client's answer changes what is known of several objects, one after the other; and many clients may answer. */
  #tellSoon(rollouts: ReadonlySet<Rollout>): void {
    const isDue = this.#changed.size > 0;
    for (const { key } of rollouts) this.#changed.add(key);
    if (isDue || this.#changed.size === 0) return;
    this.#options.clock.after(TELL_MS, () => {
      const keys = new Set(this.#changed);
      this.#changed.clear();
      this.#tellAll(keys);
    });
  }

  #tell(key: string): void {
    this.#tellAll(new Set([key]));
  }

  #tellAll(keys: ReadonlySet<string>): void {
    for (const observer of this.#observers) observer(keys);
  }

  #tracked(key: string, entry: Entry): Tracked {
    const progressOf = (): Progress => this.#progressOf(key, entry);
    const { acknowledged, published } = entry;
    return {
      ...{ key, ...entry, isAcknowledged: acknowledged !== undefined, isRecalled: isRecalled(entry) },
      rejected: published.rejected,
      get progress() {
        return progressOf();
      },
    };
  }

  #progressOf(key: string, { since, acknowledged, published }: Entry): Progress {
    if (acknowledged !== undefined) return { state: 'acknowledged', ...acknowledged };
    const { isWaiting, rejected, isLagging } = published;
    if (isWaiting) return { state: 'underway', proxies: 0, waiting: [] };
    if (rejected !== undefined)
      return rejected.isSuspect === true
        ? { state: 'underway', proxies: 0, waiting: [] }
        : { state: 'rejected', ...rejected };
    const rollout = this.rollouts.get(key);
    if (rollout === undefined) return { state: 'concernsNobody' };
    // It takes a moment to find out which of several objects is to blame.
    const rejections = rollout.rejections({ alone: this.#now() - since < BLAME_MS });
    if (rejections.size > 0)
      return { state: 'rejected', proxies: rejections.size, rejections: rejectionsIn(rejections) };
    if (rollout.isDecided && !isLagging) return { state: 'concernsNobody' };
    const waiting = [...rollout.waiting()];
    return { state: 'underway', proxies: waiting.length, waiting };
  }

  /** Whether this generation is in force as published. Deleted objects count as if they were. */
  #isInForce(key: string, { object, isDeleted, published: { isWaiting, rejected } }: Entry): boolean {
    return isDeleted || (!isWaiting && rejected === undefined && this.#options.isInForce(key, object));
  }

  #published(key: string, { uid, generation }: ObjectGeneration): Published {
    const { waiting, rejectedGenerations } = this.#options.inputs;
    const rejected = rejectedGenerations.get(key);
    const { kind, objectKey } = parseGenerationKey(key);
    return {
      isWaiting: waiting.get(key) !== undefined,
      rejected: rejected?.uid === uid ? rejected.generations.find((each) => each.generation === generation) : undefined,
      isLagging: kind === 'PeerAuthentication' && this.#former.some((input) => input.get(objectKey) !== undefined),
    };
  }

  readonly #keyOf = ({ input, key }: Write): string | undefined => {
    if (this.#ofGenerations.includes(input)) return key;
    const kind = this.#kindOf.get(input);
    const isOwn = kind && sourceOfKey(key) === this.#options.inputs.options.get(ONE)?.clusterId;
    return isOwn ? generationKey(kind, key) : undefined;
  };

  #now(): number {
    return this.#options.clock.now();
  }
}

function isRecalled({ acknowledged }: Entry): boolean {
  return acknowledged?.proxies === 0;
}

/**
 * Deleted objects that proxies have yet to give up, and that are followed: a proxy that never answers holds all of them.
 * Of the oldest ones beyond that, only their number is known.
 */
const MOST_DELETED = 4_096;

/** How long after an answer of a client others are told of it. Milliseconds. */
const TELL_MS = 50;
/** How long only a rejection of what nobody else has changed is held against an object. Milliseconds. */
const BLAME_MS = 8_000;

/** Of each proxy, its words. */
export function rejectionsIn(rejections: ReadonlyMap<Recipient, Rejected>): readonly RejectedResource[] {
  return Array.from(rejections, ([{ nodeId, build }, { typeUrl, name, message }]) => {
    return { nodeId, build, typeUrl, name, message };
  });
}

const customKinds = kinds.filter(({ custom }) => custom).map(({ name }) => name as CustomKindName);
