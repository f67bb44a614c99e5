import type { Clock } from '../base/clock.ts';
import type { Verdict } from '../mesh/findings/conditions.ts';
import type { Condition } from '../status/conditions.ts';
import { type Progress, programmedCondition } from '../status/programmed.ts';
import type { ProgressOfObjects } from './progress.ts';
import type { Replicas } from './replicas.ts';

export interface ObjectStatusesOptions {
  readonly progress: Pick<ProgressOfObjects, 'get' | 'onChange'>;
  readonly clock: Pick<Clock, 'now' | 'date' | 'after'>;
  /** What the replicas know together. */
  readonly replicas: Pick<Replicas, 'progressOf' | 'servingSince' | 'onChange' | 'forget'>;
  /** What the status of an object should say from now on. */
  readonly set: (key: string, status: Verdict) => void;
  readonly forget: (key: string) => void;
  readonly signal: AbortSignal;
}

/** Most changes are acknowledged this soon, and most newcomers: then the status is written once. Milliseconds. */
const PATIENCE_MS = 500;
/** A replica that has not reported about an object for this long is named. Milliseconds. */
const SILENT_MS = 10_000;
/** How often a status says who has not acknowledged something yet. Milliseconds. */
const RENEW_MS = 10_000;
/** Proxies that lost their control plane are back after this long: Envoy waits at most 30 s. Milliseconds. */
const RETURN_MS = 45_000;

const acceptedIn = (conditions: readonly Condition[]): Condition => conditions.find(({ type }) => type === 'Accepted')!;

/** How often it is looked whether something is due. Milliseconds. */
const LOOK_MS = 250;

/**
 * What the status of each object should say: the verdict of the graph, and how far proxies have followed. Never once for
 * each acknowledgement: when something is decided, and now and then while it is not.
 */
export class ObjectStatuses {
  readonly #options: ObjectStatusesOptions;
  readonly #verdicts = new Map<string, Verdict>();
  /** When there may be something else to say although nothing has happened, by key, on the clock. */
  readonly #due = new Map<string, number>();
  /** Since when these have been under way without a pause, on the clock: also again, when somebody has connected. */
  readonly #underway = new Map<string, number>();
  #cancel: (() => void) | undefined;

  constructor(options: ObjectStatusesOptions) {
    this.#options = options;
    options.progress.onChange((keys) => keys.forEach((key) => this.#look(key)));
    options.replicas.onChange((keys, served) => {
      for (const key of new Set([...keys, ...(served ? this.#due.keys() : [])])) this.#look(key);
    });
    options.signal.addEventListener('abort', () => this.#cancel?.(), { once: true });
  }

  /** By `originKey`; undefined: the object is gone. */
  judged(key: string, verdict: Verdict | undefined): void {
    if (verdict !== undefined) {
      this.#verdicts.set(key, verdict);
      this.#look(key);
      return;
    }
    this.#verdicts.delete(key);
    this.#due.delete(key);
    this.#underway.delete(key);
    this.#options.replicas.forget(key);
    this.#options.forget(key);
  }

  #look(key: string): void {
    const verdict = this.#verdicts.get(key);
    if (verdict === undefined) return;
    const now = this.#options.clock.now();
    const wait = this.#say(key, verdict, now);
    if (wait === Infinity) this.#due.delete(key);
    else this.#due.set(key, now + wait);
    if (this.#due.size > 0) this.#wait();
  }

  /** Returns after how many milliseconds there may be something else to say. */
  #say(key: string, verdict: Verdict, now: number): number {
    const { progress: of, set } = this.#options;
    const { generation, uid } = verdict;
    const tracked = of.get(key);
    if (tracked?.object.uid !== uid || tracked.object.generation !== generation) {
      set(key, verdict);
      return Infinity;
    }
    const known = this.#options.replicas.progressOf(tracked);
    const age = now - tracked.since;
    const isSilent = known.state === 'silent';
    const progress: Progress = isSilent && age < SILENT_MS ? { state: 'underway', proxies: 0, waiting: [] } : known;
    const waited = Math.min(age, this.#underwayFor(key, progress, now));
    const isAccepted = verdict.said.some(({ conditions }) => acceptedIn(conditions).status === 'True');
    if (progress.state === 'underway' && waited < PATIENCE_MS && isAccepted) return PATIENCE_MS - waited;
    const missing = this.#missingMs();
    const { inForce, waits } = verdict;
    const context = { inForce, waits, since: this.#timeOf(tracked.since), isComplete: missing === 0 };
    const said = verdict.said.map(({ place, conditions }) => {
      const accepted = acceptedIn(conditions);
      return {
        place,
        conditions: [...conditions, programmedCondition(generation, progress, { ...context, accepted })],
      };
    });
    set(key, { ...verdict, said });
    if (isSilent && age < SILENT_MS) return SILENT_MS - age;
    if (isSilent || progress.state === 'underway') return RENEW_MS;
    return progress.state === 'concernsNobody' && missing > 0 ? missing : Infinity;
  }

  #underwayFor(key: string, { state }: Progress, now: number): number {
    if (state !== 'underway') {
      this.#underway.delete(key);
      return 0;
    }
    const since = this.#underway.get(key) ?? now;
    this.#underway.set(key, since);
    return now - since;
  }

  /** How long proxies may still take to come back. */
  #missingMs(): number {
    const since = this.#options.replicas.servingSince();
    if (since === undefined) return RETURN_MS;
    const { clock } = this.#options;
    const served = Math.max(0, clock.date().getTime() - Date.parse(since));
    return Math.max(0, RETURN_MS - served);
  }

  #timeOf(at: number): string {
    const { clock } = this.#options;
    const time = clock.date().getTime() - (clock.now() - at);
    return `${new Date(time).toISOString().slice(0, 19)}Z`;
  }

  #wait(): void {
    const { clock, signal } = this.#options;
    if (this.#cancel !== undefined || signal.aborted) return;
    this.#cancel = clock.after(LOOK_MS, () => {
      this.#cancel = undefined;
      const now = clock.now();
      for (const [key, at] of [...this.#due]) if (at <= now) this.#look(key);
      if (this.#due.size > 0) this.#wait();
    });
  }
}
