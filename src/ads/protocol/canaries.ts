import type { IdentityMemo } from '../../base/identity-memo.ts';
import { LEAST_LOCAL } from './local-reasons.ts';
import { Proven } from './proven.ts';
import type { Recipient } from '../rollouts/recipient.ts';
import type { Batch, Served } from '../store/served.ts';

export interface CanaryOptions {
  /** Milliseconds; only differences count. */
  readonly now: () => number;
  readonly after: (ms: number, work: () => void) => void;
  /** False: everybody is sent everything at once. */
  readonly isOn: boolean;
}

/** Others wait this long for the answer of the first. Milliseconds. */
const ANSWER_MS = 250;
/**
 * Others are sent what the first has rejected only if the world still has it after this time, one at a time: it may have
 * had reasons of its own. Those of another tenant come sooner, since one tenant does not speak for others. Milliseconds.
 */
const REFUSED_MS = 2_000;
const OTHERS_MS = 500;
/**
 * After this time, everybody is sent what is still on trial, whatever has been rejected: one tenant could reject it with
 * one client after the other. Milliseconds.
 */
const LONGEST_MS = 10_000;
/** How long who did not answer is not the first again. Milliseconds. */
const SILENT_REST_MS = 30_000;
/** The same for a tenant that has rejected what another one took. Milliseconds. */
const WRONG_REST_MS = 600_000;
/** Tenants of a build that rest; beyond that, the first of them is forgotten. */
const MAX_RESTING = 1_024;
/** Builds that are told apart. Clients choose what they say about themselves: those of further ones go without. */
const MAX_BUILDS = 64;
/** The same for builds whose first client was of one tenant: it must not take all places. */
const MAX_BUILDS_OF_TENANT = 16;

/** Rejected resources of a build that are remembered; beyond that, the oldest is forgotten. */
const MAX_REFUSED = 1_024;

/** A version of a resource that one client of a build has been sent, and the others have not. */
interface Trial {
  /** Undefined: whoever comes next and does not rest. */
  canary: Waiter | undefined;
  since: number;
  /** False: the canary is yet to be sent it. */
  isSent: boolean;
  isRejected: boolean;
  /** Not for reasons of their own. */
  readonly rejecters: Set<Waiter>;
  /** How many have rejected it for reasons of their own. */
  locals: number;
}

/** What a client of a build has rejected of a resource. */
interface Rejected {
  readonly client: Waiter;
  readonly version: string;
}

/** A client that may have to wait. */
export interface Waiter extends Recipient {
  readonly wake: () => void;
}

/** `mixed`: it depends on the resource, or on the client. */
export type SharedGate = 'open' | 'shut' | 'mixed';

interface SharedGates {
  readonly gates: IdentityMemo<SharedGate>;
  readonly from: readonly object[];
}

class Build {
  /** Of its first client. */
  readonly tenant: string;
  readonly clients = new Set<Waiter>();
  /** By resource. */
  readonly trials = new Map<Served, Trial>();
  /** By client, what it is the first to try: thousands of clients may ask for it while there are thousands of trials. */
  readonly firsts = new Map<Waiter, Set<Served>>();
  /** By `rejectedKey`, the newest last: the next version is tried by the same client, and this one by nobody else. */
  readonly rejected = new Map<string, Rejected>();
  /** What some client of this build has acknowledged. */
  readonly proven = new Proven();
  /** Batches all of whose resources are proven. */
  readonly batches = new WeakSet<Batch>();
  /** Since when something is on trial, also when it was forgotten and is tried again. */
  readonly since = new WeakMap<Served, number>();
  /** Clients that a trial holds back. */
  readonly waiting = new Set<Waiter>();
  /** Until when these are not the first, the newest last. */
  readonly restingClients = new Map<Waiter, number>();
  readonly restingTenants = new Map<string, number>();
  /** Another one whenever a trial begins or ends, or something is proven. */
  state: object = {};

  constructor(tenant: string) {
    this.tenant = tenant;
  }
}

/** What a client may be sent now, of what it is owed. */
export type Gate =
  /** Everything. */
  | 'open'
  /** Nothing. */
  | 'shut'
  /** Whether it must wait for a resource. */
  | ((item: Served) => boolean);

/**
 * What clients may reject goes to one client of a build first, and to the others when that one has taken it: a bad
 * listener, cluster or table reaches one proxy, not a fleet. Whoever has not proven its tenant does not take part: it is
 * sent everything at once.
 */
export class Canaries {
  readonly #options: CanaryOptions;
  readonly #builds = new Map<string, Build>();
  #scheduled = false;

  constructor(options: CanaryOptions) {
    this.#options = options;
  }

