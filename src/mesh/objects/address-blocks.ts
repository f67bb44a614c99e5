import { joinKey, splitKey } from '../../api/keys.ts';
import { isIPv4 } from 'node:net';
import type { Collection, Emit, Graph, Index, Order, Reader } from '../../cache/graph.ts';
import { type Cidr, blockOf, leadingBits, parseCidr } from '../../model/cidr.ts';

export interface AddressBlocks<V> {
  /**
   * Every entry in another namespace with the port and an address in the range; also some with an address near it, and
   * possibly some twice. Within one block, in the given order.
   */
  ofOthers(read: Reader, namespace: string, port: number, range: Cidr): Iterable<V>;
}

interface Block {
  /** Leading bits of its addresses: see {@link leadingBits}. */
  readonly bits: string;
  /** The namespaces with entries in the block, two at most: enough to know whether any other namespace has one. */
  readonly namespaces: readonly string[];
}

/** Blocks of 256 addresses, and the blocks that contain them, up to all addresses of the family. */
const SMALLEST_BITS = 8;
const LARGER_BITS = [16, 24, 128];

/**
 * Finds entries by port and address range. A tree of blocks: an entry that comes or goes changes its own block of 256
 * addresses, and those above only if there was nothing else in it, or nothing of its namespace. Groups of everything in
 * a range would be as large as the mesh.
 */
export function declareAddressBlocks<V extends { readonly namespace: string }>(
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
      return ports.flatMap((port) => blocks.map((block) => joinKey(port, block)));
    },
    order,
  );
  const levels: { readonly bits: number; readonly blocks: Index<Block> }[] = [];
  for (const bits of LARGER_BITS) {
    const title = `${name}, 2^${bits}`;
    const derive = <S>(below: Index<S>, namespacesOf: (value: S) => readonly string[]): Collection<Block> =>
      graph.derive(title, below, (key, members, _, emit: Emit<Block>) => {
        const leading = leadingBits(parseCidr(splitKey(key)[1])!);
        emit(key, { bits: leading, namespaces: firstTwo(members, namespacesOf) });
      });
    const below = levels[0];
    const blocks =
      below === undefined
        ? derive(leaves, (value) => [value.namespace])
        : derive(below.blocks, ({ namespaces }) => namespaces);
    const index = graph.index(`${name} by 2^${bits}`, blocks, (key) => {
      const [port, block] = splitKey(key);
      return [joinKey(port, blockOf(block, bits)!)];
    });
    levels.unshift({ bits, blocks: index });
  }
  function* descend(read: Reader, namespace: string, bits: string, key: string, depth: number): Generator<V> {
    const level = levels[depth];
    if (level === undefined) {
      for (const { value } of read.group(leaves, key)) if (value.namespace !== namespace) yield value;
      return;
    }
    for (const { key: child, value } of read.group(level.blocks, key))
      if (value.namespaces.some((other) => other !== namespace) && overlap(bits, value.bits))
        yield* descend(read, namespace, bits, child, depth + 1);
  }
  return {
    ofOthers: (read, namespace, port, range) => {
      const bits = leadingBits(range);
      const hostBits = (isIPv4(range.address) ? 32 : 128) - range.length;
      // Start at the smallest block that holds the whole range.
      const depth = hostBits <= SMALLEST_BITS ? levels.length : levels.findLastIndex((level) => level.bits >= hostBits);
      const start = blockOf(range.address, levels[depth]?.bits ?? SMALLEST_BITS)!;
      return descend(read, namespace, bits, joinKey(port, start), depth);
    },
  };
}

function overlap(a: string, b: string): boolean {
  return a.startsWith(b) || b.startsWith(a);
}

function firstTwo<S>(
  members: Iterable<{ readonly value: S }>,
  namespacesOf: (value: S) => readonly string[],
): readonly string[] {
  const found = new Set<string>();
  for (const { value } of members)
    for (const namespace of namespacesOf(value)) {
      found.add(namespace);
      if (found.size === 2) return [...found];
    }
  return [...found];
}
