import { isDeepStrictEqual } from 'node:util';
import { isBefore } from '../kube/client/resource-version.ts';
import type { Progress } from '../status/programmed.ts';
import { joinProgress, type ReplicaReport, type ReportedObject } from '../status/replica-report.ts';
import { roomFor } from '../status/room-in-report.ts';
import { isSettled } from './kept-generations.ts';
import type { ObjectGeneration, ProgressOfObjects, Tracked } from './progress.ts';

export interface ReplicasOptions {
  readonly progress: ProgressOfObjects;
  /** RFC 3339; undefined: not yet. */
  readonly servingSince: () => string | undefined;
  /** Names of the other replicas that may serve proxies, whether or not they have reported. */
  readonly others: () => Iterable<string>;
  /** Whether the Pod of a replica exists and has not ended: those that were evicted stay. */
  readonly isRunning: (name: string) => boolean;
  /** Whether the condition of an object says that every proxy has acknowledged this generation. */
  readonly isConfirmed: (object: ObjectGeneration) => boolean;
  /** It is not in force at another replica. */
  readonly rejected: (reported: ReportedObject) => void;
}

/** @param served whether {@link Replicas.servingSince} is another time. */
type Observer = (keys: Iterable<string>, served: boolean) => void;

/** Objects of one report, by key. */
interface Known {
  readonly report: ReplicaReport;
  readonly objects: Reported;
  readonly cut: ReadonlySet<string>;
}

interface Awaited {
  readonly tracked: Tracked;
  readonly silent: Set<string>;
}

/** Each replica knows its own proxies. Together they know how far an object has come. */
export class Replicas {
  readonly #options: ReplicasOptions;
  readonly #reports = new Map<string, Known>();
  /** Replicas whose rejections do not count yet. */
  readonly #untrusted = new Set<string>();
  /** Objects about which replicas were silent when they were asked for them; by key. */
  readonly #awaited = new Map<string, Awaited>();
  #observer: Observer | undefined;

  constructor(options: ReplicasOptions) {
    this.#options = options;
  }

  /**
   * Called when another replica has reported, or is gone, with the keys of objects of which it says something else now, or
   * which it has come to know.
   */
  onChange(observer: Observer): void {
    this.#observer = observer;
  }

  /** Undefined: the replica is gone. */
  found(name: string, report: ReplicaReport | undefined): void {
    const before = this.#reports.get(name);
    const served = this.servingSince();
    this.#untrusted.delete(name);
    if (report === undefined) this.#reports.delete(name);
    else {
      this.#untrusted.add(name);
      this.#reports.set(name, {
        report,
        objects: new Map(report.objects.map((each) => [each.key, each])),
        cut: new Set(report.cut),
      });
    }
    this.committed();
    const keys = new Set([...differing(before?.objects, this.#reports.get(name)?.objects), ...this.#answered(name)]);
    this.#observer?.(keys, this.servingSince() !== served);
  }

  /** Objects that are no longer to be waited for because of a replica's silence. */
  *#answered(replica: string): Generator<string> {
    const isGone = !this.#all().has(replica);
    for (const [key, { tracked, silent }] of this.#awaited) {
      if (!silent.has(replica) || (!isGone && this.#said(replica, tracked) === undefined)) continue;
      silent.delete(replica);
      yield key;
    }
  }

  /** The object is gone. */
  forget(key: string): void {
    this.#awaited.delete(key);
  }

  /** Pods may have changed. Of this release: only those that its own namespace trusts decide what is in force. */
  committed(): void {
    if (this.#untrusted.size === 0) return;
    for (const name of this.#options.others()) {
      if (!this.#untrusted.delete(name)) continue;
      for (const reported of this.#reports.get(name)!.report.objects)
        if (reported.isRejected) this.#options.rejected(reported);
    }
  }

  /** What this replica tells the others, or undefined if there is nothing yet. */
  own(): ReplicaReport | undefined {
    const servingSince = this.#options.servingSince();
    if (servingSince === undefined) return undefined;
    const { progress } = this.#options;
    const byNamespace = Map.groupBy(progress.unconfirmed(), ({ object }) => object.namespace);
    const reported = new Map(Array.from(byNamespace, ([namespace, all]) => [namespace, this.#reported(all)]));
    return { servingSince, seen: progress.seen, ...roomFor(reported) };
  }

  *#reported(all: readonly Tracked[]): Generator<ReportedObject> {
    for (const { key, object, progress, rejected } of all) {
      if (progress.state === 'concernsNobody') continue;
      const { uid, generation } = object;
      const isRejected = rejected !== undefined && isSettled(rejected);
      yield { key, uid, generation, progress, ...(isRejected && { isRejected }) };
    }
  }

  /** Of an object, as all replicas have it. */
  progressOf(tracked: Tracked): Progress {
    const { isConfirmed } = this.#options;
    const joined = joinProgress([tracked.progress, ...this.#others(tracked)]);
    // Those that come later, and have not said anything, do not change that; proxies that reject it do. Nor does a
    // condition count that others have written while proxies of this replica have yet to answer.
    const isLatched = joined.state !== 'rejected' && tracked.isAcknowledged && isConfirmed(tracked.object);
    return isLatched ? { state: 'acknowledged', proxies: 0 } : joined;
  }

  /** Since when every replica has served. RFC 3339; undefined: some replica does not yet. */
  servingSince(): string | undefined {
    const own = this.#options.servingSince();
    const all = Array.from(this.#all(), (name) => this.#reports.get(name)?.report.servingSince);
    if (own === undefined || all.includes(undefined)) return undefined;
    return [own, ...(all as string[])].sort().at(-1);
  }

  /** The others, whether or not they have reported. */
  #all(): ReadonlySet<string> {
    const { others, isRunning } = this.#options;
    return new Set([...others(), ...[...this.#reports.keys()].filter(isRunning)]);
  }

  #others(tracked: Tracked): readonly Progress[] {
    const all = Array.from(this.#all(), (name) => [name, this.#said(name, tracked)] as const);
    const silent = new Set(all.flatMap(([name, said]) => (said === undefined ? [name] : [])));
    if (silent.size === 0) this.#awaited.delete(tracked.key);
    else this.#awaited.set(tracked.key, { tracked, silent });
    return all.map(([name, said]) => said ?? { state: 'silent', replicas: [name] });
  }

  /** Undefined: nothing. */
  #said(name: string, { key, object, version }: Tracked): Progress | undefined {
    const known = this.#reports.get(name);
    if (known === undefined) return undefined;
    const reported = known.objects.get(key);
    if (reported !== undefined)
      return reported.uid === object.uid && reported.generation === object.generation ? reported.progress : undefined;
    const { report, cut } = known;
    const isCut = cut.has(object.namespace) || cut.has('*');
    return isCut || isBefore(report.seen[object.kind] ?? '0', version) ? undefined : { state: 'concernsNobody' };
  }
}

type Reported = ReadonlyMap<string, ReportedObject>;

function* differing(a: Reported = new Map(), b: Reported = new Map()): Generator<string> {
  for (const [key, reported] of a) if (!isDeepStrictEqual(reported, b.get(key))) yield key;
  for (const key of b.keys()) if (!a.has(key)) yield key;
}
