import { expect, test } from 'vitest';
import { Graph, type Emit } from '../cache/graph.ts';
import { type Commit, Committer } from './committer.ts';
import { FakeClock } from '../testing/fake-clock.ts';

const QUIET = 10;
const MAX = 100;
const SLICE = 10;

class Lab {
  readonly graph = new Graph();
  readonly input = this.graph.input<number>('numbers');
  readonly config = this.graph.input<number>('config');
  readonly named = this.graph.input<number>('named');
  readonly clock: FakeClock;
  readonly committer: Committer;
  readonly stop = new AbortController();
  /** What each commit wrote, and when. */
  readonly published: { readonly at: number; readonly keys: readonly string[] }[] = [];
  readonly commits: Commit[] = [];
  readonly broken: unknown[] = [];

  constructor(clock = new FakeClock()) {
    this.clock = clock;
    this.committer = new Committer(this.graph, {
      quiet: QUIET,
      max: MAX,
      isConfig: (input) => input === this.config || input === this.named,
      hasCompanions: (input) => input === this.config,
      slice: SLICE,
      clock,
      broken: (error) => this.broken.push(error),
      signal: this.stop.signal,
    });
    this.graph.observe((draft) =>
      this.published.push({ at: clock.now(), keys: draft.writes.map((write) => write.key) }),
    );
    this.committer.onCommit((commit) => this.commits.push(commit));
  }

  static open(): Lab {
    const lab = new Lab();
    lab.committer.open();
    return lab;
  }

  write(key: string, value = 1): void {
    this.committer.write(this.input.write(key, value));
  }

  configure(key: string): void {
    this.committer.write(this.config.write(key, 1));
  }

  /** Changes config that names what belongs to it. */
  name(key: string): void {
    this.committer.write(this.named.write(key, 1));
  }
}

test('nothing is committed before it is opened, and then all at once', async () => {
  const lab = new Lab();
  lab.write('a');
  await lab.clock.advance(10 * MAX);
  lab.write('b');
  await lab.clock.advance(10 * MAX);
  expect(lab.published).toEqual([]);
  expect(lab.committer.stats).toEqual({ commits: 0, writes: 0, pending: 2 });
  lab.committer.open();
  await lab.clock.advance(0);
  expect(lab.published).toEqual([{ at: 20 * MAX, keys: ['a', 'b'] }]);
});

test('while somebody holds changes they are gathered, and then committed together', async () => {
  const lab = Lab.open();
  lab.write('warm');
  await lab.clock.advance(0);
  lab.write('a');
  const [first, second] = [lab.committer.hold(), lab.committer.hold()];
  await lab.clock.advance(10 * MAX);
  lab.write('b');
  first();
  first();
  await lab.clock.advance(10 * MAX);
  expect(lab.published).toHaveLength(1);
  second();
  await lab.clock.advance(0);
  expect(lab.published[1]).toEqual({ at: 20 * MAX, keys: ['a', 'b'] });
});

test('a change that is not config waits only if the last commit has just been', async () => {
  const lab = Lab.open();
  lab.write('a');
  lab.write('b');
  await lab.clock.advance(4);
  lab.write('c');
  await lab.clock.advance(4);
  lab.write('d');
  await lab.clock.advance(2 * QUIET);
  lab.write('e');
  await lab.clock.advance(0);
  expect(lab.published).toEqual([
    { at: 0, keys: ['a', 'b'] },
    { at: QUIET, keys: ['c', 'd'] },
    { at: 8 + 2 * QUIET, keys: ['e'] },
  ]);
});

test('in a steady stream there is a commit in each quiet time', async () => {
  const lab = Lab.open();
  for (let i = 0; i < 60; i++) {
    lab.write(`${i}`);
    await lab.clock.advance(1);
  }
  expect(lab.published.map(({ at }) => at)).toEqual([0, 10, 20, 30, 40, 50, 60]);
});

test('a single change of config without companions is committed at once', async () => {
  const lab = Lab.open();
  lab.name('a');
  await lab.clock.advance(MAX);
  lab.name('b');
  await lab.clock.advance(0);
  expect(lab.published).toEqual([
    { at: 0, keys: ['a'] },
    { at: MAX, keys: ['b'] },
  ]);
});

test('those that follow it are committed together once no other has followed for a while', async () => {
  const lab = Lab.open();
  for (const key of ['a', 'b', 'c']) {
    lab.name(key);
    await lab.clock.advance(QUIET - 1);
  }
  await lab.clock.advance(1);
  expect(lab.published).toEqual([
    { at: 0, keys: ['a'] },
    { at: 3 * QUIET - 2, keys: ['b', 'c'] },
  ]);
});

