import { TestMesh, connectedProxy } from '../harness/mesh.ts';
import { casesOfDestinations } from './doubling-destinations.ts';
import type { DoublingCase } from './doubling-objects.ts';
import { casesOfOthers } from './doubling-others.ts';
import { casesOfRoutes } from './doubling-routes.ts';
import { type Executed, Executions } from './executions.ts';

/**
 * What is executed more than three times as often for lists that are all twice as long: what grows with the product of
 * two lists grows fourfold. Each piece of code by itself, so that no product hides behind work that everything causes.
 *
 *     node test/robustness/doubling.ts [part of a title]
 */
const SIZE = 24;
const executions = new Executions();

/** What an object causes that comes to a mesh, and then goes. */
async function workOf({ of, unconnected }: DoublingCase, size: number): Promise<Executed> {
  const { objects, beside } = of(size);
  const mesh = new TestMesh({ oracle: false });
  const node = { metadata: { LABELS: { app: 'a' }, NAMESPACE: 'shop' } };
  if (unconnected !== true)
    for (const type of ['sidecar', 'router'])
      mesh.connect(connectedProxy(type, { id: `${type}~10.1.0.1~a.shop~shop.svc.cluster.local`, ...node }));
  mesh.apply(beside);
  await executions.take();
  mesh.apply(objects);
  mesh.delete(objects);
  return executions.take();
}

await executions.start();
const [part = ''] = process.argv.slice(2);
const cases = [...casesOfRoutes, ...casesOfDestinations, ...casesOfOthers].filter(({ title }) => title.includes(part));
// The first time, much is made that is kept.
await workOf(casesOfRoutes[0]!, 2);
for (const one of cases) {
  const few = await workOf(one, SIZE);
  const many = await workOf(one, 2 * SIZE);
  for (const [key, count] of many)
    if (count >= SIZE * SIZE && count > 3 * (few.get(key) ?? 0))
      console.log(`${one.title}: PRODUCT ${few.get(key) ?? 0} → ${count} in ${executions.describe(key)}`);
}
console.log(`${cases.length} cases`);
