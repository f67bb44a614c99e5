import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ObjectRef } from '../../api/object.ts';
import { originKey } from '../store/origins.ts';
import type { MemberChange, Publication } from '../store/publication.ts';
import type { Rollout } from '../rollouts/rollout.ts';
import type { WorldView } from '../store/world.ts';
import { type Answer, ModelClient } from '../testing/model-client.ts';
import { RolloutOracle, type Visible } from '../testing/rollout-oracle.ts';
import { CDS, decodeFrame, EDS, LDS, RDS, resource, TestServer } from '../testing/world.ts';
import { runs } from '../../testing/runs.ts';

/**
 * Whatever changes in whatever order, and whatever clients do: at every moment a rollout waits for those that have not
 * acknowledged what it changed, and for nobody else. Compared with an oracle that knows publications and the wire alone.
 */

const NAMES = ['a', 'b', 'c'];
const URLS = [CDS, EDS, LDS, RDS];
/** `near` and `far` are children of `root`, as long as they are; `other` is a root of its own. */
const LISTS = ['near', 'far', 'other'];
const ROOTS = [['root'], ['root', 'other'], ['other']];
/** By client: whether it speaks delta. */
const CLIENTS = [true, false, true, false];
const OBJECTS = ['r', 's', 't', 'u'].map((name): ObjectRef => {
  return { group: 'g', kind: 'K', source: 'test', namespace: 'n', name, uid: '', generation: 0 };
});
const KEYS = OBJECTS.map(originKey);
const SETTLE_MS = 50;

interface SetStep {
  readonly url: number;
  readonly name: number;
  readonly list: number;
  readonly content: number;
  /** Objects that caused it, and are in it. */
  readonly by: number[];
}

type Step =
  | { do: 'publish'; sets: SetStep[] }
  | { do: 'move'; client: number; roots: number; by: number[]; sets: SetStep[] }
  | { do: 'children'; near: boolean; far: boolean; by: number[] }
  | { do: 'subscribe' | 'unsubscribe'; client: number; url: number; names: string[]; star: boolean }
  | { do: 'send' | 'write'; client: number; times: number }
  | { do: 'receive'; client: number; times: number; answer: Answer }
  | { do: 'turn'; client: number; answer: Answer }
  | { do: 'reconnect'; client: number }
  | { do: 'wait'; ms: number };

interface Kind {
  readonly rejecting: boolean;
}

const BAD = 5;

function steps({ rejecting }: Kind): fc.Arbitrary<Step[]> {
  const nat = (max: number): fc.Arbitrary<number> => fc.integer({ min: 0, max: max - 1 });
  const client = nat(CLIENTS.length);
  const times = fc.integer({ min: 1, max: 3 });
  const by = fc.subarray([...KEYS.keys()], { maxLength: 2 });
  const sets = fc.uniqueArray(
    fc.record({ url: nat(4), name: nat(NAMES.length), list: nat(3), content: nat(rejecting ? BAD + 1 : BAD), by }),
    { minLength: 1, maxLength: 4, selector: ({ url, name }) => `${url} ${name}` },
  );
  const answer = fc.record({ applied: nat(3), names: fc.constantFrom(true, false, 'always' as const) });
  const names = fc.subarray(NAMES);
  const of = <T extends Step['do']>(...kinds: T[]): fc.Arbitrary<T> => fc.constantFrom(...kinds);
  const weighted = (weight: number, arbitrary: fc.Arbitrary<Step>): fc.WeightedArbitrary<Step> => ({
    weight,
    arbitrary,
  });
  return fc.array(
    fc.oneof(
      weighted(8, fc.record({ do: of('publish'), sets })),
      weighted(
        1,
        fc.record({ do: of('move'), client, roots: nat(3), by, sets: fc.oneof(sets, fc.constant([] as SetStep[])) }),
      ),
      weighted(1, fc.record({ do: of('children'), near: fc.boolean(), far: fc.boolean(), by })),
      weighted(4, fc.record({ do: of('subscribe'), client, url: nat(4), names, star: fc.constant(false) })),
      weighted(2, fc.record({ do: of('unsubscribe'), client, url: nat(4), names, star: fc.constant(false) })),
      weighted(8, fc.record({ do: of('send', 'write'), client, times })),
      weighted(6, fc.record({ do: of('receive'), client, times, answer })),
      weighted(3, fc.record({ do: of('turn'), client, answer })),
      weighted(1, fc.record({ do: of('reconnect'), client })),
      weighted(3, fc.record({ do: of('wait'), ms: fc.oneof(nat(60), nat(60), nat(20_000)) })),
    ),
    { maxLength: 120, size: 'max' },
  );
}

