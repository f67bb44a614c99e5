import type { Json } from '../api/json.ts';
import type { Read } from '../interception/option-values.ts';
import type { Annotations } from './annotations.ts';

const parts = [
  ['cpu', 'sidecar.istio.io/proxyCPU', 'sidecar.istio.io/proxyCPULimit'],
  ['memory', 'sidecar.istio.io/proxyMemory', 'sidecar.istio.io/proxyMemoryLimit'],
] as const;

/** Of the proxy. Annotations replace what the mesh has as a whole, so that no limit of it is below what they request. */
export function proxyResources(annotations: Annotations, fallback: Json): Read<Json> {
  const requests: Record<string, string> = {};
  const limits: Record<string, string> = {};
  for (const [name, request, limit] of parts) {
    const [least, most] = [annotations[request], annotations[limit]];
    if (least !== undefined && most !== undefined && sizeOf(least) > sizeOf(most))
      return { wrong: `annotation ${request}: "${least}" is more than the limit of ${limit}, "${most}"` };
    if (least !== undefined) requests[name] = least;
    if (most !== undefined) limits[name] = most;
  }
  const [hasRequests, hasLimits] = [requests, limits].map((each) => Object.keys(each).length > 0);
  if (!hasRequests && !hasLimits) return { value: fallback };
  return { value: { ...(hasRequests && { requests }), ...(hasLimits && { limits }) } };
}

const decimal = ['m', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const binary = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

/** Of a quantity whose syntax has been checked. */
function sizeOf(quantity: string): number {
  const [, number, suffix = ''] = /^([\d.]+)(.*)$/.exec(quantity) ?? [];
  if (binary.includes(suffix)) return Number(number) * 1024 ** binary.indexOf(suffix);
  if (decimal.includes(suffix)) return Number(number) * 1000 ** (decimal.indexOf(suffix) - 1);
  return Number(quantity);
}
