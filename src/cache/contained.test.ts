import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Draft, type Emit, Graph, type Index } from './graph.ts';
import { assertFromScratch, assertSame, dump } from './testing/from-scratch.ts';
import { runs } from '../testing/runs.ts';

interface Thing {
  readonly group: string;
  readonly size: number;
  /** Where its values make a function throw. */
  readonly bad?: 'groups' | 'order' | 'transform' | 'equality';
}

/** Every function that a graph is given, each of which throws at things that are bad for it. */
function declare(graph: Graph) {
  const check = (place: Thing['bad'], ...things: readonly Thing[]): void => {
    if (things.some(({ bad }) => bad === place)) throw new Error(`a bug in ${place}`);
  };
  const things = graph.input<Thing>('things');
  const byGroup = graph.index(
    'by group',
    things,
    (_, thing) => {
      check('groups', thing);
      return [thing.group, 'all'];
    },
    (a, b) => {
      check('order', a.value, b.value);
      return a.value.size - b.value.size;
    },
  );
  const sizes = graph.derive(
    'sizes',
    things,
    (key, thing, _, emit: Emit<Thing>) => {
      check('transform', thing);
      emit(key, thing);
    },
    (a, b) => {
      check('equality', a, b);
      return a.size === b.size;
    },
  );
  return { things, byGroup, sizes: sizes.track() };
}

const keysOf = (index: Index<Thing>, group: string): string[] => (index.get(group) ?? []).map(({ key }) => key);
const failures = (graph: Graph): string[] =>
  [...graph.failures.values()].map(({ collection, error }) => `${collection}: ${(error as Error).message}`);

describe('an index', () => {
  it.each(['groups', 'order'] as const)('leaves an entry at which its %s throw where it was', (bad) => {
    const graph = new Graph();
    const { things, byGroup } = declare(graph);
    graph.commit([things.write('a', { group: 'x', size: 1 }), things.write('b', { group: 'x', size: 2 })]);
    graph.commit([
      things.write('a', { group: 'y', size: 3, bad }),
      things.write('c', { group: 'x', size: 1, bad }),
      things.write('d', { group: 'x', size: 0 }),
    ]);
    expect(keysOf(byGroup, 'x')).toEqual(['d', 'a', 'b']);
    expect(keysOf(byGroup, 'y')).toEqual([]);
    expect(failures(graph)).toEqual(Array<string>(2).fill(`by group: a bug in ${bad}`));
    graph.commit([things.write('a', { group: 'y', size: 3 }), things.write('c', undefined)]);
    expect(keysOf(byGroup, 'all')).toEqual(['d', 'b', 'a']);
    expect(keysOf(byGroup, 'y')).toEqual(['a']);
    expect(failures(graph)).toEqual([]);
  });

  it('forgets an entry that is gone, wherever it was put', () => {
    const graph = new Graph();
    const input = graph.input<number>('input');
    let sign = 1;
    const index = graph.index(
      'index',
      input,
      () => ['all'],
      (a, b) => sign * (a.value - b.value),
    );
    graph.commit([1, 2, 3].map((size) => input.write(`${size}`, size)));
    sign = -1;
    graph.commit([input.write('1', undefined)]);
    expect((index.get('all') ?? []).map(({ key }) => key)).toEqual(['2', '3']);
    expect(failures(graph)).toEqual([]);
    graph.commit([input.write('2', 4)]);
    expect(failures(graph)).toEqual(['index: the order depends on more than the entry']);
  });
});

it('values that cannot be compared count as different', () => {
  const graph = new Graph();
  const { things, sizes } = declare(graph);
  graph.commit([things.write('a', { group: 'x', size: 1 })]);
  graph.commit([things.write('a', { group: 'x', size: 2, bad: 'equality' })]);
  expect(sizes.get('a')?.size).toBe(2);
  expect(failures(graph)).toEqual(['sizes: a bug in equality']);
  graph.commit([things.write('a', undefined)]);
  expect(failures(graph)).toEqual([]);
});

it('an input takes a value that is nested too deeply to be compared', () => {
  const graph = new Graph();
  const input = graph.input('input');
  const nested = (): unknown => JSON.parse('['.repeat(200_000) + ']'.repeat(200_000)) as unknown;
  graph.commit([input.write('a', nested())]);
  graph.commit([input.write('a', nested()), input.write('b', 1)]);
  expect(input.get('b')).toBe(1);
  expect(graph.failures.size).toBe(1);
});

it('mends itself when the values are good again, whatever threw, and a discarded draft leaves no trace', () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd');
  const thing = fc.record(
    {
      group: fc.constantFrom('x', 'y'),
      size: fc.integer({ min: 0, max: 3 }),
      bad: fc.constantFrom('groups', 'order', 'transform', 'equality'),
    } as const,
    { requiredKeys: ['group', 'size'] },
  );
  const write = fc.tuple(key, fc.option(thing, { nil: undefined }));
  const history = fc.array(fc.record({ writes: fc.array(write, { maxLength: 3 }), keep: fc.boolean() }));
  fc.assert(
    fc.property(history, (commits) => {
      const graph = new Graph();
      const { things } = declare(graph);
      for (const { writes, keep } of commits) {
        const before = dump(graph);
        const failed = new Set(graph.failures.keys());
        const draft = graph.draft(writes.map(([at, value]) => things.write(at, value)));
        if (keep) draft.publish();
        else {
          draft.discard();
          assertSame(dump(graph), before);
          expect(new Set(graph.failures.keys())).toEqual(failed);
        }
      }
      // Twice: the first time the good values are compared with the bad ones.
      for (let i = 0; i < 2; i++)
        graph.commit(
          [...things.entries()].map(([at, { group, size }]) => things.write(at, { group, size: size + 10 })),
        );
      assertFromScratch(graph, declare);
      expect(failures(graph)).toEqual([]);
      graph.commit([...things.entries()].map(([at]) => things.write(at, undefined)));
      for (const collection of graph.collections) expect(collection.cells.size).toBe(0);
    }),
    { numRuns: runs(500) },
  );
});

