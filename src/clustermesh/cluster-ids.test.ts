import { expect, test } from 'vitest';
import { ClusterIds } from './cluster-ids.ts';

const cluster = (name: string, id: number) => ({ name, id, limit: 255 }) as const;

function reserve(ids: ClusterIds, name: string, id: number): () => void {
  const reserved = ids.reserve(cluster(name, id));
  if ('problem' in reserved) throw new Error(reserved.problem);
  return reserved.release;
}

test('an id is of one cluster, until that gives it back', () => {
  const ids = new ClusterIds(cluster('own', 1));
  const release = reserve(ids, 'east', 2);
  reserve(ids, 'west', 3);
  expect(ids.reserve(cluster('north', 2))).toEqual({
    problem: 'cluster id 2 is that of cluster east, too; give one of them another id',
  });
  release();
  reserve(ids, 'north', 2);
  expect(ids.reserve(cluster('east', 1))).toHaveProperty('problem');
  expect(ids.reserve(cluster('east', 0))).toHaveProperty('problem');
});

test('a cluster that is read twice for a while keeps its id until both have ended', () => {
  const ids = new ClusterIds(cluster('own', 1));
  const [first, second] = [reserve(ids, 'east', 2), reserve(ids, 'east', 2)];
  first();
  first();
  expect(ids.reserve(cluster('west', 2))).toHaveProperty('problem');
  second();
  reserve(ids, 'west', 2);
});
