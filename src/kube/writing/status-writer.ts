import { isDeepStrictEqual } from 'node:util';
import { kinds, type KindName } from '../../api/kinds.ts';
import { revisionOf, type KubernetesObject } from '../../api/object.ts';
import { ApiError, errorOfTransport, isRefused } from '../client/api-error.ts';
import { Backoff } from '../../base/backoff.ts';
import type { KubeApi } from '../client/client.ts';
import { isSame } from '../client/comparison.ts';
import type { Clock } from '../../base/clock.ts';
import type { DesiredCondition } from './conditions.ts';
import { DueWrites } from './due-writes.ts';
import type { Json } from '../../api/json.ts';
import type { Log } from '../client/log.ts';
import { Outages } from '../client/outages.ts';
import { objectPath } from '../client/paths.ts';
import {
  type DesiredStatus,
  type StatusChange,
  compared,
  isNewer,
  statusChange,
  statusOf,
  versionOf,
  versionRead,
} from './status-change.ts';

export interface StatusWriterOptions {
  readonly api: KubeApi;
  /** The latest copy of the object from the server. */
  readonly latest: (kind: KindName, namespace: string, name: string) => KubernetesObject | undefined;
  /** Condition types of our own kinds that are ours alone: undesired ones are removed. */
  readonly types: readonly string[];
  /** What follows from the conditions that an object of our own kinds will have at this generation; of {@link types}. Absent: nothing. */
  readonly summary?: (conditions: readonly unknown[], generation: number) => readonly DesiredCondition[];
  /** Called after a status was written, with the new status and the previous one. */
  readonly onWritten?: (status: DesiredStatus, before: Json) => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** Shared by all clients of the same API server, so that each outage is logged once. */
  readonly outages?: Outages;
  /** Writes per second in the long run; `burst`: at once. */
  readonly rate?: number;
  readonly burst?: number;
  readonly concurrency?: number;
}

interface Entry {
  desired: DesiredStatus;
  /** The status last written: if the object differs again, somebody else wrote. */
  written: DesiredStatus | undefined;
  /** What the server stored, if it did not keep everything: Istio's older CRDs have no `observedGeneration`. */
  kept: unknown;
  readonly backoff: Backoff;
  /** Ends the wait after a failure. */
  cancel: (() => void) | undefined;
  /** It waits because the server does not take it, not because the server cannot be reached. */
  isRefused: boolean;
  /** A newer copy than the informer's. */
  fresh: KubernetesObject | undefined;
  /** Conflicts since the last write. */
  conflicts: number;
}

interface Plan extends StatusChange {
  readonly path: string;
  /** Until it fires, the object's status is ours to write. */
  readonly term: AbortSignal;
  readonly body: {
    readonly metadata: { readonly resourceVersion: string };
    readonly status: Json;
  };
}

/** After more conflicts in a row than this, we back off. */
const RACES = 2;

/**
 * Writes conditions, the generation that they are about, and automatic addresses to the API server. It remembers what each
 * object's should be, and while this replica leads for the object's revision, it writes those that differ from the object's,
 * as {@link DueWrites} does. Bounded by the number of objects.
 */
export class StatusWriter {
  private readonly options: StatusWriterOptions;
  private readonly outages: Outages;
  /** In order of last change. */
  private readonly entries = new Map<string, Entry>();
  private readonly keys = new Map<string, string>();
  /** Of the entries to check. */
  private readonly due: DueWrites;
  /** By revision; the empty string is for objects that name none. */
  private readonly terms = new Map<string, AbortSignal>();
  private readonly counts = { writes: 0, conflicts: 0, failures: 0 };

  constructor(options: StatusWriterOptions) {
    const { rate, burst, concurrency, clock, log } = options;
    this.options = options;
    this.outages = options.outages ?? new Outages({ log, clock });
    this.due = new DueWrites({
      next: (key) => this.next(key),
      ended: (key) => {
        const entry = this.entries.get(key);
        if (entry !== undefined) this.look(key, entry);
      },
      clock,
      rate,
      burst,
      concurrency,
    });
    this.outages.onReached(() => this.wake());
  }

