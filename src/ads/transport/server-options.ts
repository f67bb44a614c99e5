import type { BarrierTimes } from '../protocol/barrier.ts';
import type { AdsLimits } from './limits.ts';
import type { AdsEvents, ResourceTypes } from '../types.ts';

export interface AdsLog {
  info(message: string, fields: object): void;
  warn(message: string, fields: object): void;
}

export interface AdsServerOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly types: ResourceTypes;
  readonly events: AdsEvents;
  readonly log: AdsLog;
  /** Streams are refused with UNAVAILABLE while this says no. */
  readonly ready: () => boolean;
  /** Milliseconds; only differences count. */
  readonly now: () => number;
  /** Other than the defaults. */
  readonly limits?: Partial<AdsLimits>;
  /** Other than the defaults: shorter in tests. */
  readonly times?: Partial<BarrierTimes>;
  /** How often time is looked at. */
  readonly tickMs?: number;
  /** Ends the server. */
  readonly signal: AbortSignal;
}