/** A client, its stream, and what the oracle says of it. */
class Party {
  readonly client: ModelClient;
  readonly delta: boolean;
  readonly #run: Run;
  roots = ROOTS[0]!;
  view: WorldView;
  oracle!: RolloutOracle;
  stream = '';

  constructor(run: Run, delta: boolean) {
    this.#run = run;
    this.delta = delta;
    this.view = run.server.store.enter({ roots: this.roots, qualifiers: [] });
    this.client = new ModelClient(run.server, this.#open(false), delta, URLS);
  }

  /** The wire is listened to: whatever the server hears and writes goes to the oracle as well. */
  #open(resumed: boolean) {
    const { server, keys } = this.#run;
    const delivery = server.open(this.view, this.delta);
    const oracle = new RolloutOracle(this.sight(), {
      delta: this.delta,
      resumed,
      typeUrls: URLS,
      wholeStates: [CDS, LDS],
      isOpen: (rollout) => keys.has(rollout),
    });
    const next = delivery.next.bind(delivery);
    delivery.next = (now) => {
      const frame = next(now);
      oracle.looked();
      const response = frame && decodeFrame(frame.slices, this.delta);
      if (response === undefined) oracle.rested();
      else {
        oracle.written(response);
        this.#log('<', { ...response, resources: Object.fromEntries(response.resources) });
      }
      return frame;
    };
    const request = delivery.request.bind(delivery);
    delivery.request = (asked, now) => {
      oracle.looked();
      request(asked, now);
    };
    const tick = delivery.tick.bind(delivery);
    delivery.tick = (now) => {
      tick(now);
      oracle.looked();
    };
    this.oracle = oracle;
    this.stream = `stream-${server.streams}`;
    return delivery;
  }

  /** One request reaches the server. */
  send(): boolean {
    const { client, oracle } = this;
    const { leaving } = client;
    if (leaving === undefined) return false;
    this.#log('>', { ...leaving, initial: leaving.initial && Object.fromEntries(leaving.initial) });
    client.send(this.#run.now);
    oracle.heard(leaving, client.types.get(leaving.typeUrl)!.heard);
    return true;
  }

  #log(direction: string, message: object): void {
    this.#run.log.push(`${this.stream} ${this.delta ? 'delta' : 'sotw'} ${direction} ${JSON.stringify(message)}`);
  }

