import { type CustomKindName, restricts } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import { isProven, type Recipient } from '../ads/rollouts/recipient.ts';
import type { Concern, Rollout } from '../ads/rollouts/rollout.ts';
import type { Write } from '../cache/graph.ts';
import { deepEqual } from '../cache/equal.ts';
import type { Clock } from '../base/clock.ts';
import type { Inputs, RejectedGeneration } from '../mesh/inputs.ts';
import { generationKey, parseGenerationKey } from '../mesh/objects/in-force.ts';
import type { Progress } from '../status/programmed.ts';
import { formerObject, type KeptGenerations, mostRejections, mostRejected } from './kept-generations.ts';
import { type ObjectGeneration, type ProgressOfObjects, rejectionsIn } from './progress.ts';
import { areAll, rejectedAlong, type Rejections } from './rejections.ts';
import { areSame, isEarlier, isIn, isSameGeneration } from './same-generation.ts';
import { type Suspect, Suspects } from './suspects.ts';
import { Weighing } from './weighing.ts';

export interface GenerationsOptions {
  readonly inputs: Inputs;
  readonly progress: ProgressOfObjects;
  readonly write: (write: Write) => void;
  /** Whether a generation that was committed is in force; by `generationKey`. */
  readonly isInForce: (key: string, generation: ObjectGeneration) => boolean;
  /** Whether one proxy of each build is sent what it may reject before the others are. */
  readonly canaries: boolean;
  /** Whether a client is a gRPC library: what it rejects, an Envoy may well take. */
  readonly isLibrary: (client: Recipient) => boolean;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  readonly signal: AbortSignal;
}

/** How long proxies that have not answered are waited for before a rejection counts against the object. Milliseconds. */
const ANSWER_MS = 250;
/** How long proxies have to take an object that is tried alone: then it stays in force, and the next one is tried. */
const TRIAL_MS = 2_000;
/** For how many objects to remember what other replicas reject. Some may no longer exist here. */
const mostElsewhere = 4_096;

/**
 * Decides which generations of an object may be in force: remembers those before the newest until proxies have
 * acknowledged that, and rules out those that proxies reject, unless the object restricts proxies: whoever is shut out
 * has no vote on that. By {@link generationKey}.
 */
export class Generations {
  readonly #options: GenerationsOptions;
  /** As the source has delivered them, whether committed or not. */
  readonly #newest = new Map<string, KubernetesObject>();
  readonly #former = new Map<string, readonly KubernetesObject[]>();
  readonly #rejected = new Map<string, RejectedGeneration>();
  /** As the cluster has it, whether or not it counts. */
  readonly #kept = new Map<string, KeptGenerations>();
  /** What other replicas have last rejected of an object. */
  readonly #elsewhere = new Map<string, RejectedGeneration>();
  readonly #suspects = new Suspects();
  #trial: Trial | undefined;
  readonly #weighing: Weighing;
  /** Objects of which the last decision has not been published yet; by key. */
  readonly #unpublished = new Set<string>();
  /** Rejections to be looked at again, when those who have not answered have had time. */
  readonly #open = new Map<Concern, Open>();
  #waits = false;

  constructor(options: GenerationsOptions) {
    this.#options = options;
    const { progress, isLibrary } = options;
    const namespaceOf = (key: string): string | undefined => this.#newest.get(key)?.metadata.namespace;
    this.#weighing = new Weighing({ progress, isLibrary, namespaceOf, suspects: this.#suspects });
  }