test('changes of config are committed together once no other has followed for a while', async () => {
  const lab = Lab.open();
  lab.configure('a');
  await lab.clock.advance(QUIET - 1);
  lab.configure('b');
  await lab.clock.advance(QUIET - 1);
  expect(lab.published).toEqual([]);
  await lab.clock.advance(1);
  expect(lab.published).toEqual([{ at: 2 * QUIET - 1, keys: ['a', 'b'] }]);
});

test('nothing overtakes a change of config, or makes it wait longer', async () => {
  const lab = Lab.open();
  lab.configure('a');
  await lab.clock.advance(QUIET - 1);
  lab.write('b');
  await lab.clock.advance(1);
  expect(lab.published).toEqual([{ at: QUIET, keys: ['a', 'b'] }]);
});

test('however often config changes, no change waits longer than the bound', async () => {
  const lab = Lab.open();
  for (let i = 0; i < 60; i++) {
    lab.configure(`${i}`);
    await lab.clock.advance(5);
  }
  const [first, second] = lab.published;
  expect(first!.at).toBe(MAX);
  expect(first!.keys).toHaveLength(MAX / 5);
  expect(second!.at - first!.at).toBeLessThanOrEqual(MAX + 5);
  for (const commit of lab.commits) expect(commit.delay).toBeLessThanOrEqual(MAX);
});

test('nor does one that has waited before config began to change', async () => {
  const lab = Lab.open();
  lab.write('a');
  await lab.clock.advance(0);
  lab.write('b');
  for (let i = 0; i < 60; i++) {
    await lab.clock.advance(5);
    lab.configure(`${i}`);
  }
  expect(lab.published[1]!.keys).toContain('b');
  expect(lab.published[1]!.at).toBe(MAX);
});

test('of several changes of a key the newest is committed', async () => {
  const lab = Lab.open();
  lab.write('warm');
  await lab.clock.advance(0);
  lab.write('a', 1);
  lab.write('b', 1);
  lab.write('a', 2);
  expect(lab.committer.stats.pending).toBe(2);
  await lab.clock.advance(QUIET);
  expect(lab.input.get('a')).toBe(2);
  expect(lab.commits.map(({ writes }) => writes)).toEqual([1, 2]);
});

test('who waits is told when the changes so far are published, however many follow', async () => {
  const lab = Lab.open();
  await lab.committer.settled();
  lab.write('a');
  let settled = false;
  const waiting = lab.committer.settled().then(() => (settled = true));
  // Written while the commit that is waited for is published.
  lab.committer.onCommit(() => lab.write(`after ${lab.committer.stats.commits}`));
  expect(settled).toBe(false);
  await lab.clock.advance(0);
  await waiting;
  expect(lab.committer.stats).toEqual({ commits: 1, writes: 1, pending: 1 });
});

test('a commit is told with its delay and its work, and counted first', async () => {
  const lab = Lab.open();
  lab.write('a');
  await lab.clock.advance(0);
  const counted: number[] = [];
  lab.committer.onCommit(() => counted.push(lab.committer.stats.commits));
  lab.write('b');
  await lab.clock.advance(QUIET);
  expect(counted).toEqual([2]);
  expect(lab.commits).toEqual([
    { writes: 1, delay: 0, work: 0 },
    { writes: 1, delay: QUIET, work: 0 },
  ]);
});

/** Every look at it takes a millisecond. */
class BusyClock extends FakeClock {
  private looks = 0;

  override now(): number {
    return super.now() + this.looks++;
  }
}

test('a long commit lets others run between its slices, and shows nothing before it is whole', async () => {
  const lab = new Lab(new BusyClock());
  const doubled = lab.graph.derive('doubled', lab.input, (key, value, _, emit: Emit<number>) => emit(key, 2 * value));
  const count = 1_000;
  for (let i = 0; i < count; i++) lab.write(`${i}`);
  lab.committer.open();
  let turns = 0;
  const look = (): void => {
    if (lab.published.length > 0) return;
    const { pending } = lab.committer.stats;
    if (pending < count) turns++;
    // Written while the others are computed: it is for the next commit.
    if (pending === 0) lab.write('late');
    setImmediate(look);
  };
  setImmediate(look);
  const settled = lab.committer.settled();
  await lab.clock.advance(0);
  await settled;
  expect(turns).toBeGreaterThan(1);
  expect(lab.published.map(({ keys }) => keys.length)).toEqual([count]);
  expect(doubled.get('5')).toBe(2);
  expect(lab.committer.stats.pending).toBe(1);
});

