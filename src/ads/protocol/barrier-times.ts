/** How long a stream waits for proof, in milliseconds. */
export interface BarrierTimes {
  /** A cluster stays this long after the last table stopped naming it: retries in back-off look it up again. */
  readonly lingerMs: number;
  /** A wait for an answer ends after this time; what waited is sent anyway, and counted. */
  readonly timeoutMs: number;
  /** If an answer is missing for this long, something that is warming holds it back. */
  readonly overdueMs: number;
  /** After this time, the barrier checks whether the client is stuck on something that it rejected. */
  readonly stuckMs: number;
  /** How long a former listener keeps routing. For a client that does not report it: Istio's default. */
  readonly drainMs: number;
}

export const BARRIER_TIMES: BarrierTimes = {
  lingerMs: 5_000,
  timeoutMs: 10_000,
  overdueMs: 10_000,
  stuckMs: 1_000,
  drainMs: 45_000,
};
