import { kindKey } from '../api/keys.ts';
import { type CustomKindName, type SourceKindName, kinds } from '../api/kinds.ts';
import { type KubernetesObject, parseObjectKey } from '../api/object.ts';
import { quote } from '../api/quote.ts';
import type { Write } from '../cache/graph.ts';
import type { Clock } from '../base/clock.ts';
import type { Inputs } from '../mesh/inputs.ts';
import { generationKey } from '../mesh/objects/in-force.ts';
import { isWildcard, wildcardsOf } from '../model/host.ts';
import { type NamedObject, NameIndex } from './name-index.ts';
import {
  type Name,
  type ObjectNames,
  describeName,
  hasNames,
  hostName,
  namesOf,
  parseName,
  subjectOf,
  subsetName,
} from './object-names.ts';

/**
 * A change waits until nothing of its namespace has arrived for the first time, but no longer than the second: kubectl may
 * take a fifth of a second for each object. Milliseconds.
 */
export const WAIT_MS = { quiet: 5_000, max: 30_000 } as const;

/** How often to look for changes that have waited long enough. Milliseconds. */
const LOOK_MS = 500;

/** How many names the waiting changes of one namespace may have: each change may look up those that it is connected with. */
const MOST_WAITING_NAMES = 1_000;

export interface WaitingObjectsOptions {
  readonly domainSuffix: string;
  readonly rootNamespace: string;
  readonly inputs: Pick<Inputs, 'waiting'>;
  readonly write: (write: Write) => void;
  /** Before that, nothing waits: no proxy has anything to lose. */
  readonly isServing: () => boolean;
  readonly clock: Pick<Clock, 'now' | 'date' | 'after'>;
  readonly signal: AbortSignal;
}

/** What a source has delivered of an object. */
export interface Arrival {
  readonly kind: SourceKindName;
  /** In its collection. */
  readonly key: string;
  /** Undefined: it was deleted. */
  readonly object: KubernetesObject | undefined;
  /** Changes of other clusters do not wait. */
  readonly isRemote: boolean;
  /** Makes it known to the graph. */
  readonly apply: () => void;
}

interface Change extends Arrival {
  readonly id: string;
  readonly namespace: string;
  readonly next: NamedObject | undefined;
  readonly before: NamedObject | undefined;
  readonly namesNow: ObjectNames;
  readonly namesBefore: ObjectNames;
  /** What it is about: changes about the same thing may wait for each other. */
  readonly subjects: ReadonlySet<string>;
  /** On the clock. */
  readonly since: number;
  /** The graph knows of it. */
  isApplied: boolean;
  /** What the graph has been told that the object waits for. */
  told: string | undefined;
}

/**
 * Keeps a change from coming into force while it names something that is not there yet, or takes away what an object in
 * the same namespace still names; but not for long. So the objects of one `kubectl apply` come into force together,
 * however far apart and in whatever order they arrive, and a change for which everything is there does not wait. What
 * waits delays nothing else. In force meanwhile is what was: an earlier generation, or nothing of a new object.
 */
export class WaitingObjects {
  readonly #options: WaitingObjectsOptions;
  /** What is in force, or about to be committed. */
  readonly #index: NameIndex;
  #arrived: Arrival[] = [];
  readonly #waiting = new Map<string, Change>();
  readonly #bySubject = new Map<string, Set<Change>>();
  /** How many names the waiting changes have, by namespace. */
  readonly #sizes = new Map<string, number>();
  /** When something last arrived, by namespace; only of namespaces in which something waits. */
  readonly #arrivedAt = new Map<string, number>();
  #cancel: (() => void) | undefined;

