import { expect, test } from 'vitest';
import { mergeConditions, type DesiredCondition } from './conditions.ts';

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
  expect(mergeConditions(existing, desired, own, now)).toEqual(expected);
});
