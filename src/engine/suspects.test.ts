import { expect, test } from 'vitest';
import { generationKey } from '../mesh/objects/in-force.ts';
import { type Suspect, Suspects } from './suspects.ts';

const suspect = (name: string, namespace = 'shop', generation = 1): Suspect => ({
  key: generationKey('VirtualService', `test/${namespace}/${name}`),
  uid: name,
  generation,
});
const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => suspect(name)) as [Suspect, Suspect, Suspect, Suspect];

function left(suspects: Suspects): string[] {
  const found: string[] = [];
  for (let next = suspects.next(); next !== undefined; next = suspects.next()) found.push(next.uid);
  return found;
}

test('one that is rejected again waits once, and one that is forgotten not at all', () => {
  const suspects = new Suspects();
  suspects.add([a, b, c], undefined);
  suspects.add([b, d], undefined);
  suspects.forget(c.key);
  expect(left(suspects)).toEqual(['a', 'b', 'd']);
  suspects.add([a], undefined);
  suspects.forget(a.key);
  expect(suspects.isEmpty).toBe(true);
});

test('namespaces take turns, and a restriction comes first in each', () => {
  const suspects = new Suspects();
  const policy = suspect('policy', 'istio-system');
  suspects.add([a, b, suspect('other', 'tenant')], policy);
  expect(left(suspects)).toEqual(['policy', 'policy', 'a', 'other', 'b']);
  expect([suspects.isCleared(a, policy), suspects.isCleared(suspect('a', 'shop', 2), policy)]).toEqual([true, false]);
});

test('a restriction that is waiting stays in front of those that wait for it', () => {
  const suspects = new Suspects();
  const policy = suspect('policy', 'istio-system');
  suspects.add([a, b], policy);
  suspects.add([a, c], policy);
  expect(left(suspects)).toEqual(['policy', 'b', 'a', 'c']);
});
