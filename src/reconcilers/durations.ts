const units: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  // U+00B5 micro sign and U+03BC Greek letter mu
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** 292 years: the limit of both Go's durations and Envoy's. */
const longest = 9_223_372_036_000;

/**
 * Milliseconds of a duration as Kubernetes and Istio users write it (`1h2m3.5s`, as in Go), possibly with a fraction.
 * Undefined if it is not a duration, is negative, or is too long for Envoy.
 */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0;
  if (text.length > 100) return undefined;
  const part = /\+?(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/y;
  let sum = 0;
  let end = 0;
  while (end < text.length) {
    part.lastIndex = end;
    const found = part.exec(text);
    if (found === null || (end > 0 && found[0].startsWith('+'))) return undefined;
    sum += Number(found[1]) * (units[found[2] ?? ''] ?? NaN);
    end = part.lastIndex;
  }
  if (end === 0 || !(sum <= longest)) return undefined;
  return Math.round(sum * 1e6) / 1e6;
}
