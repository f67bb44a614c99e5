import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Emit, Graph } from '../cache/graph.ts';
import { covers, parseCidr } from '../model/cidr.ts';
import { declareAddressBlocks } from './address-blocks.ts';

const byte = fc.constantFrom(0, 1, 7, 255);
const v4 = fc.tuple(byte, byte, byte, byte).map((bytes) => bytes.join('.'));
const v6 = fc
  .array(fc.constantFrom('0', '1', 'ff', 'ffff'), { minLength: 8, maxLength: 8 })
  .map((all) => all.join(':'));
const range = fc.oneof(
  fc.tuple(v4, fc.integer({ min: 0, max: 32 })).map(([address, length]) => `${address}/${length}`),
  fc.tuple(v6, fc.integer({ min: 0, max: 128 })).map(([address, length]) => `${address}/${length}`),
);

test('whatever comes and goes, a range finds all that is in it', () => {
  const step = fc.record({
    key: fc.constantFrom('a', 'b', 'c', 'd'),
    addresses: fc.array(fc.oneof(v4, v6), { maxLength: 3 }),
  });
  fc.assert(
    fc.property(range, fc.array(step), (text, steps) => {
      const graph = new Graph();
      const hosts = graph.input<readonly string[]>('hosts');
      const blocks = declareAddressBlocks(
        graph,
        'blocks',
        hosts,
        (addresses) => ({ ports: [80, 81], addresses }),
        () => 0,
      );
      const ranges = graph.input<string>('ranges');
      const cidr = parseCidr(text)!;
      const isIn = (addresses: readonly string[]): boolean => addresses.some((address) => covers(cidr, address));
      const found = graph.derive('found', ranges, (key, _, read, emit: Emit<readonly (readonly string[])[]>) => {
        emit(key, [...blocks.within(read, 80, cidr)].filter(isIn));
      });
      graph.commit([ranges.write('range', text)]);
      for (const { key, addresses } of steps) {
        graph.commit([hosts.write(key, addresses.length === 0 ? undefined : addresses)]);
        const all = [...hosts.entries()].map(([, value]) => value).filter(isIn);
        expect(new Set(found.get('range'))).toEqual(new Set(all));
      }
    }),
  );
});
