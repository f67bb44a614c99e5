import type { Collection, Graph, Index, Reader } from '../cache/graph.ts';

const ALL = 'all';

/** A small collection as one group, for transforms that need all its entries. */
export function wholeOf<V>(graph: Graph, name: string, collection: Collection<V>): Index<V> {
  return graph.index(name, collection, () => [ALL]);
}

export function allOf<V>(read: Reader, whole: Index<V>): readonly V[] {
  return read.group(whole, ALL).map(({ value }) => value);
}
