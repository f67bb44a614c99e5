import type { Collection, Emit, Graph, Index, Order, Reader } from '../cache/graph.ts';
import { type Cidr, blockOf, overlap, parseCidr } from '../model/cidr.ts';

export interface AddressBlocks<V> {
  /** All with the port and an address in the range, and some with one near it; possibly twice. In one block in the stated order. */
  within(read: Reader, port: number, range: Cidr): Iterable<V>;
}

/** Blocks of 256 addresses, and what they are in, up to all addresses of the family. */
const SMALLEST_BITS = 8;
const LARGER_BITS = [16, 24, 128];

/**
 * Entries by port and address, to be found by range. A tree of blocks: what comes or goes changes its own block of 256 addresses,
 * and those above only where there was nothing else in it. Groups of all that is in a range would be as large as the mesh.
 */
export function declareAddressBlocks<V>(
  graph: Graph,
  name: string,
  source: Collection<V>,
  addressesOf: (value: V) => { readonly ports: readonly number[]; readonly addresses: readonly string[] },
  order: Order<V>,
): AddressBlocks<V> {
  const leaves = graph.index(
    name,
    source,
    (_, value) => {
      const { ports, addresses } = addressesOf(value);
      const blocks = addresses.flatMap((address) => blockOf(address, SMALLEST_BITS) ?? []);
      return ports.flatMap((port) => blocks.map((block) => keyOf(port, block)));
    },
    order,
  );
  const levels: Index<string>[] = [];
  for (const bits of LARGER_BITS) {
    const below: Collection<unknown> = levels[0] ?? leaves;
    const blocks = graph.derive(`${name}, 2^${bits}`, below, (key, _, __, emit: Emit<string>) => emit(key, key));
    levels.unshift(
      graph.index(`${name} by 2^${bits}`, blocks, (_, key) => {
        const { port, block } = partsOfKey(key);
        return [keyOf(port, blockOf(block, bits)!)];
      }),
    );
  }
  function* descend(read: Reader, range: Cidr, key: string, depth: number): Generator<V> {
    const level = levels[depth];
    if (level === undefined) for (const { value } of read.group(leaves, key)) yield value;
    else
      for (const { value: child } of read.group(level, key))
        if (overlap(range, parseCidr(partsOfKey(child).block)!)) yield* descend(read, range, child, depth + 1);
  }
  return {
    within: (read, port, range) => descend(read, range, keyOf(port, blockOf(range.address, LARGER_BITS.at(-1)!)!), 0),
  };
}

const keyOf = (port: number | string, block: string): string => `${port}|${block}`;

function partsOfKey(key: string): { readonly port: string; readonly block: string } {
  const at = key.indexOf('|');
  return { port: key.slice(0, at), block: key.slice(at + 1) };
}
