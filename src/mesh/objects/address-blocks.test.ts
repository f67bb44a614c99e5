import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Emit, Graph, type Reader } from '../../cache/graph.ts';
import { covers, parseCidr } from '../../model/cidr.ts';
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

interface Host {
  readonly namespace: string;
  readonly addresses: readonly string[];
}

function declareBlocks(graph: Graph) {
  const hosts = graph.input<Host>('hosts');
  const blocks = declareAddressBlocks(
    graph,
    'blocks',
    hosts,
    ({ addresses }) => ({ ports: [80, 81], addresses }),
    () => 0,
  );
  return { hosts, blocks };
}

test('whatever comes and goes, a range finds all of other namespaces that is in it', () => {
  const step = fc.record({
    key: fc.constantFrom('a', 'b', 'c', 'd'),
    namespace: fc.constantFrom('own', 'other', 'third'),
    addresses: fc.array(fc.oneof(v4, v6), { maxLength: 3 }),
  });
  fc.assert(
    fc.property(range, fc.array(step), (text, steps) => {
      const graph = new Graph();
      const { hosts, blocks } = declareBlocks(graph);
      const ranges = graph.input<string>('ranges');
      const cidr = parseCidr(text)!;
      const isIn = ({ addresses }: Host): boolean => addresses.some((address) => covers(cidr, address));
      const found = graph.derive('found', ranges, (key, _, read, emit: Emit<readonly Host[]>) => {
        emit(key, [...blocks.ofOthers(read, 'own', 80, cidr)].filter(isIn));
      });
      graph.commit([ranges.write('range', text)]);
      for (const { key, ...host } of steps) {
        graph.commit([hosts.write(key, host.addresses.length === 0 ? undefined : host)]);
        const all = [...hosts.entries()].map(([, value]) => value).filter(isIn);
        expect(new Set(found.get('range'))).toEqual(new Set(all.filter(({ namespace }) => namespace !== 'own')));
      }
    }),
  );
});

test('blocks of one namespace are not looked into for others', () => {
  const graph = new Graph();
  const { hosts, blocks } = declareBlocks(graph);
  const reads: string[] = [];
  const present: Reader = {
    get: graph.present.get,
    group: (index, key) => {
      reads.push(key);
      return graph.present.group(index, key);
    },
  };
  const look = (text: string) => [...blocks.ofOthers(present, 'own', 80, parseCidr(text)!)].length;
  graph.commit(
    Array.from({ length: 1000 }, (_, i) =>
      hosts.write(`${i}`, { namespace: 'own', addresses: [`10.${i >> 8}.${i & 255}.1`] }),
    ),
  );
  expect(look('0.0.0.0/0') + look('10.0.0.0/8') + look('10.0.1.0/24')).toBe(0);
  expect(reads).toEqual(['80|0.0.0.0/0', '80|10.0.0.0/8', '80|10.0.1.0/24']);
  graph.commit([hosts.write('other', { namespace: 'other', addresses: ['10.1.7.9'] })]);
  reads.length = 0;
  expect(look('10.0.0.0/8')).toBe(1);
  expect(reads).toEqual(['80|10.0.0.0/8', '80|10.1.0.0/16', '80|10.1.7.0/24']);
});