test('a commit that takes long takes longer slices', async () => {
  const lab = new Lab(new BusyClock());
  lab.graph.derive('same', lab.input, (key, value, _, emit: Emit<number>) => emit(key, value));
  for (let i = 0; i < 3_000; i++) lab.write(`${i}`);
  const slices: number[] = [];
  let before = lab.clock.now();
  const look = (): void => {
    if (lab.published.length > 0) return;
    const now = lab.clock.now();
    slices.push(now - before);
    before = now;
    setImmediate(look);
  };
  lab.committer.open();
  setImmediate(look);
  const settled = lab.committer.settled();
  await lab.clock.advance(0);
  await settled;
  expect(Math.max(...slices.slice(1, 5))).toBeLessThan(2 * SLICE);
  expect(Math.max(...slices)).toBeGreaterThan(2 * SLICE);
});

test('when it ends, nothing is committed any more and nobody waits for ever', async () => {
  const lab = Lab.open();
  lab.write('a');
  const settled = lab.committer.settled();
  lab.stop.abort();
  await settled;
  lab.write('b');
  await lab.committer.settled();
  await lab.clock.advance(10 * MAX);
  expect(lab.published).toEqual([]);
});

test('an observer that throws, of the graph or of commits, stops nothing, and is told again within a second', async () => {
  const lab = Lab.open();
  let healthy = false;
  const told: string[][] = [];
  const doubled = lab.graph.derive('doubled', lab.input, (key, value, _, emit: Emit<number>) => emit(key, 2 * value));
  doubled.track();
  lab.graph.observe((draft) => {
    if (!healthy) throw new Error('a bug in an observer of the graph');
    told.push(Array.from(draft.changes(doubled), ({ key }) => key));
  });
  lab.committer.onCommit(() => {
    if (!healthy) throw new Error('a bug in an observer of commits');
  });
  const after: number[] = [];
  lab.committer.onCommit(({ writes }) => after.push(writes));
  lab.write('a');
  const settled = lab.committer.settled();
  await lab.clock.advance(0);
  await settled;
  expect([...lab.graph.failures.values()].map(({ error }) => (error as Error).message)).toEqual([
    'a bug in an observer of the graph',
    'a bug in an observer of commits',
  ]);
  lab.write('b');
  await lab.clock.advance(QUIET);
  expect(doubled.get('b')).toBe(2);
  healthy = true;
  await lab.clock.advance(1_000);
  expect(told).toEqual([[], ['a', 'b']]);
  expect(after).toEqual([1, 1, 0]);
  expect(lab.graph.failures.size).toBe(0);
  // One more tells that the last failure is over.
  await lab.clock.advance(10_000);
  expect(lab.committer.stats.commits).toBe(4);
});

test('one that hears of commits or failures, and throws each time, causes no further ones', async () => {
  const lab = Lab.open();
  lab.committer.onCommit(() => {
    throw new Error('a bug');
  });
  lab.graph.observeFailures(() => {
    throw new Error('another bug');
  });
  lab.write('a');
  await lab.clock.advance(60_000);
  expect(lab.committer.stats.commits).toBeLessThan(5);
  expect(lab.graph.failures.size).toBe(2);
});

test('a function of an index that throws stops no commit', async () => {
  const lab = Lab.open();
  const index = lab.graph.index('index', lab.input, (_, value) => {
    if (value === 13) throw new Error('a bug');
    return ['all'];
  });
  lab.write('a');
  await lab.clock.advance(0);
  lab.write('b', 13);
  await lab.clock.advance(QUIET);
  lab.write('c');
  await lab.clock.advance(QUIET);
  expect(index.get('all')?.map(({ key }) => key)).toEqual(['a', 'c']);
  expect(lab.graph.failures.size).toBe(1);
});

test('a bug in the graph itself ends all commits, and is reported', async () => {
  const lab = Lab.open();
  const bug = new Error('bug');
  lab.graph.draftInSteps = () => {
    throw bug;
  };
  lab.write('a');
  await lab.clock.advance(QUIET);
  lab.write('b');
  await lab.clock.advance(10 * MAX);
  expect(lab.broken).toEqual([bug]);
  expect(lab.published).toEqual([]);
});
