import type { Duration } from './gen/types.gen.ts';

/** A protobuf Duration from milliseconds, possibly with a fraction. */
export function duration(ms: number): Duration {
  const seconds = Math.trunc(ms / 1000);
  const nanos = Math.round((ms - seconds * 1000) * 1_000_000);
  return nanos === 0 ? { seconds } : { seconds, nanos };
}