  constructor(options: WaitingObjectsOptions) {
    this.#options = options;
    this.#index = new NameIndex(options);
    options.signal.addEventListener('abort', () => this.#cancel?.(), { once: true });
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** {@link settle} decides about all that have arrived. */
  changed(arrival: Arrival): void {
    if (hasNames(arrival.kind)) this.#arrived.push(arrival);
    else arrival.apply();
  }

  settle(): void {
    const arrived = this.#arrived;
    this.#arrived = [];
    if (arrived.length === 0) return;
    if (!this.#options.isServing()) {
      for (const arrival of arrived) {
        this.#index.set(idOf(arrival), namedObject(arrival));
        arrival.apply();
      }
      return;
    }
    const fresh = new Set<Change>();
    const subjects = new Set<string>();
    for (const arrival of arrived) {
      const change = this.#changeOf(arrival);
      const known = this.#waiting.get(change.id);
      for (const subject of change.subjects) subjects.add(subject);
      this.#forget(known);
      if (arrival.isRemote || change.subjects.size === 0) this.#release(change);
      else {
        this.#remember(change);
        fresh.add(change);
      }
      const isNews = !isSameGeneration(arrival.object, (known ?? change.before)?.object);
      if (isNews && this.#sizes.has(change.namespace)) this.#arrivedAt.set(change.namespace, this.#options.clock.now());
    }
    this.#decide(subjects, fresh);
  }

  #changeOf(arrival: Arrival): Change {
    const id = idOf(arrival);
    const { domainSuffix, clock } = this.#options;
    const known = this.#waiting.get(id);
    const before = this.#index.get(id);
    const namesNow = namesOf(arrival.kind, arrival.object, domainSuffix);
    const namesBefore = namesOf(arrival.kind, before?.object, domainSuffix);
    const names = [namesNow, namesBefore].flatMap(({ offers, needs }) => [...offers, ...needs]);
    return {
      ...arrival,
      id,
      namespace: parseObjectKey(arrival.key).namespace,
      ...{ next: namedObject(arrival), before, namesNow, namesBefore },
      subjects: new Set(names.map(subjectOf)),
      since: known?.since ?? clock.now(),
      isApplied: false,
      told: known?.told,
    };
  }

  /**
   * Lets come into force what can together, of all changes that are about these subjects or connected with such changes.
   * @param fresh those about which nothing has been decided.
   */
  #decide(subjects: Iterable<string>, fresh: ReadonlySet<Change>): void {
    const connected = this.#connected(subjects);
    for (const { id, next } of connected) this.#index.set(id, next);
    const together = new Set(connected);
    const dependents = dependentsIn(connected);
    const obstacles = new Map<Change, string>();
    for (let doubtful: Iterable<Change> = connected; ;) {
      const blocked: Change[] = [];
      for (const change of doubtful) {
        const obstacle = together.has(change) ? this.#obstacle(change) : undefined;
        if (obstacle === undefined) continue;
        obstacles.set(change, obstacle);
        blocked.push(change);
      }
      if (blocked.length === 0) break;
      for (const change of blocked) {
        together.delete(change);
        this.#index.set(change.id, change.before);
      }
      const disputed = new Set(blocked.flatMap(disputedBy));
      doubtful = new Set([...disputed].flatMap((name) => dependents.get(name) ?? []));
    }
    const forced = new Set<string>();
    for (const change of connected) {
      const obstacle = obstacles.get(change);
      if (obstacle !== undefined) {
        const isExcess = fresh.has(change) && this.#sizes.get(change.namespace)! > MOST_WAITING_NAMES;
        if (!isExcess) {
          this.#wait(change, obstacle);
          continue;
        }
        for (const subject of change.subjects) forced.add(subject);
      }
      this.#release(change);
    }
    if (forced.size > 0) this.#decide(forced, new Set());
    this.#look();
  }

  /** Why the change cannot come into force, if everything is as the index has it. */
  #obstacle({ namespace, before, namesNow, namesBefore }: Change): string | undefined {
    for (const name of namesNow.needs) {
      if (namesBefore.needs.has(name) || this.#index.has(name, namespace)) continue;
      // Without the Gateway, its routers have no routes to lose; but those that the object leaves do.
      if (before === undefined && name.startsWith('gateway ')) continue;
      return `for ${describeName(name)}, which it names`;
    }
    for (const name of namesBefore.offers) {
      if (namesNow.offers.has(name) || this.#index.has(name, namespace)) continue;
      const other = this.#index.needing(name, namespace);
      if (other === undefined) continue;
      const { kind, object } = other;
      return `until ${kind} ${quote(`${namespace}/${object.metadata.name}`)} no longer names ${describeName(name)}`;
    }
    return undefined;
  }

  #connected(subjects: Iterable<string>): ReadonlySet<Change> {
    const found = new Set<Change>();
    const seen = new Set<string>(subjects);
    let covered: ReadonlyMap<string, readonly string[]> | undefined;
    // A set may grow while one goes through it.
    for (const subject of seen) {
      // Subsets of a rule for a wildcard host are those of each host that it covers.
      if (isWildcard(subject)) for (const host of (covered ??= this.#coveredHosts()).get(subject) ?? []) seen.add(host);
      for (const change of this.#bySubject.get(subject) ?? []) {
        found.add(change);
        for (const each of change.subjects) seen.add(each);
      }
    }
    return found;
  }

  /** By wildcard, the hosts of which changes that wait look up subsets. A ServiceEntry may have hundreds of wildcards. */
  #coveredHosts(): ReadonlyMap<string, readonly string[]> {
    const hosts = new Set<string>();
    for (const { namesNow, namesBefore } of this.#waiting.values())
      for (const name of [...namesNow.needs, ...namesBefore.offers]) {
        const { kind, subject } = parseName(name);
        if (kind === 'subset') hosts.add(subject);
      }
    const found = new Map<string, string[]>();
    for (const host of hosts)
      for (const wildcard of wildcardsOf(host)) {
        const known = found.get(wildcard);
        if (known === undefined) found.set(wildcard, [host]);
        else known.push(host);
      }
    return found;
  }

  #wait(change: Change, obstacle: string): void {
    const { kind, key, object } = change;
    // An object that is deleted, or has no conditions, stays in the graph as it is.
    if (!isCustom(kind) || object === undefined) return;
    if (!change.isApplied) change.apply();
    change.isApplied = true;
    if (change.told === obstacle) return;
    change.told = obstacle;
    const { clock, inputs, write } = this.#options;
    const until = new Date(clock.date().getTime() + change.since + WAIT_MS.max - clock.now()).toISOString();
    const instead = change.before?.object;
    const waits = `Waits ${obstacle}, but not beyond ${until.slice(0, 19)}Z.`;
    write(inputs.waiting.write(generationKey(kind, key), { waits, ...(instead && { instead }) }));
  }

  /** The change comes into force. */
  #release(change: Change): void {
    const { id, kind, key, next, told } = change;
    this.#forget(change);
    this.#index.set(id, next);
    if (!change.isApplied) change.apply();
    if (told === undefined || !isCustom(kind)) return;
    this.#options.write(this.#options.inputs.waiting.write(generationKey(kind, key), undefined));
  }

  #remember(change: Change): void {
    this.#waiting.set(change.id, change);
    this.#resize(change.namespace, sizeOf(change));
    for (const subject of change.subjects) {
      const about = this.#bySubject.get(subject);
      if (about === undefined) this.#bySubject.set(subject, new Set([change]));
      else about.add(change);
    }
  }

