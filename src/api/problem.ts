import type { ObjectRef } from './object.ts';

/**
 * What is wrong with an object, for its owner. Never thrown, always reported: it ends in a condition
 * (`src/status/`) or in a line of `fairlead check`.
 */
export interface Problem {
  readonly object: ObjectRef;
  /** Path of the field, as kubectl prints it: `spec.http[0].route[1].destination.host`. */
  readonly field: string;
  readonly reason: ProblemReason;
  /** One sentence that names the value and says what to do next. */
  readonly message: string;
}

/** The condition that a problem makes False, and whether the object is still served, follow from the reason. */
export type ProblemReason =
  /** The object is not valid; the part named by the field is not served. -> Accepted=False */
  | 'Invalid'
  /** Another, older object has the same claim. -> Accepted=False */
  | 'Conflicted'
  /**
   * The field is part of Istio's API, but Fairlead does not act on it yet. Of the kinds with a CRD each such field is an
   * entry of one list, from which alone these problems come. -> Accepted=True, reason UnsupportedField
   */
  | 'UnsupportedField'
  /** What a supported field says here can have no effect; the object is served without it. -> Accepted=True, reason Ineffective */
  | 'Ineffective'
  /** It applies to more than its owner can have meant; served as it is written. -> Accepted=True, reason TooBroad */
  | 'TooBroad'
  /** A host, subset, gateway or secret that does not exist or is not visible. -> ResolvedRefs=False */
  | 'RefNotFound'
  /** A bug of ours while this object was processed; its last good state is served. -> Accepted=False */
  | 'InternalError';
