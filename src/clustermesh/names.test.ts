import { describe, expect, test } from 'vitest';
import { clusterNameProblem, identityRange, type MeshCluster, reservationProblem } from './names.ts';

test.each([
  ['east', true],
  ['e', true],
  ['3', true],
  ['east-1-b', true],
  ['e'.repeat(32), true],
  ['e'.repeat(33), false],
  ['', false],
  ['-east', false],
  ['east-', false],
  ['East', false],
  ['ea.st', false],
  ['ea/st', false],
  ['east\n', false],
  ['default', false],
])('%j can be the name of a cluster: %s', (name, can) => {
  expect(clusterNameProblem(name) === undefined).toBe(can);
});

test.each([
  [1, 255, 65_536, 131_071],
  [255, 255, 16_711_680, 16_777_215],
  [1, 511, 32_768, 65_535],
  [511, 511, 16_744_448, 16_777_215],
] as const)('identities of cluster %i of %i are from %i to %i', (id, limit, first, last) => {
  expect(identityRange({ name: 'east', id, limit })).toEqual({ first, last });
});

describe('the id of a remote cluster', () => {
  const own: MeshCluster = { name: 'home', id: 1, limit: 255 };
  const holders = new Map([[3, 'west']]);
  test.each<[string, number, string | undefined]>([
    ['may be any that nobody has', 2, undefined],
    ['may be the highest', 255, undefined],
    ['may be its own', 3, undefined],
    ['is not 0', 0, 'cluster id 0 is not from 1 to 255; give cluster west another one'],
    ['is not beyond the limit', 256, 'cluster id 256 is not from 1 to 255; give cluster west another one'],
    ['is not ours', 1, 'cluster id 1 is that of this cluster; give one of them another id'],
  ])('%s', (_, id, problem) => {
    expect(reservationProblem({ name: 'west', id, limit: 255 }, own, holders)).toBe(problem);
  });

  test('is not that of another one', () => {
    expect(reservationProblem({ name: 'south', id: 3, limit: 255 }, own, holders)).toBe(
      'cluster id 3 is that of cluster west, too; give one of them another id',
    );
  });

  test('counts by our limit, whatever the remote cluster says', () => {
    const remote: MeshCluster = { name: 'south', id: 300, limit: 511 };
    expect(reservationProblem(remote, own, holders)).toContain('not from 1 to 255');
    expect(reservationProblem(remote, { ...own, limit: 511 }, holders)).toBeUndefined();
  });
});
