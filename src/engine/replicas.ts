import { isBefore } from '../kube/resource-version.ts';
import type { Progress } from '../status/programmed.ts';
import { joinProgress, type ReplicaReport, type ReportedObject } from '../status/replica-report.ts';
import { roomFor } from '../status/room-in-report.ts';
import type { ObjectGeneration, ProgressOfObjects, Tracked } from './progress.ts';

export interface ReplicasOptions {
  readonly progress: ProgressOfObjects;
  /** By kind, the resourceVersion up to which this replica knows every object. */
  readonly seen: () => Readonly<Record<string, string>>;
  /** RFC 3339; undefined: not yet. */
  readonly servingSince: () => string | undefined;
  /** Names of the other replicas that may serve proxies, whether or not they have reported. */
  readonly others: () => Iterable<string>;
  /** Whether the Pod of a replica exists and has not ended: those that were evicted stay. */
  readonly isRunning: (name: string) => boolean;
  /** Whether the newest generation of an object is not in force here, because of what proxies say. */
  readonly isRejected: (tracked: Tracked) => boolean;
  /** Whether the condition of an object says that every proxy has acknowledged this generation. */
  readonly isConfirmed: (object: ObjectGeneration) => boolean;
  /** It is not in force at another replica. */
  readonly rejected: (reported: ReportedObject) => void;
}

/** Objects of one report, by key. */
interface Known {
  readonly report: ReplicaReport;
  readonly objects: ReadonlyMap<string, ReportedObject>;
  readonly cut: ReadonlySet<string>;
}

/** Each replica knows its own proxies. Together they know how far an object has come. */
export class Replicas {
  readonly #options: ReplicasOptions;
  readonly #reports = new Map<string, Known>();
  /** Those whose rejections do not count yet. */
  readonly #untrusted = new Set<string>();
  #observer: ((keys: Iterable<string>) => void) | undefined;

  constructor(options: ReplicasOptions) {
    this.#options = options;
  }

  /** Called when another replica has reported, or is gone, with the keys of objects that this may be about. */
  onChange(observer: (keys: Iterable<string>) => void): void {
    this.#observer = observer;
  }

  /** Undefined: the replica is gone. */
  found(name: string, report: ReplicaReport | undefined): void {
    const before = this.#reports.get(name);
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
    this.#observer?.(new Set([...(before?.objects.keys() ?? []), ...(report?.objects.map(({ key }) => key) ?? [])]));
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

  /** What this replica tells the others; undefined: nothing yet. */
  own(): ReplicaReport | undefined {
    const servingSince = this.#options.servingSince();
    if (servingSince === undefined) return undefined;
    const byNamespace = Map.groupBy(this.#options.progress.unconfirmed(), ({ object }) => object.namespace);
    const reported = new Map(Array.from(byNamespace, ([namespace, all]) => [namespace, this.#reported(all)]));
    return { servingSince, seen: this.#options.seen(), ...roomFor(reported) };
  }

  *#reported(all: readonly Tracked[]): Generator<ReportedObject> {
    for (const tracked of all) {
      const { key, object, progress } = tracked;
      if (progress.state === 'concernsNobody') continue;
      const isRejected = this.#options.isRejected(tracked);
      const { uid, generation } = object;
      yield { key, uid, generation, progress, ...(isRejected && { isRejected }) };
    }
  }

  /** Of an object, as all replicas have it. */
  progressOf(tracked: Tracked): Progress {
    const { isConfirmed } = this.#options;
    const joined = joinProgress([tracked.progress, ...Array.from(this.#all(), (name) => this.#at(name, tracked))]);
    // Those that come later, and have not said anything, do not change that; proxies that reject it do. Nor does a
    // condition count that others have written while proxies of this replica have yet to answer.
    const isLatched = joined.state !== 'refused' && tracked.isAcknowledged && isConfirmed(tracked.object);
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

  #at(name: string, { key, object, version }: Tracked): Progress {
    const known = this.#reports.get(name);
    const silent: Progress = { state: 'silent', replicas: [name] };
    if (known === undefined) return silent;
    const reported = known.objects.get(key);
    if (reported?.uid === object.uid && reported.generation === object.generation) return reported.progress;
    const { report, cut } = known;
    const isCut = cut.has(object.namespace) || cut.has('*');
    const isKnown = !isBefore(report.seen[object.kind] ?? '0', version);
    return isKnown && !isCut && reported === undefined ? { state: 'concernsNobody' } : silent;
  }
}
