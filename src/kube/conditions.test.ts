import { describe, expect, test } from 'vitest';
import { mergeStatus, type DesiredCondition } from './conditions.ts';

const now = '2030-01-01T00:00:00Z';
const before = '2029-01-01T00:00:00Z';
const own = ['Accepted', 'ResolvedRefs', 'Programmed'];

const accepted: DesiredCondition = {
  type: 'Accepted',
  status: 'True',
  reason: 'Valid',
  message: 'fine',
  observedGeneration: 2,
};
const there = { ...accepted, lastTransitionTime: before };
const other = { type: 'Reconciled', status: 'True', observedGeneration: '7' };

test.each<[string, unknown, readonly DesiredCondition[], unknown]>([
  ['the first one', undefined, [accepted], [{ ...accepted, lastTransitionTime: now }]],
  ['nothing that differs', [there], [accepted], undefined],
  ['nothing that differs, beside those of others', [other, there], [accepted], undefined],
  ['no conditions at all', undefined, [], undefined],
  ['another message: the time stays', [there], [{ ...accepted, message: 'finer' }], [{ ...there, message: 'finer' }]],
  ['another generation: the time stays', [{ ...there, observedGeneration: 1 }], [accepted], [there]],
  ['a generation that is text becomes a number', [{ ...there, observedGeneration: '2' }], [accepted], [there]],
  [
    'another status: the time is now',
    [there],
    [{ ...accepted, status: 'False' }],
    [{ ...there, status: 'False', lastTransitionTime: now }],
  ],
  [
    'those of others stay, in their places',
    [other, { ...there, reason: 'Old' }, other],
    [accepted],
    [other, there, other],
  ],
  [
    'one of ours that is not desired any more goes',
    [there, { type: 'Programmed', status: 'True' }],
    [accepted],
    [there],
  ],
  ['one that is there twice', [there, there], [accepted], [there]],
  ['a time that is missing', [{ ...accepted }], [accepted], [{ ...accepted, lastTransitionTime: now }]],
  ['fields that we do not know stay', [{ ...there, reason: 'Old', x: 1 }], [accepted], [{ ...there, x: 1 }]],
  ['anything but a list', { a: 1 }, [accepted], [{ ...accepted, lastTransitionTime: now }]],
  [
    'lone surrogates are what the server makes of them',
    [{ ...there, message: '\ufffd' }],
    [{ ...accepted, message: '\ud800' }],
    undefined,
  ],
])('%s', (_, existing, desired, expected) => {
  const merged = mergeStatus({ conditions: existing }, { conditions: desired }, own, now);
  expect(merged).toEqual(expected === undefined ? undefined : { conditions: expected });
});

describe('of a route of Gateway API', () => {
  const controllerName = 'istio.io/gateway-controller';
  const parentRef = { name: 'edge', namespace: 'shop' };
  const entry = { parentRef, controllerName, conditions: [there] };
  const foreign = {
    ...entry,
    controllerName: 'example.com/other',
    conditions: [{ type: 'Accepted', status: 'False' }],
  };
  const merge = (parents: unknown, lists = [{ parentRef, conditions: [accepted] }]) =>
    mergeStatus({ parents }, { parents: { controllerName, lists } }, own, now);
  const written = { ...entry, conditions: [{ ...accepted, lastTransitionTime: now }] };

  test.each<[string, unknown, unknown]>([
    ['the first one', undefined, [written]],
    ['the first one of ours', [foreign], [foreign, written]],
    ['nothing that differs', [foreign, entry], undefined],
    [
      'nothing that differs, with the defaults of a reference',
      [{ ...entry, parentRef: { ...parentRef, group: 'gateway.networking.k8s.io', kind: 'Gateway' } }],
      undefined,
    ],
    ['another message', [{ ...entry, conditions: [{ ...there, message: 'bad' }] }, foreign], [entry, foreign]],
    ['a parent that it does not name any more', [entry, { ...entry, parentRef: { name: 'old' } }], [entry]],
    ['another section of the same parent', [{ ...entry, parentRef: { ...parentRef, sectionName: 'http' } }], [written]],
    [
      'conditions of others for our parent stay',
      [{ ...entry, conditions: [other] }],
      [{ ...entry, conditions: [other, { ...accepted, lastTransitionTime: now }] }],
    ],
    ['anything but a list', 7, [written]],
    ['anything but an object in the list', [7], [7, written]],
  ])('%s', (_, parents, expected) => {
    expect(merge(parents)).toEqual(expected === undefined ? undefined : { parents: expected });
  });

  test('without parents, only those of others stay', () => {
    expect(merge([entry, foreign], [])).toEqual({ parents: [foreign] });
    expect(merge([foreign], [])).toBeUndefined();
  });
});
