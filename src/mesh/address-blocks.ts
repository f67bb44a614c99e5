import type { Collection, Emit, Graph, Index, Order, Reader } from '../cache/graph.ts';
import { type Cidr, blockOf, overlap, parseCidr } from '../model/cidr.ts';

export interface AddressBlocks<V> {
  /** All with an address in the range, and some with one near it; possibly twice. In one block in the stated order. */
  within(read: Reader, range: Cidr): Iterable<V>;
}

/** Blocks of 256 addresses, and what they are in, up to all addresses of the family. */
const SMALLEST_BITS = 8;
const LARGER_BITS = [16, 24, 128];

/**
 * Entries by address, to be found by range. A tree of blocks: what comes or goes changes its own block of 256 addresses,
 * and those above only where there was nothing else in it. Groups of all that is in a range would be as large as the mesh.
 */
export function declareAddressBlocks<V>(
  graph: Graph,
  name: string,
  source: Collection<V>,
  addressesOf: (value: V) => readonly string[],
  order: Order<V>,
): AddressBlocks<V> {
  const leaves = graph.index(
    name,
    source,
    (_, value) => addressesOf(value).flatMap((address) => blockOf(address, SMALLEST_BITS) ?? []),
    order,
  );
  const levels: Index<string>[] = [];
  for (const bits of LARGER_BITS) {
    const below: Collection<unknown> = levels[0] ?? leaves;
    const blocks = graph.derive(`${name}, 2^${bits}`, below, (block, _, __, emit: Emit<string>) => emit(block, block));
    levels.unshift(graph.index(`${name} by 2^${bits}`, blocks, (_, block) => [blockOf(block, bits)!]));
  }
  function* descend(read: Reader, range: Cidr, block: string, depth: number): Generator<V> {
    const level = levels[depth];
    if (level === undefined) for (const { value } of read.group(leaves, block)) yield value;
    else
      for (const { value: child } of read.group(level, block))
        if (overlap(range, parseCidr(child)!)) yield* descend(read, range, child, depth + 1);
  }
  return {
    within: (read, range) => descend(read, range, blockOf(range.address, LARGER_BITS.at(-1)!)!, 0),
  };
}
