import type { Delivery } from '../protocol/delivery.ts';
import {
  ABSENT,
  type Asked,
  CDS,
  decodeFrame,
  EDS,
  encodeRequest,
  LDS,
  RDS,
  type Response,
  SECRET,
  type TestServer,
  UNREADY,
} from './world.ts';

/**
 * As much of Envoy as matters to traffic: clusters warm until their assignment comes, answers to clusters are held back
 * meanwhile, listeners wait for their tables, and old listeners route by theirs until they have drained. Nothing
 * happens by itself: responses arrive and requests leave one by one, when the test says so.
 *
 * The content of a cluster is its version; a cluster with version {@link RESOLVED} has no assignment, but warms until
 * the test says that its addresses are resolved; one with version {@link SECRET} has an assignment, and warms until the
 * test says so after that has come. The content of a listener is `version:table`, that of a table
 * `version:cluster,cluster`. A table with version {@link BAD} is rejected, without a name; some of the other tables in
 * its response are applied.
 */
export class EnvoyModel {
  readonly #server: TestServer;
  readonly #delta: boolean;
  #delivery: Delivery;
  /** Version in use. */
  readonly clusters = new Map<string, string>();
  /** Version that is waiting for its assignment. */
  readonly warming = new Map<string, string>();
  /** Names whose assignment it has. */
  readonly #assignments = new Map<string, string>();
  /** Warming clusters whose assignment has come, and whose secret has not. */
  readonly #lackingSecret = new Set<string>();
  readonly #listeners = new Map<string, string>();
  /** Newer versions whose table is missing. */
  readonly #waitingListeners = new Map<string, string>();
  /** Tables of former listeners that still drain, oldest first, once per listener. */
  readonly draining: string[] = [];
  readonly tables = new Map<string, string>();
  /** Tables of rejected responses: without any version that it accepts, it is given an empty one. */
  readonly #rejected = new Set<string>();
  readonly #requests: Asked[] = [];
  readonly #responses: Response[] = [];
  readonly #held: Response[] = [];
  readonly #nonces = new Map<string, string>();
  readonly #versions = new Map<string, string>();
  #started = false;
  /** How many of the good tables in a rejected response are applied. */
  applied = 0;
  readonly violations: string[] = [];

  constructor(server: TestServer, delivery: Delivery, delta: boolean) {
    this.#server = server;
    this.#delivery = delivery;
    this.#delta = delta;
    this.#requests.push({ typeUrl: CDS });
  }

  get delivery(): Delivery {
    return this.#delivery;
  }

  /** All clusters that warm by themselves become warm. */
  resolve(): boolean {
    const resolved = [...this.warming].filter(
      ([name, version]) => isResolved(version) || this.#lackingSecret.has(name),
    );
    for (const [name, version] of resolved) this.#becomeWarm(name, version);
    if (resolved.length > 0) this.#release();
    return resolved.length > 0;
  }