  /** The source has delivered it. To be called before the write that says so. */
  changed(kind: CustomKindName, objectKey: string, object: KubernetesObject | undefined): void {
    const key = generationKey(kind, objectKey);
    const before = this.#newest.get(key);
    if (object === undefined) this.#newest.delete(key);
    else this.#newest.set(key, object);
    if (before === undefined) return this.#recall(key);
    if (isSameGeneration(before, object)) return;
    this.#suspects.forget(key);
    if (object === undefined || object.metadata.uid !== before.metadata.uid || isEarlier(object, before)) {
      this.#setFormer(key, []);
      this.#setRejected(key, undefined);
      if (this.#elsewhere.get(key)?.uid === before.metadata.uid) this.#elsewhere.delete(key);
      return this.#recall(key);
    }
    const known = this.#former.get(key) ?? [];
    if (this.#isAcknowledged(key, before)) this.#setFormer(key, [before]);
    else {
      // The one before may be good, the last one was acknowledged.
      const newer = this.#isInForce(key, before) ? before : known[0];
      this.#setFormer(
        key,
        [...new Set([newer, known.at(-1)])].filter((each) => each !== undefined),
      );
    }
    this.#recall(key);
  }

  /** What the cluster keeps of an object, from before a restart or from another replica. Undefined if that is nothing. */
  found(key: string, kept: KeptGenerations | undefined): void {
    if (kept === undefined) this.#kept.delete(key);
    else this.#kept.set(key, kept);
    this.#recall(key);
  }

  /** Another replica has ruled a generation out. */
  rejectedElsewhere(key: string, rejected: RejectedGeneration): void {
    this.#elsewhere.delete(key);
    this.#elsewhere.set(key, rejected);
    const [oldest] = this.#elsewhere.keys();
    if (this.#elsewhere.size > mostElsewhere && oldest !== undefined) this.#elsewhere.delete(oldest);
    this.#recall(key);
  }

  /** To be called with every commit before it goes to proxies. */
  published(): void {
    const { inputs, clock } = this.#options;
    for (const key of this.#unpublished) {
      if (!deepEqual(inputs.rejectedGenerations.get(key), this.#rejected.get(key))) continue;
      this.#unpublished.delete(key);
      for (const open of this.#open.values()) if (open.isShared) open.until = clock.now() + ANSWER_MS;
      if (this.#trial?.suspect.key === key) this.#trial.until ??= clock.now() + TRIAL_MS;
    }
  }

  /** How far these objects have come has changed. */
  progressed(keys: ReadonlySet<string>): void {
    for (const key of keys) {
      const newest = this.#newest.get(key);
      if (newest === undefined || !this.#isAcknowledged(key, newest)) continue;
      this.#setFormer(key, []);
      this.#setRejected(key, undefined);
      this.#suspects.forget(key);
    }
    // Many of them may have changed the same for the same clients.
    const concerns = new Set<Concern>();
    for (const key of keys)
      for (const each of this.#options.progress.rollouts.get(key)?.concerns ?? []) concerns.add(each);
    for (const concern of concerns) if (concern.rejections.size > 0) this.#judge(concern);
    if (this.#isTrying) this.#tryNext();
  }

  /**
   * A rejection is first a fact about one proxy. It is one about the object if no proxy takes what it has changed; and if
   * the proxy may have had reasons of its own, only when another one says the same. Proxies that have not proven their
   * tenant do not matter here, and gRPC's libraries only where the object concerns no Envoy. Where all of them may as well
   * reject a restriction, which stays, the object is tried again once they have had time to take that without it.
   */
  #judge(concern: Concern): void {
    const { clock, canaries, isLibrary } = this.#options;
    const { rollouts } = this.#options.progress;
    // What the others make of it is not known before all have it.
    if (!canaries || ![...concern.rejections.keys()].some(isProven)) return void this.#open.delete(concern);
    let isOpen = false;
    for (const name of concern.rejectedNames()) {
      const own = this.#suspectsIn([...concern.changersOf(name)].map((rollout) => [rollout, concern]));
      if (own.every((each) => this.#isRejected(each))) continue;
      const opinions = concern.opinionsOn(name).proven;
      if (opinions.takers.length > 0) continue;
      const { waiting, rejections: every } = opinions;
      const open = this.#open.get(concern) ?? { until: clock.now() + ANSWER_MS, isShared: false };
      const all = [...own, ...this.#suspectsIn(rejectedAlong(every, concern.changersOf(name), rollouts))];
      const { suspects, rejections, reach, beside } = this.#weighing.weigh(own, all, every);
      if (suspects.length === 0) continue;
      const areLibraries = [...rejections.keys()].every(isLibrary);
      // What is about to go may have been all that was wrong.
      if (all.some((each) => this.#isRejected(each)))
        Object.assign(open, { until: clock.now() + ANSWER_MS, isShared: true });
      // Some may not have looked yet whether it concerns them.
      const isEarly = open.isShared || reach === 'nowhere' || areLibraries || !areAll(rejections, waiting);
      if (isEarly && clock.now() < open.until) {
        this.#open.set(concern, open);
        isOpen = true;
      } else if (reach !== 'nowhere')
        this.#rejectAll(suspects, rejections, { isHere: reach === 'here', beside, isShared: open.isShared });
    }
    if (isOpen) this.#wait();
    else this.#open.delete(concern);
  }

  /** Generations in force that may have broken a resource and may be taken back, including those about to be. */
  #suspectsIn(changes: Iterable<readonly [Rollout, Concern]>): readonly Suspect[] {
    return [...changes].flatMap(([rollout, concern]): Suspect[] => {
      const { key, restricts } = rollout;
      if (restricts) return [];
      const tracked = this.#options.progress.get(key);
      if (tracked === undefined || tracked.isDeleted || tracked.rejected !== undefined) return [];
      const { uid, generation } = tracked.object;
      // What is not committed yet may have ended it.
      const newest = this.#newest.get(key);
      if (newest === undefined || (newest.metadata.uid ?? '') !== uid) return [];
      return rollout.isAbout(concern) ? [{ key, uid, generation }] : [];
    });
  }

  /**
   * @param beside what stays in force, and may be to blame as well.
   * @param isShared what has gone out of force since may be to blame as well.
   */
  #rejectAll(
    all: readonly Suspect[],
    rejections: Rejections,
    { isHere, beside, isShared }: { isHere: boolean; beside: Suspect | undefined; isShared: boolean },
  ): void {
    const alone = all.length === 1 && beside === undefined && !isShared;
    const how = { ...(!alone && { isSuspect: true as const }), ...(isHere && { isHere: true as const }) };
    for (const each of all) this.#reject(each, rejections, how);
    if (!alone) this.#suspects.add(all, beside);
    if (this.#isTrying) this.#tryNext();
  }

  #reject({ key, uid, generation }: Suspect, rejections: Rejections, how: { isSuspect?: true; isHere?: true }): void {
    const known = this.#rejected.get(key);
    const others = known?.uid === uid ? known.generations.filter((each) => each.generation !== generation) : [];
    const rejected = {
      generation,
      ...how,
      proxies: rejections.size,
      rejections: rejectionsIn(rejections).slice(0, mostRejections),
    };
    this.#setRejected(key, { uid, generations: [...others, rejected].slice(-mostRejected) });
  }

  /**
   * Lets the next suspect be in force alone, once it is known of the last one whether proxies take it. Not before it has
   * been out of force: that it is back would change nothing, and nobody would be asked. Only one at a time, of all: what
   * a proxy rejects late may contain two, of which one has gone meanwhile.
   */
  #tryNext(): void {
    const { clock } = this.#options;
    if (this.#trial !== undefined && this.#isUndecided(this.#trial)) return this.#wait();
    this.#trial = undefined;
    const { first } = this.#suspects;
    if (first !== undefined && this.#unpublished.has(first.key)) return this.#wait();
    const next = this.#suspects.next();
    if (next === undefined) return;
    this.#pardon(next);
    this.#trial = { suspect: next, until: this.#unpublished.has(next.key) ? undefined : clock.now() + TRIAL_MS };
    this.#wait();
  }

  #isUndecided({ suspect, until }: Trial): boolean {
    const { clock, progress } = this.#options;
    const tracked = progress.get(suspect.key);
    const isNewest = tracked?.object.uid === suspect.uid && tracked.object.generation === suspect.generation;
    if (!isNewest || this.#isRejected(suspect)) return false;
    return until === undefined || (clock.now() < until && !this.#isTaken(suspect, tracked.progress));
  }

  /**
   * Of rejections, what this replica knows itself counts more than what is kept, or said by others. Of former
   * generations, what is kept for the newest one does: replicas that have missed something fall back to the same.
   */
  #recall(key: string): void {
    const newest = this.#newest.get(key);
    if (newest === undefined || this.#isAcknowledged(key, newest)) return;
    const { uid = '', generation = 0 } = newest.metadata;
    const found = this.#kept.get(key);
    const kept = found !== undefined && found.object.uid === uid && found.newest <= generation ? found : undefined;
    const former = kept?.former.filter((each) => each.generation < generation) ?? [];
    const own = this.#former.get(key);
    const isBinding = own === undefined || (kept?.newest === generation && !areSame(own, former));
    if (former.length > 0 && isBinding)
      this.#setFormer(
        key,
        former.map((each) => formerObject(newest, each)),
      );
    if (!this.#options.canaries || restricts(parseGenerationKey(key).kind)) return;
    const elsewhere = this.#elsewhere.get(key);
    const said = elsewhere?.uid === uid ? elsewhere.generations.filter((each) => each.generation === generation) : [];
    const known = this.#rejected.get(key)?.generations ?? [];
    const others = [...(kept?.rejected ?? []), ...said]
      .filter((each) => each.generation <= generation && !known.some((own) => own.generation === each.generation))
      .filter((each, i, all) => all.findIndex((other) => other.generation === each.generation) === i)
      .map((each) => ({ ...each, isRecalled: true as const }));
    if (others.length === 0) return;
    this.#setRejected(key, { uid, generations: [...others, ...known].slice(-mostRejected) });
  }

  /** Somebody has acknowledged all that it changes, or it concerns nobody. */
  #isTaken({ key }: Suspect, { state }: Progress): boolean {
    if (state === 'acknowledged' || state === 'concernsNobody') return true;
    const rollout = this.#options.progress.rollouts.get(key);
    const present = [...(rollout?.concerns ?? [])].filter((each) => rollout?.isAbout(each));
    const isTaken = (concern: Concern): boolean =>
      !concern.isLook && [...concern.names.keys()].every((name) => concern.opinionsOn(name).proven.takers.length > 0);
    return present.length > 0 && present.every(isTaken);
  }

  #pardon({ key, uid, generation }: Suspect): void {
    const known = this.#rejected.get(key);
    if (known?.uid !== uid) return;
    const generations = known.generations.filter((each) => each.generation !== generation);
    this.#setRejected(key, generations.length === 0 ? undefined : { uid, generations });
  }

  #isRejected(suspect: Suspect): boolean {
    return isIn(this.#rejected.get(suspect.key), suspect);
  }

  /** By proxies of this replica. */
  #isAcknowledged(key: string, { metadata }: KubernetesObject): boolean {
    const tracked = this.#options.progress.get(key);
    return (
      tracked?.isAcknowledged === true &&
      !tracked.isRecalled &&
      tracked.object.uid === metadata.uid &&
      tracked.object.generation === metadata.generation
    );
  }

  /** What is not committed yet may be good. */
  #isInForce(key: string, { metadata }: KubernetesObject): boolean {
    const committed = this.#options.progress.get(key)?.object;
    const isSame = committed?.uid === (metadata.uid ?? '') && committed.generation === metadata.generation;
    return !isSame || this.#options.isInForce(key, committed);
  }

  #setFormer(key: string, objects: readonly KubernetesObject[]): void {
    if (objects.length === 0 && !this.#former.has(key)) return;
    const { inputs, write } = this.#options;
    if (objects.length === 0) this.#former.delete(key);
    else this.#former.set(key, objects);
    write(inputs.formerGenerations.write(key, objects.length === 0 ? undefined : { objects }));
  }

  #setRejected(key: string, rejected: RejectedGeneration | undefined): void {
    if (rejected === undefined && !this.#rejected.has(key)) return;
    const { inputs, write } = this.#options;
    if (rejected === undefined) this.#rejected.delete(key);
    else this.#rejected.set(key, rejected);
    this.#unpublished.add(key);
    write(inputs.rejectedGenerations.write(key, rejected));
  }

  get #isTrying(): boolean {
    return this.#trial !== undefined || !this.#suspects.isEmpty;
  }

  #wait(): void {
    const { clock, signal } = this.#options;
    if (this.#waits || signal.aborted) return;
    this.#waits = true;
    clock.after(ANSWER_MS, () => {
      this.#waits = false;
      if (signal.aborted) return;
      for (const concern of [...this.#open.keys()]) this.#judge(concern);
      if (this.#isTrying) this.#tryNext();
    });
  }
}

/** A suspect in force while the others are not. `until`: on the clock, known once it is published. */
interface Trial {
  readonly suspect: Suspect;
  until: number | undefined;
}

/** A concern whose rejections do not count yet. */
interface Open {
  until: number;
  /** Clients have rejected it together with what has been ruled out since. */
  isShared: boolean;
}