  /** What the conditions of an object should be from now on. */
  set(key: string, desired: DesiredStatus): void {
    const known = this.entries.get(key);
    known?.cancel?.();
    const entry = known ?? this.newEntry(desired);
    Object.assign(entry, { desired, written: undefined, cancel: undefined });
    entry.backoff.reset();
    this.entries.delete(key);
    this.entries.set(key, entry);
    this.keys.set(idOf(desired), key);
    this.mark(key, entry);
  }

  /** The object is gone, or no longer ours. */
  forget(key: string): void {
    const entry = this.entries.get(key);
    if (entry === undefined) return;
    entry.cancel?.();
    this.outages.end(idOf(entry.desired));
    this.entries.delete(key);
    this.due.delete(entry.desired.namespace, key);
    if (this.keys.get(idOf(entry.desired)) === key) this.keys.delete(idOf(entry.desired));
  }

  /** The server's copy of an object changed: somebody may have overwritten our status. */
  observed(kind: KindName, namespace: string, name: string): void {
    const key = this.keys.get(`${kind}/${namespace}/${name}`);
    const entry = key === undefined ? undefined : this.entries.get(key);
    if (key !== undefined && entry !== undefined) this.look(key, entry);
  }

  /** Writes to objects of this revision until the signal fires, starting with everything that differs. */
  lead(term: AbortSignal, revision: string): void {
    if (term.aborted) return;
    this.terms.set(revision, term);
    term.addEventListener('abort', () => this.endTerm(term, revision), { once: true });
    for (const [key, entry] of this.entries) this.mark(key, entry);
  }

  /** Resolves once no write is in progress. */
  async idle(): Promise<void> {
    await this.due.idle();
  }

  stats(): {
    readonly writes: number;
    readonly conflicts: number;
    readonly failures: number;
    readonly pending: number;
  } {
    return { ...this.counts, pending: this.due.pending };
  }

  private newEntry(desired: DesiredStatus): Entry {
    const backoff = new Backoff({ base: 1_000, cap: 300_000, random: this.options.random });
    return {
      desired,
      written: undefined,
      kept: undefined,
      backoff,
      cancel: undefined,
      isRefused: false,
      fresh: undefined,
      conflicts: 0,
    };
  }

  private endTerm(term: AbortSignal, revision: string): void {
    if (this.terms.get(revision) !== term) return;
    this.terms.delete(revision);
    // Due entries of this revision are just skipped later.
    if (this.terms.size > 0) return;
    this.due.clear();
    for (const entry of this.entries.values()) {
      entry.cancel?.();
      entry.cancel = undefined;
      this.outages.end(idOf(entry.desired));
    }
  }

  /** Writes if the object differs again. If somebody keeps overwriting our status, we back off. */
  private look(key: string, entry: Entry): void {
    if (this.terms.size === 0 || this.due.isBusy(key) || entry.cancel !== undefined) return;
    if (this.toWrite(entry) === undefined) return;
    if (entry.written === entry.desired) this.park(key, entry);
    else this.mark(key, entry);
  }

  private mark(key: string, { desired }: Entry): void {
    if (this.terms.size > 0) this.due.add(desired.namespace, key);
  }

  private next(key: string): (() => Promise<void>) | undefined {
    const entry = this.entries.get(key);
    // A write in progress checks again when it is done.
    const plan = entry === undefined || entry.cancel !== undefined ? undefined : this.toWrite(entry);
    return entry === undefined || plan === undefined ? undefined : () => this.write(key, entry, plan);
  }

  /** Like {@link plan}. If nothing needs to be written, a previous failure no longer counts as an outage. */
  private toWrite(entry: Entry): Plan | undefined {
    const plan = this.plan(entry);
    if (plan === undefined) this.outages.end(idOf(entry.desired));
    return plan;
  }

