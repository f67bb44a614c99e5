import { createHash } from 'node:crypto';
import { kinds } from '../../api/kinds.ts';
import { errorOfTransport } from '../client/api-error.ts';
import { Backoff } from '../../base/backoff.ts';
import type { KubeApi } from '../client/client.ts';
import { sleep, type Clock } from '../../base/clock.ts';
import type { DesiredCondition } from './conditions.ts';
import { conditionsAt } from './entries.ts';
import { isObject, type Json } from '../../api/json.ts';
import { type Place, placeKey } from '../../api/place.ts';
import type { Log } from '../client/log.ts';
import type { Outages } from '../client/outages.ts';
import { collectionPath } from '../client/paths.ts';
import type { DesiredStatus } from './status-change.ts';
import { TokenBucket } from '../client/token-bucket.ts';

export interface EventRecorderOptions {
  readonly api: KubeApi;
  /** The reporting replica. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly outages: Outages;
  /** Events that are unsent when it fires are dropped. */
  readonly signal: AbortSignal;
  /** Events per second in the long run; `burst`: at once. */
  readonly rate?: number;
  readonly burst?: number;
  /** Maximum number of waiting Events, and of remembered Event names. */
  readonly capacity?: number;
}

/** The part of the waiting Events that may be about objects of one namespace: it does not crowd out all others. */
const SHARE = 0.1;

const type = { group: 'events.k8s.io', version: 'v1', plural: 'events' };

/** Conditions whose change to False is an Event. */
const noted: ReadonlySet<string> = new Set(['Accepted', 'Programmed', 'Valid']);

/** The API server's limit, in bytes. */
const LONGEST_NOTE = 1024;

/** What an Event is about, and what it says. */
interface Report {
  /** Reports with equal keys about one object are the same one. */
  readonly key: string;
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
  };
  readonly reason: string;
  readonly message: string;
}

/** One for each place, generation and reason. */
function eventKey(generation: number, reason: string, place: Place): string {
  return place.in === 'object' ? `${generation}/${reason}` : `${generation}/${reason}/${placeKey(place)}`;
}

/**
 * Creates an Event, of type Warning, as `kubectl describe` shows it: if an object is not accepted, or rejected by
 * proxies, one per object, generation and reason; and for what else is reported about one. Events are hints: if the queue
 * is full or the server refuses one, it is dropped; the condition stays. While the server is unreachable, Events wait.
 */
export class EventRecorder {
  private readonly options: EventRecorderOptions;
  private readonly capacity: number;
  private readonly bucket: TokenBucket;
  private readonly waiting: { readonly namespace: string; readonly event: object }[] = [];
  /** Names of Events already handled, oldest first. */
  private readonly told = new Set<string>();
  private full = false;
  private sending: Promise<void> | undefined;
  private readonly backoff: Backoff;
  /** Ends the wait after a failure. */
  private again = new AbortController();

  constructor(options: EventRecorderOptions) {
    const { rate = 5, burst = 50, capacity = 1_000, clock } = options;
    this.options = options;
    this.capacity = capacity;
    this.bucket = new TokenBucket({ rate, burst, now: clock.now() });
    this.backoff = new Backoff({ base: 1_000, cap: 300_000, random: options.random });
    options.outages.onReached(() => {
      this.backoff.reset();
      this.again.abort();
      this.again = new AbortController();
    });
  }

  /** Call after this status replaced another. */
  written(status: DesiredStatus, before: Json): void {
    const { group, version, kind } = kinds.find(({ name }) => name === status.kind)!;
    const { namespace, name, uid, generation } = status;
    const object = { apiVersion: `${group}/${version}`, kind, namespace, name, uid };
    for (const { place, conditions } of status.said)
      for (const condition of conditions) {
        const { reason, message } = condition;
        const isNews = condition.status === 'False' && !saysTheSame(conditionsAt(before, place), condition);
        if (noted.has(condition.type) && isNews)
          this.report({ key: eventKey(generation, reason, place), object, reason, message });
      }
  }

