import { expect, test, vi } from 'vitest';
import { ContentHasher } from './content-hash.ts';
import { InFlight } from '../protocol/in-flight.ts';
import { UNSENT } from '../protocol/sent.ts';
import { Batch, Served } from './served.ts';
import { CDS, resource } from '../testing/world.ts';

const hasher = new ContentHasher([1, 2]);
const served = (name: string, id: number): Served => new Served(resource(CDS, name, `${id}`), id, hasher);
const response = (...batches: Batch[]) => ({ ...UNSENT, batches, removed: [], prior: undefined, trial: undefined });

test('the newest of a name on its way is found at the cost of the name, however many others are on their way', () => {
  const inFlight = new InFlight(true, { has: () => true, names: { has: () => true } });
  const count = 5_000;
  inFlight.add(response(new Batch(Array.from({ length: count }, (_, i) => served(`${i}`, i))), new Batch([])));
  inFlight.add(response(new Batch([served('7', count)])));
  expect(inFlight.last('8')?.id).toBe(8);
  const looked = vi.spyOn(Served.prototype, 'name', 'get');
  expect([...inFlight.lastOf(['7', '9', 'other'])].map(([name, { id }]) => [name, id])).toEqual([
    ['7', count],
    ['9', 9],
  ]);
  expect(looked.mock.calls.length).toBeLessThan(10);
});
