import { ApiError, errorOfTransport } from '../client/api-error.ts';
import type { KubeApi } from '../client/client.ts';
import { afterRunning, sleep, type Clock } from '../../base/clock.ts';
import { isObject, type Json } from '../../api/json.ts';
import type { Log } from '../client/log.ts';
import { Outages } from '../client/outages.ts';
import { collectionPath, objectPath } from '../client/paths.ts';

export interface LeaderElectorOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  readonly name: string;
  /** Must differ between replicas, including those of other releases: for example the Pod's namespace and name. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** Shared by all clients of the same API server, so that each outage is logged once. */
  readonly outages?: Outages;
  /** Called when this replica becomes the leader, with the signal that ends its term. Must not block. */
  readonly onElected: (term: AbortSignal) => void;
  /**
   * Milliseconds. Others take over after this time without a renewal. A leader that could not renew for two thirds of it
   * steps down; it tries every two fifteenths. With the default, these are client-go's 15, 10 and 2 s.
   */
  readonly leaseDuration?: number;
}

/** The longest lease duration that a replica may have, and so the longest that is believed of others. Milliseconds. */
export const LONGEST_LEASE = 3_600_000;

const type = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };

/**
 * Leader election on a Lease. Every write is guarded by the resourceVersion that was read, so if two replicas see the
 * same free lease, one fails. A leader's term ends before any other can begin: `safety` before `leaseDuration` has
 * passed since the start of its last successful write, while others wait `leaseDuration` from when they saw it: that of
 * the holder, as the lease says, but no more than {@link LONGEST_LEASE}, whoever wrote it. It ends earlier, after
 * `renewDeadline`, if the server does not answer, but not because this process was too busy to read the answer. Each
 * replica only compares times of its own clock, so clocks need not agree.
 */
export class LeaderElector {
  private readonly options: Required<Omit<LeaderElectorOptions, 'outages'>>;
  private readonly renewDeadline: number;
  private readonly retryPeriod: number;
  /** How long before others may take over a term ends at the latest: what was sent by then arrives. */
  private readonly safety: number;
  private readonly outages: Outages;
  private term: AbortController | undefined;
  private cancelDeadline: () => void = () => undefined;
  /** The lease as this leader last wrote it: then it need not be read first. */
  private written: Json | undefined;
  /** The leader that was last logged. */
  private said = '';
  /** The lease as last seen, and when it was first seen in that state. */
  private seen: { readonly record: string; readonly at: number } | undefined;

  constructor({ outages, ...options }: LeaderElectorOptions) {
    this.options = { leaseDuration: 15_000, ...options };
    this.renewDeadline = (this.options.leaseDuration * 2) / 3;
    this.retryPeriod = (this.options.leaseDuration * 2) / 15;
    this.safety = this.retryPeriod;
    this.outages = outages ?? new Outages(options);
  }

  isLeader(): boolean {
    return this.term !== undefined;
  }

