const UNITS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1, us: 0.001, ns: 0.000001 };
/** Longer than any Envoy drains by default (10 min), and short enough that nothing is kept forever. */
const MAX_MS = 3_600_000;

/**
 * How long a proxy's former listeners keep serving, in milliseconds: `drainDuration` of the ProxyConfig that Istio's
 * agent reports in the node metadata and starts Envoy with. Undefined if the node does not report it.
 */
export function drainTimeOf(metadata: Readonly<Record<string, unknown>>): number | undefined {
  const config = metadata['PROXY_CONFIG'];
  const text = typeof config === 'object' && config !== null ? Reflect.get(config, 'drainDuration') : undefined;
  if (typeof text !== 'string' || text.length > 64) return undefined;
  let [total, rest] = [0, text];
  while (rest !== '') {
    const part = /^(\d+(?:\.\d+)?)(h|ms|us|ns|m|s)/.exec(rest);
    if (part === null) return undefined;
    total += Number(part[1]) * UNITS[part[2]!]!;
    rest = rest.slice(part[0].length);
  }
  return text === '' ? undefined : Math.min(total, MAX_MS);
}