describe('an observer that throws', () => {
  /** Tells what each observer was shown, `before>after`, and throws where it is told to. */
  function watched() {
    const graph = new Graph();
    const { things, sizes } = declare(graph);
    const shown: string[][] = [];
    let fails: (keys: readonly string[]) => boolean = () => true;
    const show = (draft: Draft): string[] =>
      Array.from(draft.changes(sizes), ({ key, before, after }) => `${key} ${before?.size}>${after?.size}`);
    graph.observe((draft) => {
      const changes = show(draft);
      if (fails(changes)) throw new Error('a bug in an observer');
      shown.push(changes);
    }, 'first');
    const others: string[][] = [];
    graph.observe((draft) => void others.push(show(draft)));
    return {
      graph,
      shown,
      others,
      commit: (sizes: Record<string, number | undefined>) =>
        graph.commit(
          Object.entries(sizes).map(([key, size]) =>
            things.write(key, size === undefined ? undefined : { group: 'x', size }),
          ),
        ),
      failWhere: (where: (keys: readonly string[]) => boolean) => {
        fails = where;
      },
    };
  }

  it('keeps nobody else from the commit, and is counted and said', () => {
    const { graph, others, commit } = watched();
    const said: string[][] = [];
    graph.observeFailures(() => said.push(failures(graph)));
    commit({ a: 1 });
    expect(graph.revision).toBe(1);
    expect(others).toEqual([['a undefined>1']]);
    expect(said).toEqual([['observer: a bug in an observer']]);
    expect(graph.wantsCommit).toBe(true);
  });

  it('is told again what it missed as it is then, apart from what is new', () => {
    const { graph, shown, commit, failWhere } = watched();
    commit({ a: 1, b: 1 });
    commit({ a: 2 });
    commit({ c: 1, b: undefined });
    failWhere(() => false);
    commit({ d: 1 });
    expect(shown).toEqual([['d undefined>1'], ['a undefined>2', 'b undefined>undefined', 'c undefined>1']]);
    expect(failures(graph)).toEqual([]);
    expect(graph.wantsCommit).toBe(false);
  });

  it('is told everything but the change that it cannot take', () => {
    const { graph, shown, commit, failWhere } = watched();
    failWhere((changes) => changes.some((change) => change.startsWith('k7 ')));
    commit(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, i])));
    expect(shown).toEqual([]);
    commit({});
    expect(new Set(shown.flat()).size).toBe(99);
    expect(failures(graph)).toEqual(['observer: a bug in an observer']);
    commit({ k7: 8 });
    failWhere(() => false);
    commit({});
    expect(shown.at(-1)).toEqual(['k7 undefined>8']);
    expect(graph.wantsCommit).toBe(false);
  });

  it('takes a bounded number of calls when it takes nothing', () => {
    const { graph, commit, failWhere } = watched();
    let calls = 0;
    failWhere(() => ++calls > 0);
    commit(Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, i])));
    failWhere((changes) => changes.length > 0 && ++calls > 0);
    calls = 0;
    commit({});
    expect(calls).toBeLessThanOrEqual(64);
    expect(graph.failures.size).toBe(1);
  });
});

describe('a follower of a collection', () => {
  it('hears of its changes, and of nothing else', () => {
    const graph = new Graph();
    const [things, others] = [graph.input<number>('things'), graph.input<number>('others')];
    const heard: string[][] = [];
    graph.follow(things, (changes) => heard.push(changes.map(({ key, before, after }) => `${key} ${before}>${after}`)));
    graph.commit([things.write('a', 1), things.write('b', 1), others.write('c', 1)]);
    graph.commit([others.write('c', 2)]);
    graph.commit([things.write('a', undefined)]);
    expect(heard).toEqual([['a undefined>1', 'b undefined>1'], ['a 1>undefined']]);
  });

  it('that throws is a failure, although another of the same collection succeeds', () => {
    const graph = new Graph();
    const things = graph.input<number>('things');
    graph.follow(things, () => {
      throw new Error('a bug in the first');
    });
    graph.follow(things, () => undefined);
    graph.commit([things.write('a', 1)]);
    expect(failures(graph)).toEqual(['observer: a bug in the first']);
  });
});

it('what hears of failures may throw too', () => {
  const graph = new Graph();
  const { things } = declare(graph);
  graph.observeFailures(() => {
    throw new Error('a bug in the report');
  });
  graph.commit([things.write('a', { group: 'x', size: 1, bad: 'transform' })]);
  graph.commit([things.write('b', { group: 'x', size: 1 })]);
  expect(failures(graph)).toEqual(['sizes: a bug in transform', 'program: a bug in the report']);
});