  #becomeWarm(name: string, version: string): void {
    const before = this.#assignmentsWanted();
    this.warming.delete(name);
    this.#lackingSecret.delete(name);
    this.clusters.set(name, version);
    this.#assignmentsChanged(before);
  }

  /** Names of all clusters that it knows. */
  get names(): string[] {
    return [...new Set([...this.clusters.keys(), ...this.warming.keys()])];
  }

  /** One request reaches the server. */
  send(now: number): boolean {
    const request = this.#requests.shift();
    if (request === undefined) return false;
    this.#delivery.request(encodeRequest(request, this.#delta, this.#server.hasher), now);
    return true;
  }

  /** The server writes what it may. */
  write(now: number): boolean {
    const before = this.#responses.length;
    for (let frame = this.#delivery.next(now); frame !== undefined; frame = this.#delivery.next(now)) {
      this.#responses.push(decodeFrame(frame.slices, this.#delta));
    }
    return this.#responses.length > before;
  }

  /** One response arrives. */
  receive(): boolean {
    const response = this.#responses.shift();
    if (response === undefined) return false;
    this.#nonces.set(response.typeUrl, response.nonce);
    if (response.typeUrl !== RDS) this.#versions.set(response.typeUrl, response.version);
    if (response.typeUrl === CDS) this.#takeClusters(response);
    else if (response.typeUrl === EDS) this.#takeAssignments(response);
    else if (response.typeUrl === LDS) this.#takeListeners(response);
    else this.#takeTables(response);
    this.#check(response);
    return true;
  }

  /** The oldest drain ends. */
  drain(): void {
    const before = this.#tablesWanted();
    this.draining.shift();
    this.#tablesChanged(before);
  }

  /** The connection is lost with everything that was on its way; config stays. */
  reconnect(delivery: Delivery): void {
    this.#delivery = delivery;
    this.#requests.length = this.#responses.length = this.#held.length = 0;
    this.#nonces.clear();
    const initial = (held: ReadonlyMap<string, string>): Partial<Asked> => (this.#delta ? { initial: held } : {});
    const version = (typeUrl: string): Partial<Asked> =>
      this.#delta ? {} : { version: this.#versions.get(typeUrl) ?? '' };
    const all = new Map([...this.clusters, ...this.warming]);
    const assignments = new Map([...this.#assignments].filter(([name]) => !this.warming.has(name)));
    this.#requests.push({ typeUrl: CDS, ...initial(all), ...version(CDS) });
    const assigned = this.#assignmentsWanted();
    if (assigned.length > 0)
      this.#requests.push({ typeUrl: EDS, names: assigned, ...initial(assignments), ...version(EDS) });
    if (!this.#started) return;
    const listeners = new Map([...this.#listeners, ...this.#waitingListeners]);
    this.#requests.push({ typeUrl: LDS, ...initial(listeners), ...version(LDS) });
    const names = this.#tablesWanted();
    if (names.length > 0) this.#requests.push({ typeUrl: RDS, names, ...initial(this.tables), ...version(RDS) });
  }

  #takeClusters(response: Response): void {
    const { resources, removed } = response;
    const gone = this.#delta
      ? removed
      : [...this.clusters.keys(), ...this.warming.keys()].filter((name) => !resources.has(name));
    const before = this.#assignmentsWanted();
    for (const name of gone) {
      this.clusters.delete(name);
      this.warming.delete(name);
      this.#lackingSecret.delete(name);
    }
    let changed = false;
    for (const [name, version] of resources) {
      const known = this.warming.get(name) ?? this.clusters.get(name);
      if (known === version) continue;
      changed ||= !isResolved(version);
      this.#lackingSecret.delete(name);
      this.warming.set(name, version);
    }
    this.#assignmentsChanged(before, changed);
    this.#held.push(response);
    this.#release();
  }

  #takeAssignments(response: Response): void {
    for (const [name, version] of response.resources) {
      if (!this.#assignmentsWanted().includes(name)) continue;
      this.#assignments.set(name, version);
      const warm = this.warming.get(name);
      if (warm === SECRET) this.#lackingSecret.add(name);
      else if (warm !== undefined && !isResolved(warm)) this.#becomeWarm(name, warm);
    }
    this.#release();
    this.#answer(response, this.#assignmentsWanted());
  }

  #assignmentsWanted(): string[] {
    return [
      ...new Set(
        [...this.clusters, ...this.warming].filter(([, version]) => !isResolved(version)).map(([name]) => name),
      ),
    ];
  }

  /** In state of the world, it asks for all of them again when a cluster is `changed`. */
  #assignmentsChanged(before: readonly string[], changed = false): void {
    const wanted = this.#assignmentsWanted();
    const names = wanted.filter((name) => !before.includes(name));
    const unsubscribe = before.filter((name) => !wanted.includes(name));
    for (const name of unsubscribe) this.#assignments.delete(name);
    if (names.length + unsubscribe.length === 0 && (this.#delta || !changed)) return;
    if (this.#delta) this.#requests.push({ typeUrl: EDS, names, unsubscribe });
    else this.#requests.push({ typeUrl: EDS, names: wanted, nonce: this.#nonces.get(EDS) ?? '' });
  }

  /** Answers to clusters leave when nothing warms; before the first listeners, they always do. */
  #release(): void {
    if (this.#started && this.warming.size > 0) return;
    const held = this.#held.splice(0);
    for (const response of this.#delta ? held : held.slice(-1)) this.#answer(response, []);
    if (this.#started || this.warming.size > 0 || !this.#nonces.has(CDS)) return;
    this.#started = true;
    this.#requests.push({ typeUrl: LDS });
  }

  #takeListeners(response: Response): void {
    const { resources, removed } = response;
    const before = this.#tablesWanted();
    const known = [...this.#listeners.keys(), ...this.#waitingListeners.keys()];
    for (const name of this.#delta ? removed : known.filter((each) => !resources.has(each))) {
      const old = this.#listeners.get(name);
      if (old !== undefined) this.draining.push(tableOf(old));
      this.#listeners.delete(name);
      this.#waitingListeners.delete(name);
    }
    for (const [name, content] of resources) {
      if ((this.#waitingListeners.get(name) ?? this.#listeners.get(name)) !== content) {
        this.#waitingListeners.set(name, content);
      }
    }
    this.#activate();
    this.#answer(response, []);
    this.#tablesChanged(before);
  }

  #takeTables(response: Response): void {
    const wanted = [...response.resources].filter(([name]) => this.#tablesWanted().includes(name));
    const good = wanted.filter(([, content]) => !content.startsWith(`${BAD}:`));
    const rejects = good.length < wanted.length;
    if (rejects) for (const [name] of wanted) this.#rejected.add(name);
    for (const [name, content] of rejects ? good.slice(0, this.applied) : good) this.tables.set(name, content);
    this.#activate();
    if (!rejects) this.#versions.set(RDS, response.version);
    this.#answer(response, this.#tablesWanted(), rejects);
  }

  /** Listeners whose table has arrived take over from the former ones. */
  #activate(): void {
    for (const [name, content] of [...this.#waitingListeners]) {
      if (!this.tables.has(tableOf(content))) continue;
      const old = this.#listeners.get(name);
      this.#waitingListeners.delete(name);
      const table = tableOf(content);
      if (old !== undefined && this.tables.get(table) === ABSENT && !this.#rejected.has(table))
        this.violations.push(`${name}: ${content} takes over from ${old} with a table that does not exist`);
      this.#listeners.set(name, content);
      if (old !== undefined) this.draining.push(tableOf(old));
    }
  }

  #tablesWanted(): string[] {
    return [
      ...new Set([...this.#listeners.values(), ...this.#waitingListeners.values()].map(tableOf).concat(this.draining)),
    ];
  }

  #tablesChanged(before: readonly string[]): void {
    const now = this.#tablesWanted();
    const names = now.filter((name) => !before.includes(name));
    const unsubscribe = before.filter((name) => !now.includes(name));
    if (names.length + unsubscribe.length === 0) return;
    for (const name of unsubscribe) this.tables.delete(name);
    if (this.#delta) this.#requests.push({ typeUrl: RDS, names, unsubscribe });
    else this.#requests.push({ typeUrl: RDS, names: now, nonce: this.#nonces.get(RDS) ?? '' });
  }

  #answer({ typeUrl, nonce }: Response, names: readonly string[], rejects = false): void {
    const error = rejects ? 'Only unique values for domains are permitted' : undefined;
    const version = this.#versions.get(typeUrl) ?? '';
    this.#requests.push(this.#delta ? { typeUrl, nonce, error } : { typeUrl, nonce, error, version, names });
  }

  /** Every table that requests are routed by must name only usable clusters. */
  #check({ typeUrl, nonce }: Response): void {
    const used = [...[...this.#listeners.values()].map(tableOf), ...this.draining];
    for (const table of used) {
      const content = this.tables.get(table);
      for (const cluster of content?.split(':')[1]?.split(',') ?? []) {
        if (cluster === '') continue;
        const isReady = this.clusters.has(cluster) && this.#assignments.get(cluster) !== UNREADY;
        if (!isReady) this.violations.push(`after ${typeUrl} ${nonce}: ${table} (${content}) names ${cluster}`);
      }
    }
  }
}

/** Version of a table that is rejected. */
export const BAD = 3;

/** Version of a cluster that has no assignment. */
export const RESOLVED = 4;

function isResolved(version: string): boolean {
  return version === String(RESOLVED);
}

function tableOf(listener: string): string {
  return listener.split(':')[1] ?? '';
}
