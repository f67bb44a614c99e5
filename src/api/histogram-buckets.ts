import { parseJson } from './annotation-json.ts';
import { isObject } from './json.ts';

/**
 * What the annotation `sidecar.istio.io/statsHistogramBuckets` says: upper bounds by a prefix of the names of
 * statistics. Undefined: it is not JSON with rising numbers.
 */
export function readHistogramBuckets(text: string): Readonly<Record<string, readonly number[]>> | undefined {
  const value = parseJson(text);
  return isObject(value) && Object.values(value).every(areRising)
    ? (value as Record<string, readonly number[]>)
    : undefined;
}

function areRising(bounds: unknown): boolean {
  return (
    Array.isArray(bounds) &&
    bounds.length > 0 &&
    bounds.every((each: unknown, at) => typeof each === 'number' && each > (at === 0 ? 0 : Number(bounds[at - 1])))
  );
}
