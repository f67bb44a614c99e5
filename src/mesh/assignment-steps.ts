import type { Place } from './places.ts';

/** The assignment of a host or subset, as a place sees it. */
export interface PlacedAssignment {
  /** 0: of the host; others: of its subsets, in their order. */
  readonly index: number;
  /** See `AssignmentInput`. */
  readonly ignoresLabels: boolean;
  readonly place: Place;
}

/** What is made in one run. */
export interface AssignmentStep {
  readonly id: string;
  readonly placed: readonly PlacedAssignment[];
}

/** What one step costs, where places can be told apart no further: in endpoints, up to 1 µs each. */
const costOfStep = 20_000;
/** What several places in one step cost: a place that comes or goes has it made again. */
const costOfPlaces = 500;
/** Of an assignment without endpoints. */
const costOfNone = 10;

/**
 * Few places are one step. Others are a tree by the bits of their hashes, of which the leaves are steps: a place that comes
 * or goes changes its own leaf, and no other.
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
