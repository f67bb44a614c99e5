import { expect, test } from 'vitest';
import { createCheckSound } from '../harness/sound.ts';
import { largeObjects, servedBeside } from './large-objects.ts';

const checkSound = createCheckSound();

test.each(largeObjects())('%s harms nobody', (_, object, reads) => {
  const mesh = servedBeside(object);
  const snapshot = mesh.snapshot('sidecar');
  expect(checkSound(snapshot)).toEqual([]);
  expect(checkSound(mesh.snapshot('router'))).toEqual([]);
  expect(snapshot.cds.map(({ name }) => name)).toContain('outbound|80||b.shop.svc.cluster.local');
  const problems = [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) => found);
  if (reads === 'served') expect(problems).toEqual([]);
  if (reads === 'refused') expect(problems).not.toEqual([]);
  // What an owner reads stays short, whatever was written.
  expect(JSON.stringify(problems).length).toBeLessThan(100_000);
});
