import type { Collection, Graph } from '../cache/graph.ts';

/** Answers what the graph asks the world for, into an input of the graph. */
export interface Worker<Wanted> {
  /** From now on; again when what is wanted has changed. */
  want(key: string, wanted: Wanted): void;
  /** No longer: takes the answer back. */
  unwant(key: string): void;
}

/** Has everything in a collection answered for as long as it is there. */
export function followWanted<Wanted>(graph: Graph, wanted: Collection<Wanted>, worker: Worker<Wanted>): void {
  graph.follow(wanted, (changes) => {
    for (const { key, after } of changes)
      if (after === undefined) worker.unwant(key);
      else worker.want(key, after);
  });
}
