import type { BarrierTimes } from '../protocol/barrier.ts';
import type { AdsLimits } from './limits.ts';
import type { AdsEvents, ResourceTypes } from '../types.ts';

export interface AdsLog {
  info(message: string, fields: object): void;
  warn(message: string, fields: object): void;
}

export interface AdsServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly types: ResourceTypes;
  readonly events: AdsEvents;
  readonly log: AdsLog;
  /** Streams are refused with UNAVAILABLE while this returns false. */
  readonly ready: () => boolean;
  /** Milliseconds; only differences count. */
  readonly now: () => number;
  /** Overrides of the defaults. */
  readonly limits?: Partial<AdsLimits>;
  /** Overrides of the defaults: shorter in tests. */
  readonly times?: Partial<BarrierTimes>;
  /** How often timers are checked. */
  readonly tickMs?: number;
  /** Ends the server. */
  readonly signal: AbortSignal;
}
