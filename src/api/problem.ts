import type { ObjectRef } from './object.ts';
import type { Place } from './place.ts';

/**
 * What is wrong with an object, for its owner. Never thrown, always reported: it becomes a condition (`src/status/`) or
 * a line of `fairlead check`.
 */
export interface Problem {
  readonly object: ObjectRef;
  /** Path of the field, as kubectl prints it: `spec.http[0].route[1].destination.host`. */
  readonly field: string;
  readonly reason: ProblemReason;
  /** One sentence that names the value and says what to do next. */
  readonly message: string;
  /** Where only this is wrong: at one of its parents, for example. Absent: everywhere. */
  readonly place?: Place;
  /** Of how many findings like it this is the only one that is kept; absent: it is itself. */
  readonly standsFor?: number;
}

/** The reason determines which condition the problem makes False, and whether the object is still served. */
export type ProblemReason =
  /** The object is not valid; the part named by the field is not served. -> Accepted=False */
  | 'Invalid'
  /** An older object has the same claim. -> Accepted=False */
  | 'Conflicted'
  /**
   * The field is part of Istio's API, but Fairlead does not act on it yet. For kinds with a CRD, every such field is in
   * one list, and these problems come only from that list. -> Accepted=True, reason UnsupportedField
   */
  | 'UnsupportedField'
  /**
   * The value of a supported field can have no effect here; the object is served without it. -> Accepted=True, reason
   * Ineffective
   */
  | 'Ineffective'
  /** It applies to more than its owner can have meant; it is served as written. -> Accepted=True, reason TooBroad */
  | 'TooBroad'
  /** A host, subset, gateway or secret that does not exist or is not visible. -> ResolvedRefs=False */
  | 'RefNotFound'
  /** A bug of ours while processing this object; its last good state is served. -> Accepted=False */
  | 'InternalError';

/** A result that comes with findings about the objects that it was made from. */
export interface HasProblems {
  readonly problems: readonly Problem[];
}