  /** What to write, or undefined if nothing differs, others must write it, or the object is a different one. */
  private plan(entry: Entry): Plan | undefined {
    const { fresh } = entry;
    const { kind, namespace, name, uid, generation } = entry.desired;
    const latest = this.options.latest(kind, namespace, name);
    const type = kinds.find((known) => known.name === kind);
    if (latest === undefined || type === undefined) return undefined;
    const term = this.terms.get(revisionOf(latest));
    if (term === undefined) return undefined;
    const newer = fresh !== undefined && isNewer(fresh, latest);
    if (!newer) entry.fresh = undefined;
    const object = newer ? fresh : latest;
    if (object.metadata.uid !== uid || (object.metadata.generation ?? generation) !== generation) return undefined;
    const { types, summary } = this.options;
    const change = statusChange(object, type, entry.desired, { types, summary, now: this.now() });
    if (change === undefined) return undefined;
    // The same write would have the same result.
    const { kept, written, desired } = entry;
    if (written === desired && kept !== undefined && isSame(() => isDeepStrictEqual(change.before, kept)))
      return undefined;
    return {
      ...change,
      path: objectPath({ ...type, version: versionRead(latest, type) }, namespace, name),
      term,
      body: { metadata: { resourceVersion: versionOf(object) }, status: change.status },
    };
  }

  /** RFC 3339, in seconds. */
  private now(): string {
    const { clock } = this.options;
    return clock
      .date()
      .toISOString()
      .replace(/\.\d+Z$/, 'Z');
  }

  private async write(key: string, entry: Entry, { path, body, expected, before, said, term }: Plan): Promise<void> {
    const { api } = this.options;
    const { desired } = entry;
    try {
      const answer = compared(await api.patch(`${path}/status`, body, { signal: term }));
      this.counts.writes++;
      this.outages.end(idOf(desired));
      this.options.onWritten?.({ ...desired, said }, before);
      entry.fresh = answer;
      entry.written = desired;
      const kept = answer && statusOf(answer);
      entry.kept = isSame(() => isDeepStrictEqual(expected, kept)) ? undefined : kept;
      entry.conflicts = 0;
    } catch (cause) {
      if (term.aborted) return;
      const error = errorOfTransport(cause);
      if (error.code === 404) this.missing(key, entry);
      else if (error.code === 409) {
        this.counts.conflicts++;
        await this.readAgain(key, entry, path, term);
      } else this.failed(key, entry, error);
    }
  }

  private async readAgain(key: string, entry: Entry, path: string, term: AbortSignal): Promise<void> {
    try {
      const fresh = compared(await this.options.api.get(path, { signal: term }));
      entry.fresh = fresh;
      // Somebody else may have been faster once or twice.
      if (++entry.conflicts > RACES) this.park(key, entry);
    } catch (cause) {
      if (term.aborted) return;
      const error = errorOfTransport(cause);
      if (error.code === 404) this.missing(key, entry);
      else this.failed(key, entry, error);
    }
  }

  /** The API server says that the object does not exist. If it is wrong, it is asked again later. */
  private missing(key: string, entry: Entry): void {
    const { kind, namespace, name } = entry.desired;
    if (this.options.latest(kind, namespace, name) !== undefined) this.park(key, entry);
    else if (this.entries.get(key) === entry) this.forget(key);
  }

  private failed(key: string, entry: Entry, error: ApiError): void {
    this.counts.failures++;
    this.outages.begin(idOf(entry.desired), error);
    this.park(key, entry, error);
  }

  /** Checks the entry again after a delay that grows until the conditions change, or the server is reached again. */
  private park(key: string, entry: Entry, error?: ApiError): void {
    if (this.terms.size === 0 || this.entries.get(key) !== entry) return;
    entry.isRefused = error !== undefined && isRefused(error);
    entry.cancel = this.options.clock.after(entry.backoff.next(error?.retryAfter), () => {
      entry.cancel = undefined;
      this.mark(key, entry);
    });
  }

  /** An outage is over: what waited because of it is checked now. */
  private wake(): void {
    for (const [key, entry] of this.entries) {
      if (entry.cancel === undefined || entry.isRefused) continue;
      entry.cancel();
      entry.cancel = undefined;
      entry.backoff.reset();
      this.mark(key, entry);
    }
  }
}

function idOf({ kind, namespace, name }: DesiredStatus): string {
  return `${kind}/${namespace}/${name}`;
}
