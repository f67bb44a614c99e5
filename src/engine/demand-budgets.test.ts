import { expect, test } from 'vitest';
import { type Demand, DemandBudgets, type DemandLimits, demandLimits, noDemand } from './demand-budgets.ts';

const demand = (part: Partial<Demand>): Demand => ({ ...noDemand, traits: 'sidecar', ...part });
const bound = { perPeer: 2, inAll: 3 };
const limits: DemandLimits = { traits: bound, scopes: bound, routers: bound, workloads: bound, places: bound };

class Lab {
  now = 0;
  limited = 0;
  readonly budgets = new DemandBudgets(
    () => {
      this.limited++;
      return limits;
    },
    () => this.now,
  );
  #streams = 0;

  /** `stream`, or what there is no room for. */
  admit(peer: string, part: Partial<Demand>): string {
    const stream = `${++this.#streams}`;
    const full = this.budgets.admit(stream, peer, demand(part));
    return full === undefined ? stream : `${full.kind}${full.ofPeer ? ' of peer' : ''}`;
  }
}

test('proxies that share do not count, those that differ do: for one address, and in all', () => {
  const lab = new Lab();
  for (let i = 0; i < 100; i++) expect(lab.admit('a', { scopes: 'x' })).toMatch(/^\d+$/);
  expect(lab.admit('a', { scopes: 'y' })).toMatch(/^\d+$/);
  expect(lab.admit('a', { scopes: 'z' })).toBe('scopes of peer');
  expect(lab.admit('b', { scopes: 'z' })).toMatch(/^\d+$/);
  expect(lab.admit('b', { scopes: 'w' })).toBe('scopes');
  // What is there already costs nothing.
  expect(lab.admit('b', { scopes: 'x' })).toMatch(/^\d+$/);
  expect(lab.budgets.sizes()).toEqual({ traits: 1, scopes: 3, routers: 0, workloads: 0, places: 0 });
});

test('the limits, for which all services are counted, are computed for those that differ', () => {
  const lab = new Lab();
  lab.admit('a', { scopes: 'x' });
  const { limited } = lab;
  expect(limited).toBeGreaterThan(0);
  for (const peer of ['a', 'b', 'c']) lab.admit(peer, { scopes: 'x' });
  expect(lab.limited).toBe(limited);
});

test.each(['scopes', 'routers', 'workloads', 'places'] as const)(
  '%s make room when the last proxy of theirs is gone',
  (kind) => {
    const lab = new Lab();
    const [first, second] = [lab.admit('a', { [kind]: 'x' }), lab.admit('a', { [kind]: 'x' })];
    lab.admit('a', { [kind]: 'y' });
    lab.budgets.release(first);
    expect(lab.admit('a', { [kind]: 'z' })).toBe(`${kind} of peer`);
    lab.budgets.release(second);
    lab.budgets.release(second);
    expect(lab.admit('a', { [kind]: 'z' })).toMatch(/^\d+$/);
  },
);

test('a workload with many ports counts as several, as long as there are proxies of it', () => {
  const lab = new Lab();
  const first = lab.admit('a', { workloads: 'x', workloadSize: 2 });
  expect(lab.admit('a', { workloads: 'x', workloadSize: 9 })).toMatch(/^\d+$/);
  expect(lab.admit('a', { workloads: 'y' })).toBe('workloads of peer');
  expect(lab.admit('b', { workloads: 'z', workloadSize: 2 })).toBe('workloads');
  expect(lab.budgets.sizes()).toMatchObject({ workloads: 2 });
  for (const stream of [first, '2']) lab.budgets.release(stream);
  expect(lab.budgets.sizes()).toMatchObject({ workloads: 0 });
});

test('traits make room a minute later: nobody has them made over and over', () => {
  const lab = new Lab();
  for (const traits of ['x', 'y']) lab.budgets.release(lab.admit('a', { traits }));
  expect(lab.admit('a', { traits: 'z' })).toBe('traits of peer');
  // Who is back finds its own.
  expect(lab.admit('a', { traits: 'x' })).toMatch(/^\d+$/);
  lab.now = 60_000;
  expect(lab.admit('a', { traits: 'z' })).toMatch(/^\d+$/);
  expect(lab.admit('a', { traits: 'y' })).toBe('traits of peer');
});

test('one that is not admitted leaves nothing behind', () => {
  const lab = new Lab();
  for (const scopes of ['x', 'y', 'z']) lab.admit('a', { scopes });
  lab.admit('a', { scopes: 'z', places: 'p' });
  expect(lab.budgets.sizes()).toEqual({ traits: 1, scopes: 2, routers: 0, workloads: 0, places: 0 });
});

const GiB = 1024 ** 3;
test.each([
  [2 * GiB, 1_000, { traits: { perPeer: 16, inAll: 64 }, scopes: { perPeer: 2_965, inAll: 5_929 } }],
  [2 * GiB, 10_000, { traits: { perPeer: 6, inAll: 12 }, scopes: { perPeer: 1_000, inAll: 2_000 } }],
  [4 * GiB, 10_000, { traits: { perPeer: 7, inAll: 13 }, scopes: { perPeer: 1_701, inAll: 3_402 } }],
  [0.25 * GiB, 10, { traits: { perPeer: 16, inAll: 64 }, scopes: { perPeer: 1_000, inAll: 2_000 } }],
])('limits follow the heap (%i bytes) and the services (%i)', (heap, services, expected) => {
  expect(demandLimits(heap, services)).toMatchObject(expected);
});

test.each([0, 0.5, 8])('2,000 proxies in 200 namespaces behind one address have room in a heap of %d GiB', (heap) => {
  const budgets = new DemandBudgets(
    () => demandLimits(heap * GiB, 10_000),
    () => 0,
  );
  for (let i = 0; i < 2_000; i++) {
    const traits = `traits ${i % 4}`;
    const scopes = `${traits} namespace ${i % 200}`;
    expect(budgets.admit(`${i}`, '127.0.0.1', demand({ traits, scopes, places: `zone ${i % 30}` }))).toBeUndefined();
  }
});
