import { expect, test } from 'vitest';
import { objectsWithProducts, objectsBeyondLimits } from './large-products.ts';
import { servedBeside } from './large-objects.ts';

test.each(objectsBeyondLimits())('%s is told the limit, and makes nothing', (_, object, field) => {
  const mesh = servedBeside(object);
  const problems = [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) => found);
  expect(problems.map((problem) => [problem.reason, problem.field])).toContainEqual(['Invalid', field]);
  expect(problems.find((problem) => problem.field === field)?.message).toMatch(/at most [\d_]+/);
  // Beside those of the two Services and of every proxy.
  expect(mesh.snapshot('sidecar').cds.length).toBeLessThanOrEqual(1010);
});

test.each(objectsWithProducts())('%s is possible', (_, object) => {
  const mesh = servedBeside(object);
  expect([...mesh.mesh.problems.byObject.entries()]).toEqual([]);
});
