import type { Problem, ProblemReason } from '../api/problem.ts';

/** A {@link Problem} that only `check` reports. */
export interface FileRemark extends Omit<Problem, 'reason'> {
  /** `Deprecated`: it works, and Istio has announced that it will not for ever. */
  readonly reason: ProblemReason | 'Deprecated';
}
