import { deepEqual } from '../equal.ts';
import { Graph } from '../graph.ts';
import { Input } from '../input.ts';

/** Every collection of a graph as plain data, absent entries left out. */
export function dump(graph: Graph): Map<string, Map<string, unknown>> {
  return new Map(graph.collections.map((c) => [c.name, new Map([...c.entries()])]));
}

/**
 * The oracle: the same inputs given to a new graph in one commit lead to the same entries everywhere. Throws with the
 * first difference.
 */
export function assertFromScratch(graph: Graph, declare: (graph: Graph) => void): void {
  const fresh = new Graph();
  declare(fresh);
  const writes = fresh.collections.flatMap((collection, i) => {
    const original = graph.collections[i];
    if (!(collection instanceof Input) || original === undefined) return [];
    return [...original.entries()].map(([key, value]) => collection.write(key, value));
  });
  fresh.commit(writes);
  assertSame(dump(graph), dump(fresh));
}

/** Throws with the first difference between two dumps. */
export function assertSame(
  actual: Map<string, Map<string, unknown>>,
  expected: Map<string, Map<string, unknown>>,
): void {
  for (const [name, entries] of expected) {
    const others = actual.get(name) ?? new Map<string, unknown>();
    for (const key of new Set([...entries.keys(), ...others.keys()])) {
      if (!deepEqual(entries.get(key), others.get(key)))
        throw new Error(
          `${name}[${key}] differs from a build from scratch: is ${print(others.get(key))}, should be ${print(entries.get(key))}`,
        );
    }
  }
}

function print(value: unknown): string {
  return (JSON.stringify(value) ?? 'absent').slice(0, 2000);
}
