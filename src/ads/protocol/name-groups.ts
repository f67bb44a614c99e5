import { NONE } from './ledger.ts';
import type { Names } from '../store/served.ts';

/** Names that have shared the same fate so far. */
export interface Group {
  readonly names: Names;
}

export function notEmpty<G extends Group>(groups: readonly G[]): readonly G[] {
  return groups.filter(({ names }) => names.size > 0);
}

/** The part of a group that is in a set, and the rest. */
export function split<G extends Group>(group: G, set: Names): [G, G] {
  const { names } = group;
  const [few, many] = set.size < names.size ? [set, names] : [names, set];
  const within = new Set([...few.keys()].filter((name) => many.has(name)));
  const [all, none] = [group, { ...group, names: NONE }];
  if (within.size === 0) return [none, all];
  if (within.size === names.size) return [all, none];
  const without = new Set([...names.keys()].filter((name) => !within.has(name)));
  return [
    { ...group, names: within },
    { ...group, names: without },
  ];
}
