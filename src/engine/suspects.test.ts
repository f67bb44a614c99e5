import { expect, test } from 'vitest';
import { generationKey } from '../mesh/objects/in-force.ts';
import { type Suspect, type SuspectGroup, Suspects } from './suspects.ts';

const suspect = (name: string, namespace = 'shop', generation = 1): Suspect => ({
  key: generationKey('VirtualService', `test/${namespace}/${name}`),
  uid: name,
  generation,
});
const [a, b, c, d, e] = ['a', 'b', 'c', 'd', 'e'].map((name) => suspect(name)) as [
  Suspect,
  Suspect,
  Suspect,
  Suspect,
  Suspect,
];

function left(group: SuspectGroup): string[] {
  const found: string[] = [];
  for (let next = group.next(); next !== undefined; next = group.next()) found.push(next.uid);
  return found;
}

test('those of several groups that are refused together are one group from then on, so that trials come to an end', () => {
  const suspects = new Suspects();
  const [one, other] = [suspects.add([a, b], undefined), suspects.add([c, d], undefined)];
  expect(one).not.toBe(other);
  expect([one.next(), other.next()]).toEqual([a, c]);
  other.trial = { suspect: c, until: undefined };
  const both = suspects.add([a, c], undefined);
  expect([...suspects.groups()]).toEqual([both]);
  expect(both.trial).toBe(other.trial);
  for (const { key } of [a, b, c, d]) expect(suspects.groupOf(key)).toBe(both);
  expect(left(both)).toEqual(['b', 'd', 'a', 'c']);
  suspects.end(both);
  expect(suspects.groups().size).toBe(0);
});

test('one that is refused again waits once, and one that is forgotten not at all', () => {
  const suspects = new Suspects();
  const group = suspects.add([a, b, c], undefined);
  expect(suspects.add([b, e], undefined)).toBe(group);
  suspects.forget(c.key);
  expect(left(group)).toEqual(['a', 'b', 'e']);
});

test('namespaces of a group take turns, and a restriction comes first in each', () => {
  const suspects = new Suspects();
  const policy = suspect('policy', 'istio-system');
  const group = suspects.add([a, b, suspect('other', 'tenant')], policy);
  expect(left(group)).toEqual(['policy', 'policy', 'a', 'other', 'b']);
  expect([suspects.isCleared(a, policy), suspects.isCleared(suspect('a', 'shop', 2), policy)]).toEqual([true, false]);
});

test('a restriction that is waiting stays in front of those that wait for it', () => {
  const suspects = new Suspects();
  const policy = suspect('policy', 'istio-system');
  const group = suspects.add([a, b], policy);
  suspects.add([a, c], policy);
  expect(left(group)).toEqual(['policy', 'b', 'a', 'c']);
});

test('what is forgotten leaves nothing in its group, also while it is tried', () => {
  const suspects = new Suspects();
  const group = suspects.add([a, b, c], undefined);
  group.trial = { suspect: group.next()!, until: undefined };
  for (const { key } of [a, b]) suspects.forget(key);
  expect([group.trial, [...group.members], left(group)]).toEqual([undefined, [c.key], ['c']]);
  expect([a, b].map(({ key }) => suspects.groupOf(key))).toEqual([undefined, undefined]);
  expect(suspects.add([a, d], undefined)).not.toBe(group);
});
