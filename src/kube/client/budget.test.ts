import { afterEach, expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { Budget, sizeOf } from './budget.ts';
import { SinkState } from '../reading/sink-state.ts';
import { InformerLab } from '../testing/informer-lab.ts';

const labs: InformerLab[] = [];
afterEach(async () => {
  await Promise.all(labs.splice(0).map((lab) => lab.stop()));
});

/** An informer with room for about so many objects. */
function lab(objects: number, within?: Budget): { readonly it: InformerLab; readonly budget: Budget } {
  const probe = new InformerLab('VirtualService').install();
  const one = sizeOf(probe.put('a'));
  const budget = new Budget({ most: (objects + 0.9) * one, ...(within && { within }) });
  const it = new InformerLab('VirtualService', { budget, pageSize: 2 }).install();
  labs.push(it);
  return { it, budget };
}

const put = (it: InformerLab, ...names: readonly string[]): void => names.forEach((name) => void it.put(name));

test('a list that does not fit is not delivered; it is read again a minute later', async () => {
  const { it, budget } = lab(3);
  put(it, ...'abcdef');
  await it.start();
  expect(it.informer.stats()).toMatchObject({ synced: false, objects: 0, trouble: 'OverBudget' });
  expect(budget.used).toBe(0);
  it.requests();
  await it.clock.advance(59_000);
  expect(it.requests()).toEqual([]);
  for (const name of 'cdef') it.delete(name);
  await it.clock.advance(1_500);
  expect(it.served()).toEqual({ a: 'a', b: 'b' });
});

test('what is known stays while there is more than fits, and is right again once there is less', async () => {
  const { it, budget } = lab(3);
  put(it, 'a', 'b');
  await it.start();
  const used = budget.used;
  put(it, 'a', ...'cdefg');
  await it.clock.settle();
  expect(it.informer.stats()).toMatchObject({ trouble: 'OverBudget' });
  expect(Object.keys(it.served())).toEqual(expect.arrayContaining(['a', 'b']));
  expect(budget.used).toBeLessThanOrEqual(budget.most);
  for (const name of 'cdefg') it.delete(name);
  await it.clock.advance(61_000);
  expect(it.served()).toEqual({ a: 'a', b: 'b' });
  expect(budget.used).toBe(used);
});

test('what is gone gives its room back', async () => {
  const { it, budget } = lab(3);
  put(it, 'a', 'b');
  await it.start();
  for (const name of ['c', 'd', 'e', 'f', 'g', 'h']) {
    it.put(name);
    it.delete(name);
    await it.clock.settle();
  }
  expect(it.served()).toEqual({ a: 'a', b: 'b' });
  expect(it.informer.stats().trouble).toBeUndefined();
  await it.stop();
  expect(budget.used).toBe(0);
});

test('several have a budget together, and each has its own', async () => {
  const all = new Budget({ most: lab(4).budget.most });
  const [one, other] = [lab(3, all), lab(3, all)];
  put(one.it, 'a', 'b');
  put(other.it, 'a', 'b', 'c');
  await one.it.start();
  await other.it.start();
  expect(other.it.informer.stats().trouble).toBe('OverBudget');
  await one.it.stop();
  await other.it.clock.advance(61_000);
  expect(Object.keys(other.it.served())).toEqual(['a', 'b', 'c']);
});

test('what does not fit is told to nobody', () => {
  const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } };
  const told: string[] = [];
  const sink = {
    replace: (objects: readonly KubernetesObject[]) => told.push(...objects.map(({ metadata }) => metadata.name)),
    upsert: () => undefined,
    delete: () => undefined,
  };
  const shape = { trim: () => object, same: () => true };
  const it = new SinkState({ sink, shape, ration: new Budget({ most: sizeOf(object) }).ration() });
  const two = new Map(['a', 'b'].map((name) => [name, { ...object, metadata: { name } }]));
  expect(() => it.swap(two)).toThrow('there are more objects than fit');
  expect([told, it.all.size]).toEqual([[], 0]);
  it.swap(new Map([['a', object]]));
  expect(told).toEqual(['a']);
});