  #forget(change: Change | undefined): void {
    if (change === undefined || this.#waiting.get(change.id) !== change) return;
    this.#waiting.delete(change.id);
    this.#resize(change.namespace, -sizeOf(change));
    for (const subject of change.subjects) {
      const about = this.#bySubject.get(subject);
      about?.delete(change);
      if (about?.size === 0) this.#bySubject.delete(subject);
    }
  }

  #resize(namespace: string, by: number): void {
    const size = (this.#sizes.get(namespace) ?? 0) + by;
    if (size > 0) this.#sizes.set(namespace, size);
    else this.#sizes.delete(namespace);
  }

  #look(): void {
    const { clock, signal } = this.#options;
    if (this.#waiting.size === 0) {
      this.#arrivedAt.clear();
      this.#cancel?.();
      this.#cancel = undefined;
    } else if (this.#cancel === undefined && !signal.aborted)
      this.#cancel = clock.after(LOOK_MS, () => {
        this.#cancel = undefined;
        this.#expire();
      });
  }

  #expire(): void {
    const now = this.#options.clock.now();
    const due = [...this.#waiting.values()].filter((change) => this.#until(change) <= now);
    const subjects = new Set(due.flatMap((change) => [...change.subjects]));
    for (const change of due) this.#release(change);
    this.#decide(subjects, new Set());
  }

  #until({ since, namespace }: Change): number {
    const arrivedAt = Math.max(since, this.#arrivedAt.get(namespace) ?? since);
    return Math.min(since + WAIT_MS.max, arrivedAt + WAIT_MS.quiet);
  }
}

function isSameGeneration(a: KubernetesObject | undefined, b: KubernetesObject | undefined): boolean {
  const { uid, generation } = a?.metadata ?? {};
  return generation !== undefined && uid === b?.metadata.uid && generation === b?.metadata.generation;
}

function idOf({ kind, key }: Arrival): string {
  return kindKey(kind, key);
}

function namedObject({ kind, object }: Arrival): NamedObject | undefined {
  return object && { kind, object };
}

/**
 * Whom it concerns that a change does not come into force, by what this disputes. By name: many that wait can be about one
 * host, and each would be looked at as often as there are others.
 */
function dependentsIn(changes: Iterable<Change>): ReadonlyMap<string, readonly Change[]> {
  const found = new Map<string, Change[]>();
  const add = (what: string, change: Change): void => {
    const known = found.get(what);
    if (known === undefined) found.set(what, [change]);
    else known.push(change);
  };
  for (const change of changes) {
    const { namesNow, namesBefore, namespace } = change;
    for (const name of namesNow.needs) {
      add(name, change);
      const { kind, subject, part } = parseName(name);
      if (kind === 'port' || kind === 'subset') add(hostName(subject), change);
      if (kind === 'subset') for (const wildcard of wildcardsOf(subject)) add(subsetName(wildcard, part), change);
    }
    for (const name of namesBefore.offers) if (!namesNow.offers.has(name)) add(keptBy(namespace, name), change);
  }
  return found;
}

/** What is offered as before, and what is still needed. */
function disputedBy({ namesNow, namesBefore, namespace }: Change): readonly string[] {
  const kept = [...namesBefore.needs].filter((name) => !namesNow.needs.has(name));
  return [...namesNow.offers, ...namesBefore.offers, ...kept.map((name) => keptBy(namespace, name))];
}

const keptBy = (namespace: string, name: Name): string => `kept ${namespace} ${name}`;

/** How many names are looked up to decide about it. */
function sizeOf({ namesNow, namesBefore }: Change): number {
  return namesNow.needs.size + namesBefore.offers.size;
}

function isCustom(kind: SourceKindName): kind is CustomKindName {
  return kinds.some(({ name, custom }) => name === kind && custom);
}
