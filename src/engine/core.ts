import type { Clock } from '../base/clock.ts';
import type { Mesh } from '../mesh.ts';
import type { Committer } from './committer.ts';

/** What everything in the engine shares. */
export interface EngineCore {
  readonly mesh: Mesh;
  readonly committer: Committer;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}
