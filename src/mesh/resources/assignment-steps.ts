import type { Place } from './places.ts';

/** The assignment of a host or subset, as seen from a place. */
export interface PlacedAssignment {
  /** 0: the host; others: its subsets, in order. */
  readonly index: number;
  /** See `AssignmentInput`. */
  readonly ignoresLabels: boolean;
  readonly place: Place;
}

/** The work of one run. */
export interface AssignmentStep {
  readonly id: string;
  readonly placed: readonly PlacedAssignment[];
}

/** Cost limit for one step, where places cannot be split further: in endpoints, up to 1 µs each. */
const costOfStep = 20_000;
/** Cost limit for a step with several places: the whole step is rebuilt when one of its places comes or goes. */
const costOfPlaces = 500;
/** Cost of an assignment without endpoints. */
const costOfNone = 10;

/**
 * A few places are one step. More places form a tree by the bits of their hashes, with steps as leaves: a place that
 * comes or goes changes only its own leaf.
 *
 * @param size of each assignment, in endpoints.
 */
export function stepsOf(placed: readonly PlacedAssignment[], size: number): AssignmentStep[] {
  const cost = costOfNone + size;
  const most = Math.floor(costOfPlaces / cost);
  const steps = placed.length <= most ? [{ id: '', placed }] : leavesOf(placed, most, '');
  const length = Math.max(1, Math.floor(costOfStep / cost));
  return steps.flatMap((step) => (step.placed.length <= length ? [step] : cut(step, length)));
}

function leavesOf(placed: readonly PlacedAssignment[], most: number, id: string): AssignmentStep[] {
  const first = placed[0]?.place.hash;
  if (placed.length <= most || placed.every(({ place }) => place.hash === first)) return [{ id, placed }];
  return [0, 1].flatMap((bit) => {
    const half = placed.filter(({ place }) => ((place.hash >>> id.length) & 1) === bit);
    return half.length === 0 ? [] : leavesOf(half, most, `${id}${bit}`);
  });
}

function cut({ id, placed }: AssignmentStep, length: number): AssignmentStep[] {
  return Array.from({ length: Math.ceil(placed.length / length) }, (_, i) => ({
    id: `${id}.${i}`,
    placed: placed.slice(i * length, (i + 1) * length),
  }));
}