  reconnect(): void {
    this.client.delivery.close();
    this.client.reconnect(this.#open(true));
  }

  /** What its world has. */
  sight(): Map<string, Visible> {
    const lists = new Set(this.roots.flatMap((root) => (root === 'root' ? this.#run.children : [root])));
    const { truth, gained } = this.#run;
    const seen = [...truth].filter(([, { list }]) => lists.has(list));
    return new Map(
      seen.map(([key, visible]) => [
        key,
        { ...visible, brought: [...visible.brought, ...(gained.get(visible.list) ?? [])] },
      ]),
    );
  }
}

class Run {
  readonly server: TestServer;
  readonly truth = new Map<string, Visible & { readonly list: string }>();
  children: readonly string[] = ['near', 'far'];
  /** By list, the rollouts that made it a child. */
  readonly gained = new Map<string, readonly string[]>();
  now = 0;
  /** Objects whose rollouts are not over. */
  readonly keys = new Set<string>();
  readonly parties: readonly Party[];
  readonly log: string[] = [];
  /** By rollout, when somebody was last to be waited for. */
  readonly #lastMust = new Map<string, number>();
  #timers: { readonly at: number; readonly work: () => void }[] = [];

  constructor(kind: Kind) {
    this.server = new TestServer(2, {
      after: (ms, work) => void this.#timers.push({ at: this.now + ms, work }),
      settled: (rollouts) => this.#settled(rollouts),
      changed: () => {},
    });
    if (!kind.rejecting) this.server.times = { ...this.server.times, overdueMs: Infinity, stuckMs: Infinity };
    this.#apply({ lists: [{ list: 'root', children: this.children }] });
    this.parties = CLIENTS.map((delta) => new Party(this, delta));
  }

  #apply(publication: Partial<Publication>): void {
    this.server.store.apply({ members: [], lists: [], ...publication });
    this.server.frames.outdate();
  }

  /** Never early, and never sooner than it may be. */
  #settled(rollouts: ReadonlySet<Rollout>): void {
    for (const rollout of rollouts) {
      const { key } = rollout;
      const missing = this.parties.filter(({ oracle }) => oracle.must().has(key)).map(({ stream }) => stream);
      expect(missing, `${key} is settled too early`).toEqual([]);
      const since = this.now - (this.#lastMust.get(key) ?? -Infinity);
      expect(since, `${key} is settled too soon after the last answer`).toBeGreaterThanOrEqual(SETTLE_MS);
      if (rollout.reached() === 0) continue;
      this.log.push(`${key} is over`);
      this.server.rollouts.forget(key);
      this.keys.delete(key);
      for (const [name, visible] of this.truth)
        this.truth.set(name, { ...visible, brought: visible.brought.filter((each) => each !== key) });
      for (const [list, by] of this.gained)
        this.gained.set(
          list,
          by.filter((each) => each !== key),
        );
      for (const party of this.parties) party.oracle.sees(party.sight());
      for (const { oracle } of this.parties) oracle.forget(key);
    }
  }

  pass(ms: number): void {
    const until = this.now + ms;
    for (;;) {
      const [next] = this.#timers.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.#timers = this.#timers.filter((each) => each !== next);
      this.now = next.at;
      next.work();
    }
    this.now = until;
  }

  #begin(by: readonly number[]): readonly Rollout[] {
    return by.map((i) => {
      this.keys.add(KEYS[i]!);
      return this.server.rollouts.begin(KEYS[i]!);
    });
  }

  #set(sets: readonly SetStep[]): { readonly members: MemberChange[]; readonly touched: Map<string, string[]> } {
    const members: MemberChange[] = [];
    const touched = new Map<string, string[]>();
    for (const step of sets) {
      const [typeUrl, name, list] = [URLS[step.url]!, NAMES[step.name]!, LISTS[step.list]!];
      const key = `${typeUrl} ${name}`;
      const before = this.truth.get(key);
      const rollouts = this.#begin(step.by);
      const member = { typeUrl, name, qualifier: '', rollouts };
      if (before !== undefined && (step.content === 0 || before.list !== list))
        members.push({ ...member, list: before.list });
      this.truth.delete(key);
      if (step.content > 0) {
        const text = step.content === BAD ? 'bad' : `v${step.content}`;
        // Equal bytes are the same bytes, whatever they were made from.
        const isSame = before?.text === text && before.list === list;
        const origins = isSame ? before.origins : step.by.map((i) => KEYS[i]!);
        const by = isSame ? [] : step.by.map((i) => KEYS[i]!);
        const brought = before?.list === list ? [...before.brought, ...by] : by;
        this.truth.set(key, { list, text, origins, brought });
        const made = resource(
          typeUrl,
          name,
          text,
          [],
          step.by.map((i) => OBJECTS[i]!),
        );
        members.push({ ...member, list, resource: made });
      }
      touched.set(
        key,
        step.by.map((i) => KEYS[i]!),
      );
      this.log.push(`${key} is ${this.truth.get(key)?.text} in ${list}, by ${touched.get(key)?.join()}`);
    }
    return { members, touched };
  }

  take(step: Step): void {
    switch (step.do) {
      case 'publish': {
        const { members, touched } = this.#set(step.sets);
        this.#apply({ members });
        for (const party of this.parties) party.oracle.published(party.sight(), touched);
        break;
      }
      case 'move': {
        const party = this.parties[step.client]!;
        const { view } = party;
        party.roots = ROOTS[step.roots]!;
        this.log.push(`${party.stream} moves to ${party.roots.join()} by ${step.by.join()}`);
        party.view = this.server.store.enter({ roots: party.roots, qualifiers: [] });
        const rollouts = this.#begin(step.by);
        party.client.delivery.move(party.view, rollouts);
        this.server.store.leave(view);
        const by = step.by.map((i) => KEYS[i]!);
        const everything = URLS.flatMap((url) => NAMES.map((name) => [`${url} ${name}`, by] as const));
        party.oracle.published(party.sight(), new Map(everything), true);
        if (step.sets.length > 0) this.take({ do: 'publish', sets: step.sets });
        break;
      }
      case 'children': {
        const before = this.parties.map((party) => party.sight());
        const former = this.children;
        this.children = [...(step.near ? ['near'] : []), ...(step.far ? ['far'] : [])];
        this.log.push(`root has ${this.children.join()} by ${step.by.join()}`);
        const rollouts = this.#begin(step.by);
        this.#apply({ lists: [{ list: 'root', children: this.children, rollouts }] });
        const by = step.by.map((i) => KEYS[i]!);
        for (const list of former) if (!this.children.includes(list)) this.gained.delete(list);
        for (const list of this.children) if (!former.includes(list)) this.gained.set(list, by);
        this.parties.forEach((party, i) => {
          const after = party.sight();
          const keys = [...new Set([...before[i]!.keys(), ...after.keys()])];
          const touched = keys.filter((key) => before[i]!.has(key) !== after.has(key));
          party.oracle.published(after, new Map(touched.map((key) => [key, by])));
        });
        break;
      }
      case 'subscribe':
      case 'unsubscribe':
        this.parties[step.client]!.client[step.do](URLS[step.url]!, step.names, step.star);
        break;
      case 'send':
        for (let i = 0; i < step.times; i++) this.parties[step.client]!.send();
        break;
      case 'write':
        for (let i = 0; i < step.times; i++) this.parties[step.client]!.client.write(this.now);
        break;
      case 'receive':
        for (let i = 0; i < step.times; i++) this.parties[step.client]!.client.receive(step.answer);
        break;
      case 'turn':
        this.#rest(this.parties[step.client]!, step.answer);
        break;
      case 'reconnect':
        this.log.push(`${this.parties[step.client]!.stream} reconnects`);
        this.parties[step.client]!.reconnect();
        break;
      case 'wait':
        this.log.push(`${step.ms} ms pass`);
        this.pass(step.ms);
        for (const { client } of this.parties) client.delivery.tick(this.now);
        break;
    }
  }

  #rest(party: Party, answer: Answer): boolean {
    let any = false;
    for (let i = 0, busy = true; busy; i++) {
      if (i > 400) throw new Error('it does not come to rest');
      busy = party.send();
      if (party.client.write(this.now)) busy = true;
      if (party.client.receive(answer)) busy = true;
      any ||= busy;
    }
    return any;
  }