  report(report: Report): void {
    const name = nameOf(report);
    if (this.told.has(name)) return;
    const { namespace } = report.object;
    const ofNamespace = this.waiting.filter((each) => each.namespace === namespace).length;
    if (this.waiting.length >= this.capacity || ofNamespace >= this.capacity * SHARE) return this.drop();
    this.remember(name);
    this.waiting.push({ namespace, event: this.eventOf(name, report) });
    this.sending ??= this.send();
  }

  /** Resolves once nothing is being sent. */
  async idle(): Promise<void> {
    await this.sending;
  }

  private async send(): Promise<void> {
    const { api, clock, outages, signal } = this.options;
    for (let next = this.waiting[0]; next !== undefined && !signal.aborted; next = this.waiting[0]) {
      const wait = this.bucket.take(clock.now());
      if (wait > 0) {
        await sleep(clock, wait, { signal });
        continue;
      }
      this.waiting.shift();
      try {
        await api.post(collectionPath(type, next.namespace), next.event, { signal });
        outages.end(type.plural);
        this.backoff.reset();
      } catch (cause) {
        if (signal.aborted) break;
        const error = errorOfTransport(cause);
        // 409: it was created before a restart, or by another replica. 404: the namespace is gone.
        if (error.code === 409 || error.code === 404) {
          outages.end(type.plural);
          continue;
        }
        outages.begin(type.plural, error);
        if (!error.retryable || error.code === 403) continue;
        // At the end of the queue: the server may fail for this Event only.
        this.waiting.push(next);
        const until = AbortSignal.any([signal, this.again.signal]);
        await sleep(clock, this.backoff.next(error.retryAfter), { signal: until });
      }
    }
    this.full = false;
    // In the same turn as the last check of the queue: later Events start a new run.
    this.sending = undefined;
  }

  private remember(name: string): void {
    this.told.add(name);
    const [oldest] = this.told;
    if (this.told.size > this.capacity && oldest !== undefined) this.told.delete(oldest);
  }

  private drop(): void {
    if (!this.full) this.options.log.warn('Too many Events at once, dropping some', { waiting: this.waiting.length });
    this.full = true;
  }

  private eventOf(name: string, { object, reason, message }: Report): object {
    const { clock, identity } = this.options;
    return {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name, namespace: object.namespace },
      eventTime: clock.date().toISOString().replace('Z', '000Z'),
      type: 'Warning',
      reason,
      action: 'Reconcile',
      note: cut(message.toWellFormed()),
      regarding: object,
      reportingController: 'fairlead',
      reportingInstance: identity.slice(0, 128),
    };
  }
}

/** Whether these conditions already said so: then their writer has created the Event. */
function saysTheSame(conditions: unknown, { type, status, reason, observedGeneration }: DesiredCondition): boolean {
  const there: unknown = Array.isArray(conditions)
    ? conditions.find((c) => isObject(c) && c['type'] === type)
    : undefined;
  return (
    isObject(there) &&
    there['status'] === status &&
    there['reason'] === reason &&
    there['observedGeneration'] === observedGeneration
  );
}

/** Equal for the same report from any replica: the API server then refuses the second one. */
function nameOf({ key, object: { name, uid } }: Report): string {
  const what = createHash('sha256').update(`${uid}/${key}`).digest('hex').slice(0, 16);
  return `${name.slice(0, 200).replace(/[-.]+$/, '')}.${what}`;
}

function cut(message: string): string {
  if (Buffer.byteLength(message) <= LONGEST_NOTE) return message;
  const end = '…';
  // A cut in the middle of a character leaves U+FFFD.
  const most = LONGEST_NOTE - Buffer.byteLength(end);
  return Buffer.from(message).subarray(0, most).toString('utf8').replace(/�+$/, '') + end;
}
