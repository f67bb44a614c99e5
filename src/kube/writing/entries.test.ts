import { expect, test } from 'vitest';
import type { Json } from '../../api/json.ts';
import type { Place } from '../../api/place.ts';
import type { DesiredCondition } from './conditions.ts';
import { CONTROLLER, conditionsAt, mergeEntries } from './entries.ts';

const now = '2030-01-01T00:00:00Z';
const own = ['Accepted', 'Programmed'];

const accepted = (message = 'fine'): DesiredCondition => ({
  ...{ type: 'Accepted', status: 'True', reason: 'Accepted' },
  ...{ message, observedGeneration: 1 },
});
const parent = (name: string, more: object = {}): Place => ({ in: 'parents', ref: { name, ...more } });
const said = (...places: Place[]) => places.map((place) => ({ place, conditions: [accepted()] }));
const merge = (existing: unknown, ...places: Place[]) => mergeEntries('parents', existing, said(...places), own, now);

/** An entry as the API server returns it. */
const entry = (name: string, controllerName = CONTROLLER, more: object = {}): Json => ({
  parentRef: { group: 'gateway.networking.k8s.io', kind: 'Gateway', name, ...more },
  controllerName,
  conditions: [{ ...accepted(), lastTransitionTime: now }],
});
const names = (list: readonly unknown[] | undefined) =>
  list?.map(
    (each) =>
      `${((each as Json)['parentRef'] as Json)['name'] as string} ${(each as Json)['controllerName'] as string}`,
  );

test('each parent has an entry, which stays as it is while nothing changes', () => {
  const written = merge(undefined, parent('a'), parent('a', { sectionName: 's' }), parent('a', { namespace: 'n' }));
  expect(written).toHaveLength(3);
  expect(written?.[0]).toEqual({
    parentRef: { name: 'a' },
    controllerName: CONTROLLER,
    conditions: [{ ...accepted(), lastTransitionTime: now }],
  });
  expect(
    merge(written, parent('a'), parent('a', { sectionName: 's' }), parent('a', { namespace: 'n' })),
  ).toBeUndefined();
  expect(merge([entry('a')], parent('a'))).toBeUndefined();
});

test('entries of ours that are stale, or there twice, are removed; those of others never', () => {
  const others = entry('a', 'example.com/other');
  expect(names(merge([others, entry('old'), entry('a'), entry('a')], parent('a')))).toEqual([
    'a example.com/other',
    `a ${CONTROLLER}`,
  ]);
  expect(merge([others, entry('old')])).toEqual([others]);
  expect(merge([others])).toBeUndefined();
});

test('conditions of an entry that are not ours stay, and so do its other fields', () => {
  const foreign = { type: 'Foreign', status: 'True' };
  const there = { ...entry('a'), conditions: [foreign], extra: 1 };
  expect(merge([there], parent('a'))).toEqual([
    { ...there, conditions: [foreign, { ...accepted(), lastTransitionTime: now }] },
  ]);
});

test.each([
  ['parents', 32],
  ['ancestors', 16],
] as const)('%s are at most %i, with those of others', (list, most) => {
  const field = list === 'parents' ? 'parentRef' : 'ancestorRef';
  const others = Array.from({ length: 10 }, (_, i) => ({ [field]: { name: `o${i}` }, controllerName: 'x.y/z' }));
  const ours = Array.from({ length: 40 }, (_, i): Place => ({ in: list, ref: { name: `p${i}` } }));
  const merged = mergeEntries(list, others, said(...ours), own, now);
  expect(merged).toHaveLength(most);
  expect(merged?.slice(0, 10)).toEqual(others);
  // What was left out is not tried again and again.
  expect(mergeEntries(list, merged, said(...ours), own, now)).toBeUndefined();
});

test.each([{}, null, 7, { parentRef: 7, controllerName: CONTROLLER }, { parentRef: { name: {} }, controllerName: 1 }])(
  'a malformed entry is left alone: %j',
  (odd) => {
    expect(merge([odd], parent('a'))?.[0]).toEqual(odd);
  },
);