  /** Runs until the signal fires; then ends its term and releases the lease. */
  async run({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { clock, random } = this.options;
    while (!signal.aborted) {
      await this.round(signal);
      await sleep(clock, this.retryPeriod * (1 + 0.2 * random()), { signal });
    }
    this.endTerm();
    await this.release();
  }

  private async round(signal: AbortSignal): Promise<void> {
    const { clock, name } = this.options;
    // A hanging request must leave time for another one before the term is over.
    const late = new AbortController();
    const cancel = afterRunning(clock, this.renewDeadline / 2, () => late.abort());
    try {
      const either = AbortSignal.any([signal, late.signal]);
      let result = await this.acquireOrRenew(either);
      // Another replica wrote in between: only another read shows who holds it now.
      for (let i = 0; result === 'conflict' && i < 3; i++) result = await this.acquireOrRenew(either);
      this.outages.reached(name);
      this.outages.end(name);
      if (result === 'lost') this.endTerm();
    } catch (cause) {
      if (!signal.aborted) this.outages.begin(name, errorOfTransport(cause));
    } finally {
      cancel();
    }
  }

  private async acquireOrRenew(signal: AbortSignal): Promise<'held' | 'lost' | 'conflict'> {
    const { api, clock, identity, namespace, name } = this.options;
    const path = objectPath(type, namespace, name);
    const { written } = this;
    this.written = undefined;
    if (written !== undefined && this.term !== undefined) {
      const spec = isObject(written['spec']) ? written['spec'] : {};
      return this.write(() => api.put(path, this.claim(written, spec), { signal }));
    }
    let lease: Json;
    try {
      const found = await api.get(path, { signal });
      if (!isObject(found)) return 'conflict';
      lease = found;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 404) throw error;
      const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace } };
      return this.write(() =>
        api.post(collectionPath(type, namespace), this.claim(body, { leaseTransitions: 0 }), { signal }),
      );
    }

    const spec = isObject(lease['spec']) ? lease['spec'] : {};
    const holder = typeof spec['holderIdentity'] === 'string' ? spec['holderIdentity'] : '';
    const transitions = typeof spec['leaseTransitions'] === 'number' ? spec['leaseTransitions'] : 0;
    if (holder !== identity && holder !== '') {
      const record = JSON.stringify([holder, spec['renewTime'], spec['acquireTime'], transitions]);
      if (this.seen?.record !== record) this.seen = { record, at: clock.now() };
      const { leaseDuration } = this.options;
      const seconds = spec['leaseDurationSeconds'];
      const said = typeof seconds === 'number' ? seconds * 1000 : leaseDuration;
      const duration = Math.min(said, LONGEST_LEASE);
      if (clock.now() < this.seen.at + duration) {
        this.sayHolder(holder);
        return 'lost';
      }
    }
    const before = holder === identity ? spec : { leaseTransitions: transitions + 1 };
    return this.write(() => api.put(path, this.claim(lease, before), { signal }));
  }

  private async write(write: () => Promise<unknown>): Promise<'held' | 'conflict'> {
    const began = this.options.clock.now();
    let written: unknown;
    try {
      written = await write();
    } catch (error) {
      if (error instanceof ApiError && (error.code === 409 || error.code === 404)) return 'conflict';
      throw error;
    }
    this.renewed(began);
    if (isObject(written)) this.written = written;
    return 'held';
  }

  private claim(lease: Json, before: Json): Json {
    const { identity, leaseDuration, clock } = this.options;
    const now = microTime(clock.date());
    const spec = {
      ...(isObject(lease['spec']) ? lease['spec'] : {}),
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseDuration / 1000),
      acquireTime: before['acquireTime'] ?? now,
      renewTime: now,
      leaseTransitions: before['leaseTransitions'] ?? 0,
    };
    return { ...lease, spec };
  }

  private renewed(began: number): void {
    const { clock, leaseDuration, log, identity, namespace, name, onElected } = this.options;
    const { renewDeadline, retryPeriod } = this;
    const left = began + leaseDuration - this.safety - clock.now();
    if (left <= 0) return this.endTerm();
    this.cancelDeadline();
    const cancels = [
      clock.after(left, () => this.endTerm()),
      afterRunning(clock, Math.max(retryPeriod, renewDeadline - (clock.now() - began)), () => this.endTerm()),
    ];
    this.cancelDeadline = () => {
      for (const cancel of cancels) cancel();
    };
    if (this.term !== undefined) return;
    this.term = new AbortController();
    this.said = identity;
    log.info('Became the leader', { lease: `${namespace}/${name}`, identity });
    onElected(this.term.signal);
  }

  /** The holder may belong to another release: conditions then reflect how that release sees the objects. */
  private sayHolder(holder: string): void {
    if (holder === this.said) return;
    this.said = holder;
    const { log, namespace, name } = this.options;
    log.info('Another replica leads', { lease: `${namespace}/${name}`, holder });
  }

  private endTerm(): void {
    this.cancelDeadline();
    this.cancelDeadline = () => undefined;
    if (this.term === undefined) return;
    const { log, identity, namespace, name } = this.options;
    const { term } = this;
    this.term = undefined;
    this.said = '';
    log.info('No longer the leader', { lease: `${namespace}/${name}`, identity });
    term.abort();
  }

  /** Lets the next replica take over without waiting for the lease duration. */
  private async release(): Promise<void> {
    const { api, clock, identity, namespace, name } = this.options;
    const path = objectPath(type, namespace, name);
    const late = new AbortController();
    const cancel = clock.after(this.retryPeriod, () => late.abort());
    try {
      const lease = await api.get(path, { signal: late.signal });
      if (!isObject(lease) || !isObject(lease['spec']) || lease['spec']['holderIdentity'] !== identity) return;
      const spec = { ...lease['spec'], holderIdentity: '', leaseDurationSeconds: 1 };
      await api.put(path, { ...lease, spec }, { signal: late.signal });
    } catch {
      // The lease expires by itself.
    } finally {
      cancel();
    }
  }
}

function microTime(date: Date): string {
  return date.toISOString().replace('Z', '000Z');
}
