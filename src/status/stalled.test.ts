import { expect, test } from 'vitest';
import { stalled } from './stalled.ts';

const condition = (type: string, status: string, reason: string, observedGeneration: unknown = 3): object => ({
  ...{ type, status, reason, message: `of ${type}`, observedGeneration },
});
const programmed = condition('Programmed', 'True', 'Programmed');
const accepted = condition('Accepted', 'True', 'Accepted');

test.each<[string, unknown[], string | undefined]>([
  ['accepted, and proxies have it', [accepted, programmed], undefined],
  ['not accepted', [condition('Accepted', 'False', 'Invalid'), programmed], 'Invalid: of Accepted'],
  ['rejected by proxies', [accepted, condition('Programmed', 'False', 'Rejected')], 'Rejected: of Programmed'],
  ['on its way', [accepted, condition('Programmed', 'Unknown', 'Pending')], undefined],
  ['accepted without all that it names', [accepted, condition('ResolvedRefs', 'False', 'RefNotFound')], undefined],
  ['not accepted in an earlier generation', [condition('Accepted', 'False', 'Invalid', 2)], undefined],
  ['whatever others wrote', [null, 'a', 3, condition('Ready', 'False', 'x')], undefined],
])('an object that is %s', (_, conditions, expected) => {
  const found = stalled(conditions, 3);
  expect(found.map(({ reason, message }) => `${reason}: ${message}`)[0]).toBe(expected);
  for (const each of found) expect(each).toMatchObject({ type: 'Stalled', status: 'True', observedGeneration: 3 });
});
