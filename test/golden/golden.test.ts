import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { createValidator } from '../../src/api/validate.ts';
import { TestMesh, connectedProxy } from '../harness/mesh.ts';
import { createCheckSound } from '../harness/sound.ts';
import { expectedFile, goldenNames, orphans, readGoldenCase } from './case.ts';
import { printExpected } from './expected.ts';
import { lostNames } from './lost-names.ts';
import { meshOf } from './mesh-of.ts';
import { seed } from '../harness/seed.ts';

const validate = createValidator();
const checkSound = createCheckSound();
const names = goldenNames();
const cases = new Map(names.map((name) => [name, readGoldenCase(name, validate)]));
describe('a golden case', () => {
  test.each(names)('%s gives what its expected file says', (name) => {
    const golden = cases.get(name)!;
    const mesh = meshOf(golden);
    const hint = 'if this is what you want, write it with `make golden` and review the change';
    expect(printExpected(mesh, golden), hint).toBe(readFileSync(expectedFile(name), 'utf8'));
    expect(soundnessOf(mesh, [...golden.proxies.keys()])).toEqual([]);
    expect(lostNames(mesh, golden)).toEqual([]);
  });

  // The mesh compares itself with one built from scratch now and then.
  test.each(names)(`%s comes and goes object by object, in any order (FAIRLEAD_SEED=${seed})`, (name) => {
    const golden = cases.get(name)!;
    const { objects, proxies, options } = golden;
    const mesh = new TestMesh({ mesh: options, oracle: 'sometimes' });
    for (const [proxy, node] of proxies) mesh.connect(connectedProxy(proxy, node));
    const empty = versions(mesh, [...proxies.keys()]);
    for (const object of shuffled(objects, seed)) {
      mesh.apply([{ ...object, metadata: { ...object.metadata, generation: 1 } }]);
      expect(soundnessOf(mesh, [...proxies.keys()])).toEqual([]);
    }
    mesh.apply(objects);
    expect(printExpected(mesh, golden)).toBe(readFileSync(expectedFile(name), 'utf8'));
    for (const object of shuffled(objects, seed + 1)) {
      mesh.delete([object]);
      expect(soundnessOf(mesh, [...proxies.keys()])).toEqual([]);
    }
    expect(versions(mesh, [...proxies.keys()])).toEqual(empty);
  });
});

test('no expected file is left over', () => {
  expect(orphans(), 'make golden removes them').toEqual([]);
});

function soundnessOf(mesh: TestMesh, proxies: readonly string[]): string[] {
  return proxies.flatMap((proxy) =>
    [...checkSound(mesh.snapshot(proxy)), ...mesh.clashes(proxy)].map((line) => `${proxy}: ${line}`),
  );
}

function versions(mesh: TestMesh, proxies: readonly string[]): string[] {
  return proxies.flatMap((proxy) => {
    const { cds, eds, lds, rds, sds } = mesh.snapshot(proxy);
    return [...cds, ...eds, ...lds, ...rds, ...sds].map(({ name, version }) => `${proxy} ${name} ${version}`);
  });
}

function shuffled(objects: readonly KubernetesObject[], order: number): KubernetesObject[] {
  const any = fc.shuffledSubarray([...objects], { minLength: objects.length });
  return fc.sample(any, { seed: order, numRuns: 1 })[0]!;
}
