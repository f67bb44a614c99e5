import type { Clock } from '../base/clock.ts';
import type { Config } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import type { KubeApi } from '../kube/client/client.ts';
import type { Outages } from '../kube/client/outages.ts';
import type { Logger } from '../ops/logger.ts';

/** What everything shares that talks to the own API server. */
export interface ClusterContext {
  readonly config: Config;
  readonly engine: Engine;
  readonly api: KubeApi;
  readonly outages: Outages;
  /** Name of this replica among those that share a Lease. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly signal: AbortSignal;
}