// CRDs of Istio take anything in a status, and whoever may write it can name us.
test.each([
  ['an object that is no text', { toString: 1 }],
  ['thousands of lists in each other', JSON.parse('['.repeat(20_000) + ']'.repeat(20_000)) as unknown],
  ['a list of the name', ['a']],
])('an entry of ours whose reference has %s is about no place', (_, name) => {
  for (const field of ['name', 'namespace', 'port']) {
    const odd = { parentRef: { name: 'a', [field]: name }, controllerName: CONTROLLER };
    expect(merge([odd], parent('a'))).toMatchObject([{ parentRef: { name: 'a' }, conditions: [{}] }]);
    expect(Object.keys((merge([odd], parent('a'))?.[0] as Json)['parentRef'] as Json)).toEqual(['name']);
    expect(merge([odd])).toEqual([]);
    expect(conditionsAt({ parents: [odd] }, parent('a'))).toBeUndefined();
  }
});

test('a port and a section are not those of other texts', () => {
  const odd = { ...entry('a', CONTROLLER, { port: '80' }) };
  expect(merge([odd], parent('a', { port: 80 }))).toEqual([
    { parentRef: { name: 'a', port: 80 }, controllerName: CONTROLLER, conditions: odd['conditions'] },
  ]);
  const joined = entry('a/b');
  expect(names(merge([joined], parent('a', { sectionName: 'b' })))).toEqual([`a ${CONTROLLER}`]);
});

test('an entry has no more conditions than its CRD allows, and ours are among them', () => {
  const foreign = Array.from({ length: 8 }, (_, i) => ({ type: `Foreign${i}`, status: 'True' }));
  const merged = merge([{ ...entry('a'), conditions: foreign }], parent('a'));
  const { conditions } = merged?.[0] as { readonly conditions: readonly Json[] };
  expect(conditions.map(({ type }) => type)).toEqual([...foreign.slice(0, 7).map(({ type }) => type), 'Accepted']);
  expect(merge(merged, parent('a'))).toBeUndefined();
});

test('what was said at a place is found there', () => {
  const status = { conditions: ['whole'], parents: [entry('a', 'x.y/z'), entry('a')] };
  expect(conditionsAt(status, { in: 'object' })).toEqual(['whole']);
  expect(conditionsAt(status, parent('a'))).toEqual(entry('a')['conditions']);
  expect(conditionsAt(status, parent('b'))).toBeUndefined();
});

const listener = (name: string, attachedRoutes = 1): Place => ({
  ...{ in: 'listeners', name },
  facts: { attachedRoutes, supportedKinds: [{ kind: 'HTTPRoute' }] },
});
const mergeListeners = (existing: unknown, ...places: Place[]) =>
  mergeEntries('listeners', existing, said(...places), own, now);

test('a listener has an entry by its name, with its facts, which are written when they change', () => {
  const written = mergeListeners(undefined, listener('a'), listener('b'));
  expect(written?.[0]).toEqual({
    ...{ name: 'a', attachedRoutes: 1, supportedKinds: [{ kind: 'HTTPRoute' }] },
    conditions: [{ ...accepted(), lastTransitionTime: now }],
  });
  expect(mergeListeners(written, listener('a'), listener('b'))).toBeUndefined();
  expect(mergeListeners(written, listener('a', 2), listener('b'))).toEqual([
    { ...(written?.[0] as Json), attachedRoutes: 2 },
    written?.[1],
  ]);
  expect(mergeListeners(written, listener('b'))).toEqual([written?.[1]]);
  expect(conditionsAt({ listeners: written }, listener('b'))).toEqual((written?.[1] as Json)['conditions']);
});

test('listeners of a Gateway of which we say nothing are left alone', () => {
  expect(mergeListeners([{ name: 'a', attachedRoutes: 3, conditions: [] }])).toBeUndefined();
});
