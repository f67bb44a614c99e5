import type { Run } from './derived.ts';

/**
 * Something that can be read: one key of a collection or one group of an index, present or absent. Tracks its readers.
 */
export interface Cell {
  readonly key: string;
  /** The collection that holds it. */
  readonly home: { forget(key: string): void };
  value: unknown;
  /** Runs that read this cell; an array while there are few. */
  dependents: Run[] | Set<Run> | undefined;
  /** The last run that recorded a read of it; a run records each cell once. */
  stamp: number;
  /** The last run that had already read it before running again. */
  formerStamp: number;
  /** The run that emitted the value (Derived collections). */
  owner: Run | undefined;
  /** Runs that emitted the same key and lost. */
  losers: Set<Run> | undefined;
}

const SMALL = 8;

export function newCell(home: Cell['home'], key: string): Cell {
  return {
    key,
    home,
    value: undefined,
    dependents: undefined,
    stamp: 0,
    formerStamp: 0,
    owner: undefined,
    losers: undefined,
  };
}

export function addDependent(cell: Cell, run: Run): void {
  const dependents = cell.dependents;
  if (dependents === undefined) cell.dependents = [run];
  else if (dependents instanceof Set) dependents.add(run);
  else if (dependents.length < SMALL) cell.dependents = [...dependents, run];
  else cell.dependents = new Set(dependents).add(run);
}

export function removeDependent(cell: Cell, run: Run): void {
  const dependents = cell.dependents;
  if (dependents instanceof Set) {
    dependents.delete(run);
    if (dependents.size === 0) cell.dependents = undefined;
  } else if (dependents !== undefined) {
    const at = dependents.indexOf(run);
    if (at >= 0) {
      dependents[at] = dependents[dependents.length - 1]!;
      dependents.pop();
    }
    if (dependents.length === 0) cell.dependents = undefined;
  }
}

/** True if nothing holds a value in it, claims it or depends on it. */
export function isIdle(cell: Cell): boolean {
  return (
    cell.value === undefined && cell.dependents === undefined && cell.owner === undefined && cell.losers === undefined
  );
}
