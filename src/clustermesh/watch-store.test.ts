import { beforeEach, expect, test } from 'vitest';
import { FakeClock } from '../testing/fake-clock.ts';
import type { Decoded } from './member.ts';
import { WatchStore } from './watch-store.ts';

const cluster = { name: 'east', id: 2, limit: 255 } as const;
const decode = (_: string, bytes: Uint8Array): Decoded<string> => {
  const value = Buffer.from(bytes).toString();
  return value === 'bad' ? { wrong: 'is bad' } : { value };
};

let clock: FakeClock;
let log: string[];
let store: WatchStore<string>;

beforeEach(() => {
  [clock, log] = [new FakeClock(), []];
  store = new WatchStore<string>({
    clock,
    doubtsLists: true,
    replaced: (values) => log.push(`= ${Array.from(values, (entry) => entry.join(':')).join(' ')}`),
    changed: (now, before) => log.push(`${before} -> ${now}`),
  });
});

/** Lists these, as texts or `bad`; keys without a value are too long to be read. */
function list(values: Readonly<Record<string, string | undefined>>, prefix = 'p/'): number | undefined {
  const sink = store.reading({ prefix, cluster, decode });
  const entries = new Map<string, Decoded<string>>();
  const unread = new Set<string>();
  for (const [suffix, value] of Object.entries(values)) {
    const key = prefix + suffix;
    if (value === undefined) unread.add(key);
    else entries.set(key, sink.read({ key, value: Buffer.from(value), modRevision: 1n, version: 1n, lease: 0n }));
  }
  return sink.replace(entries, unread);
}

test('a list replaces what was known, and what it cannot read stays', () => {
  list({ a: '1', b: '1', c: '1', d: 'bad' });
  list({ a: 'bad', b: undefined, c: '2', e: undefined });
  expect(log).toEqual(['= a:1 b:1 c:1', '= a:1 c:2 b:1']);
  expect(store.stats()).toEqual({
    ...{ synced: true, entries: 3, skipped: 4, doubted: 0 },
    problems: [
      { key: 'p/a', problem: 'is bad' },
      { key: 'p/b', problem: 'is too long to be read' },
      { key: 'p/e', problem: 'is too long to be read' },
    ],
  });
});

test('changes tell what there was before', () => {
  list({ a: '1' });
  const sink = store.reading({ prefix: 'p/', cluster, decode });
  sink.upsert('p/a', { value: '2' });
  sink.upsert('p/a', { wrong: 'is bad' });
  sink.upsert('p/b', { wrong: 'is bad' });
  sink.delete('p/b');
  sink.delete('p/a');
  sink.delete('p/a');
  expect(log.slice(1)).toEqual(['1 -> 2', '2 -> undefined']);
  expect(store.stats()).toMatchObject({ entries: 0, skipped: 2, problems: [] });
});

test('what is under another prefix has nothing to do with what was known', () => {
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`k${i}`, '1']));
  list(many);
  expect(list({ k1: 'bad' }, 'q/')).toBeUndefined();
  expect(log.at(-1)).toBe('= ');
});

test('a list that lacks most must be confirmed; a drain need not', () => {
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`k${i}`, '1']));
  list(many);
  expect([list({ k1: '1' }), store.values.size, store.stats().doubted]).toEqual([30_000, 20, 19]);
  expect(store.doubtedSince).toEqual(clock.date());
  store.drain();
  expect([store.values.size, store.stats().synced, store.doubtedSince]).toEqual([0, false, undefined]);
});

test('few of the problems are named, all are counted', () => {
  list(Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, 'bad'])));
  expect(store.stats()).toMatchObject({ skipped: 50, problems: { length: 10 } });
  list({ ['\n'.repeat(10_000)]: 'bad' });
  expect(store.stats().problems).toEqual([{ key: 'p/', problem: 'is bad' }]);
  list({ ['x'.repeat(10_000)]: 'bad' });
  expect(store.stats().problems[0]?.key).toHaveLength(303);
});
