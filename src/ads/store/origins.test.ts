import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ObjectRef } from '../../api/object.ts';
import { Origins, originKey } from './origins.ts';
import { type LeafPart, type NodePart, type Part, leavesOf } from './resource.ts';

const ref = (name: string): ObjectRef => ({
  ...{ source: 'files', group: 'g', kind: 'K', namespace: 'shop', name, uid: name, generation: 1 },
});

/** How often the objects of a leaf were looked at. */
let looks = 0;

function leaf(...names: readonly string[]): LeafPart {
  const origins = names.map(ref);
  const facts = { bytes: new Uint8Array(), length: 0, hash: '', clusters: [], origins: [] };
  return Object.defineProperty(facts, 'origins', { get: () => (looks++, origins) }) as unknown as LeafPart;
}

const node = (...children: readonly Part[]): NodePart => ({ children, length: 0, hash: '' }) as unknown as NodePart;

const { part } = fc.letrec<{ part: Part }>((tie) => ({
  part: fc.oneof(
    { maxDepth: 3 },
    fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 2 }).map((names) => leaf(...names)),
    fc.array(tie('part'), { maxLength: 3 }).map((children) => node(...children)),
  ),
}));

test('a part is made from the objects of its leaves', () => {
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 3 }), (parts) => {
      const origins = new Origins();
      for (const name of ['a', 'b', 'x'])
        for (const each of [...parts, node(...parts)])
          expect(origins.has(each, originKey(ref(name)))).toBe(
            [...leavesOf(each)].some((one) => one.origins.some((origin) => origin.name === name)),
          );
    }),
  );
});

test('tables with the same nodes are looked at once, whatever is asked about them', () => {
  const shards = Array.from({ length: 20 }, (_, i) => node(leaf(`a-${i}`), leaf(`b-${i}`)));
  const namespaces = [node(...shards.slice(0, 10)), node(...shards.slice(10))];
  const tables = Array.from({ length: 50 }, (_, i) => node(leaf(`table-${i}`), ...namespaces));
  const origins = new Origins();
  looks = 0;
  for (let i = 0; i < 100; i++)
    for (const table of tables) expect(origins.has(table, originKey(ref(`a-${i}`)))).toBe(i < 20);
  expect(looks).toBe(20 * 2 + 50);
});