  /** At every moment. */
  compare(): void {
    for (const key of KEYS) {
      const waiting = [...(this.server.rollouts.get(key)?.waiting() ?? [])].map(({ stream }) => stream);
      const must = this.parties.filter(({ oracle }) => oracle.must().has(key)).map(({ stream }) => stream);
      if (must.length > 0) this.#lastMust.set(key, this.now);
      expect(waiting, `${key} waits for everybody who has not acknowledged it`).toEqual(expect.arrayContaining(must));
      for (const stream of waiting) {
        const party = this.parties.find((each) => each.stream === stream);
        expect(party?.oracle.may(key), `${key} waits for ${stream} for a reason`).toBeDefined();
      }
    }
  }

  /** Everybody answers everything, and time passes: what is rejected is all that is left. */
  end(): void {
    for (let round = 0; round < 110; round++) {
      this.pass(1_000);
      for (const party of this.parties) {
        party.client.delivery.tick(this.now);
        this.#rest(party, { applied: 1, names: round % 2 === 0 });
      }
      this.compare();
    }
    this.pass(1_000);
    const streams = (of: Iterable<{ readonly stream: string }>): string[] => [...of].map(({ stream }) => stream).sort();
    const rejecting = KEYS.flatMap((key) => streams(this.server.rollouts.get(key)?.rejections().keys() ?? []));
    for (const key of KEYS) {
      const rollout = this.server.rollouts.get(key);
      const must = this.parties.filter(({ oracle }) => oracle.must().has(key)).map(({ stream }) => stream);
      const waiting = streams(rollout?.waiting() ?? []);
      const blaming = this.parties.filter(({ oracle }) => oracle.blames(key)).map(({ stream }) => stream);
      expect(waiting, `${key} is rejected`).toEqual(expect.arrayContaining(must));
      expect(blaming, `${key} waits for nobody but those who reject`).toEqual(expect.arrayContaining(waiting));
      const own = streams(rollout?.rejections().keys() ?? []);
      expect(waiting, `${key} is rejected by those that wait`).toEqual(expect.arrayContaining(own));
      // It is held against the object that made what they reject, even if another one brought it to them.
      expect(rejecting, `something is rejected by all that wait for ${key}`).toEqual(expect.arrayContaining(waiting));
      expect(rollout?.isSettled ?? true).toBe(waiting.length === 0);
    }
  }
}

function check(history: readonly Step[], kind: Kind): void {
  const run = new Run(kind);
  try {
    for (const step of history) {
      run.take(step);
      run.compare();
    }
    run.end();
  } catch (cause) {
    throw new Error(`${String(cause)}\n${run.log.join('\n')}`, { cause });
  }
}

const RUNS = runs(300);

describe('a rollout waits for those who have not acknowledged it, and for nobody else', () => {
  test.each<[string, Kind]>([
    ['clients that come and go', { rejecting: false }],
    ['clients that reject', { rejecting: true }],
  ])('%s', (_, kind) => {
    fc.assert(
      fc.property(steps(kind), (history) => check(history, kind)),
      { numRuns: RUNS },
    );
  });
});