  join(client: Waiter): void {
    const { build, tenant } = client;
    if (!this.#options.isOn || tenant === '') return;
    let known = this.#builds.get(build);
    if (known === undefined) {
      const own = [...this.#builds.values()].filter((each) => each.tenant === tenant).length;
      if (this.#builds.size >= MAX_BUILDS || own >= MAX_BUILDS_OF_TENANT) return;
      this.#builds.set(build, (known = new Build(tenant)));
    }
    known.clients.add(client);
  }

  leave(client: Waiter): void {
    const build = this.#builds.get(client.build);
    if (build?.clients.delete(client) !== true) return;
    build.waiting.delete(client);
    build.restingClients.delete(client);
    if (build.clients.size === 0) this.#builds.delete(client.build);
    const tried = [...(build.firsts.get(client) ?? [])];
    for (const item of tried) end(build, item);
    for (const [key, rejected] of build.rejected) if (rejected.client === client) build.rejected.delete(key);
    if (tried.length === 0 && build.clients.size > 1) return;
    build.state = {};
    wake(build);
  }

  /** False: it may be sent everything. */
  holdBack(client: Waiter): boolean {
    return (this.#buildOf(client)?.clients.size ?? 0) > 1;
  }

  /**
   * What a client may be sent of some resources that it has not been sent before.
   * @param shared for clients that are owed the same: none of these objects may change.
   */
  gate(client: Waiter, items: () => Iterable<Served>, shared: SharedGates | undefined): Gate {
    const build = this.#buildOf(client);
    if (build === undefined || build.clients.size < 2) return 'open';
    if (!build.firsts.has(client)) {
      const now = this.#options.now();
      const work = (): SharedGate => gateOf(build, items(), now);
      const gate = shared === undefined ? work() : shared.gates.of([...shared.from, build.state], work);
      if (gate === 'shut') this.#wait(build, client);
      if (gate !== 'mixed') return gate;
    }
    return (item) => {
      const now = this.#options.now();
      if (isFree(build, item, now)) return false;
      const trial = build.trials.get(item) ?? begin(build, item, client, now);
      this.#lookLater();
      if (trial.canary !== client) {
        if (isHeld(build, trial, client, now)) {
          this.#wait(build, client);
          return true;
        }
        // After a silent one, everybody is sent it; after one that has rejected it, one more is.
        if (trial.isSent && !trial.isRejected) {
          if (trial.canary !== undefined) build.restingClients.set(trial.canary, now + SILENT_REST_MS);
          return false;
        }
        if (rests(build, client, now)) return false;
        setFirst(build, item, trial, client);
        trial.since = now;
        trial.isSent = false;
        trial.isRejected = false;
        build.state = {};
      }
      return false;
    };
  }

  /** What a gate lets through may have to wait for something else. */
  sent(client: Waiter, batches: readonly Batch[]): void {
    const build = this.#buildOf(client);
    for (const item of build?.firsts.get(client) ?? []) {
      const trial = build!.trials.get(item);
      if (trial?.isSent !== false || !batches.some((batch) => batch.get(item.name) === item)) continue;
      trial.since = this.#options.now();
      trial.isSent = true;
    }
  }

  accepted(client: Waiter, batches: readonly Batch[]): void {
    const build = this.#buildOf(client);
    if (build === undefined) return;
    let isNews = false;
    for (const batch of batches) {
      if (build.batches.has(batch)) continue;
      for (const item of batch.items) {
        isNews = build.proven.add(item) || isNews;
        const { rejecters = [] } = build.trials.get(item) ?? {};
        for (const rejecter of rejecters) {
          contradict(build, rejecter, client, this.#options.now());
          build.rejected.delete(rejectedKey(item));
        }
        end(build, item);
      }
      build.batches.add(batch);
    }
    // A client may ask for the same again and again: nobody is disturbed by that.
    if (!isNews) return;
    build.state = {};
    wake(build);
  }

  /** @param isLocal the client may have reasons of its own: another one is tried at once. */
  rejected(client: Waiter, items: readonly Served[], isLocal: boolean): void {
    const build = this.#buildOf(client);
    if (build === undefined) return;
    for (const item of items) {
      if (!isLocal) remember(build, item, client);
      const trial = build.trials.get(item);
      if (trial?.canary !== client) continue;
      if (!isLocal) trial.rejecters.add(client);
      if (isLocal && ++trial.locals < LEAST_LOCAL) setFirst(build, item, trial, undefined);
      trial.isRejected = true;
      build.state = {};
    }
    if (isLocal && build.waiting.size > 0) wake(build);
  }

  /** Undefined: the client does not take part. */
  #buildOf(client: Waiter): Build | undefined {
    const build = this.#builds.get(client.build);
    return build?.clients.has(client) === true ? build : undefined;
  }

  #wait({ waiting }: Build, client: Waiter): void {
    waiting.add(client);
    this.#lookLater();
  }

  /** Again and again while something is on trial: also what nobody waits for is forgotten. */
  #lookLater(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.after(ANSWER_MS, () => {
      this.#scheduled = false;
      for (const build of this.#builds.values()) {
        forget(build, this.#options.now());
        build.state = {};
        wake(build);
        if (build.trials.size > 0) this.#lookLater();
      }
    });
  }
}

/** For clients that are not trying anything themselves. */
function gateOf(build: Build, items: Iterable<Served>, now: number): SharedGate {
  let open = true;
  let shut = true;
  for (const item of items) {
    const trial = build.trials.get(item);
    if (isFree(build, item, now)) shut = false;
    else if (trial?.canary !== undefined && now - trial.since < (trial.isRejected ? OTHERS_MS : ANSWER_MS))
      open = false;
    else return 'mixed';
  }
  if (open) return 'open';
  return shut ? 'shut' : 'mixed';
}

/** Whoever asks first tries it; but of what somebody has rejected, it is that one who tries the next version. */
function begin(build: Build, item: Served, client: Waiter, now: number): Trial {
  const rejected = build.rejected.get(rejectedKey(item));
  const isRejected = rejected?.version === item.version;
  const first =
    rejected !== undefined && (isRejected || !rests(build, rejected.client, now)) ? rejected.client : client;
  const canary = isRejected || !rests(build, first, now) ? first : undefined;
  const rejecters = new Set(isRejected ? [rejected.client] : []);
  const trial: Trial = { canary: undefined, since: now, isSent: isRejected, isRejected, rejecters, locals: 0 };
  build.trials.set(item, trial);
  if (!build.since.has(item)) build.since.set(item, now);
  setFirst(build, item, trial, canary);
  build.state = {};
  return trial;
}

function setFirst({ firsts }: Build, item: Served, trial: Trial, canary: Waiter | undefined): void {
  const before = trial.canary && firsts.get(trial.canary);
  if (before?.delete(item) === true && before.size === 0) firsts.delete(trial.canary!);
  trial.canary = canary;
  if (canary === undefined) return;
  const items = firsts.get(canary);
  if (items === undefined) firsts.set(canary, new Set([item]));
  else items.add(item);
}

function end(build: Build, item: Served): void {
  const trial = build.trials.get(item);
  if (trial === undefined) return;
  setFirst(build, item, trial, undefined);
  build.trials.delete(item);
}

/** Whether a client that is not the canary must wait. */
function isHeld(build: Build, trial: Trial, client: Waiter, now: number): boolean {
  const { canary, since, isRejected, rejecters } = trial;
  if (canary === undefined) return now - since < ANSWER_MS && rests(build, client, now);
  if (!isRejected) return now - since < ANSWER_MS;
  const isAnother = ![...rejecters].some(({ tenant }) => tenant === client.tenant) && !rests(build, client, now);
  return now - since < (isAnother ? OTHERS_MS : REFUSED_MS);
}

/** Whether somebody else has to be the first. */
function rests({ restingClients, restingTenants }: Build, client: Waiter, now: number): boolean {
  return (restingClients.get(client) ?? 0) > now || (restingTenants.get(client.tenant) ?? 0) > now;
}

/** One client takes what another one has rejected. */
function contradict(build: Build, rejecter: Waiter, taker: Waiter, now: number): void {
  const { clients, restingClients, restingTenants } = build;
  const until = now + WRONG_REST_MS;
  if (rejecter.tenant === taker.tenant) {
    if (clients.has(rejecter)) restingClients.set(rejecter, until);
    return;
  }
  restingTenants.delete(rejecter.tenant);
  restingTenants.set(rejecter.tenant, until);
  for (const first of restingTenants.keys()) {
    if (restingTenants.size <= MAX_RESTING) break;
    restingTenants.delete(first);
  }
}

function remember({ rejected }: Build, item: Served, client: Waiter): void {
  const key = rejectedKey(item);
  rejected.delete(key);
  rejected.set(key, { client, version: item.version });
  for (const oldest of rejected.keys()) {
    if (rejected.size <= MAX_REFUSED) break;
    rejected.delete(oldest);
  }
}

function rejectedKey({ name, resource }: Served): string {
  return `${resource.typeUrl} ${name}`;
}

/** Trials of versions that are gone, or that everybody has by now. */
function forget(build: Build, now: number): void {
  for (const [item, { since }] of build.trials) {
    if (now - since < 2 * REFUSED_MS) continue;
    end(build, item);
    if (item.holders === 0) build.since.delete(item);
  }
}

/** Clients that must still wait are added again when their turn comes. */
function wake(build: Build): void {
  const waiting = [...build.waiting];
  build.waiting.clear();
  for (const client of waiting) client.wake();
}

/** Everybody may be sent it. */
function isFree(build: Build, item: Served, now: number): boolean {
  return build.proven.has(item) || now - (build.since.get(item) ?? now) >= LONGEST_MS;
}
