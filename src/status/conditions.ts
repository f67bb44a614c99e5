import { numberOf } from '../api/problem-list.ts';
import { type Place, placeKey } from '../api/place.ts';
import type { Problem, ProblemReason } from '../api/problem.ts';

/** A condition without the time of its last change, which only its writer knows. */
export interface Condition {
  readonly type: 'Accepted' | 'ResolvedRefs' | 'Programmed';
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  /** The generation of the object that was judged; a JSON integer. */
  readonly observedGeneration: number;
  /** Not written where there is a condition of this type for this generation. */
  readonly isDefault?: true;
}

/** What is said at one place of a status. */
export interface PlacedConditions {
  readonly place: Place;
  readonly conditions: readonly Condition[];
}

/** Messages are for people: this many findings are named, the others are counted. */
const NAMED = 5;

/** Findings for which an object is not accepted. The first that there is becomes the reason. */
const NOT_ACCEPTED: readonly ProblemReason[] = ['InternalError', 'Invalid', 'Conflicted'];

/** Findings that leave an object accepted, although it does less or more than its owner meant. */
const REMARKS: readonly ProblemReason[] = ['UnsupportedField', 'Ineffective', 'TooBroad'];

/** Conditions for each place, from the problems at that place and those of the whole object. */
export function conditionsByPlace(
  generation: number,
  places: readonly Place[],
  problems: readonly Problem[],
  waits?: string | undefined,
): readonly PlacedConditions[] {
  const keys = new Set(places.map(placeKey));
  // What is wrong at a place of which nothing is said must not be lost.
  const keyOf = ({ place }: Problem) =>
    place !== undefined && keys.has(placeKey(place)) ? placeKey(place) : undefined;
  return places.map((place) => {
    const key = placeKey(place);
    const here = problems.filter((problem) => (keyOf(problem) ?? key) === key);
    return { place, conditions: conditionsOf(generation, here, waits) };
  });
}

/**
 * What the owner of an object is told. `Accepted`: it is valid and lost no conflict; `ResolvedRefs`: everything that it
 * names exists. Remarks leave it accepted, and are named there.
 * @param waits if it is not in force because it waits for other objects: a sentence about that. References are resolved
 * only for what is in force.
 */
export function conditionsOf(
  generation: number,
  problems: readonly Problem[],
  waits?: string | undefined,
): readonly Condition[] {
  const of = (reason: ProblemReason) => problems.filter((problem) => problem.reason === reason);
  const notAccepted = NOT_ACCEPTED.find((reason) => of(reason).length > 0);
  const remark = REMARKS.find((reason) => of(reason).length > 0);
  const missing = of('RefNotFound');
  const accepted =
    notAccepted === undefined
      ? {
          status: 'True' as const,
          reason: remark ?? 'Accepted',
          message: remark === undefined ? 'The object is valid.' : print(REMARKS.flatMap(of)),
        }
      : { status: 'False' as const, reason: notAccepted, message: print(NOT_ACCEPTED.flatMap(of)) };
  return [
    { type: 'Accepted', ...accepted, observedGeneration: generation },
    {
      type: 'ResolvedRefs',
      ...(waits !== undefined
        ? { status: 'Unknown' as const, reason: 'Waiting', message: waits }
        : missing.length === 0
          ? { status: 'True' as const, reason: 'ResolvedRefs', message: 'All references resolve.' }
          : { status: 'False' as const, reason: 'RefNotFound', message: print(missing) }),
      observedGeneration: generation,
    },
  ];
}

function print(problems: readonly Problem[]): string {
  const named = problems.slice(0, NAMED).map(({ field, message }) => (field === '' ? message : `${field}: ${message}`));
  const more = problems.slice(NAMED).reduce((sum, problem) => sum + numberOf(problem), 0);
  return more > 0 ? `${named.join(' ')} And ${more} more.` : named.join(' ');
}
