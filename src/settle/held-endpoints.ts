import type { Pod, Service } from '../api/core.ts';
import type { Workload } from '../model/endpoint.ts';
import { selects } from '../model/labels.ts';
import { type LostEndpoint, RELEASE_ANNOTATION } from '../model/lost-endpoints.ts';

/** What is known now of the Pod that a lost endpoint names. */
export interface KnownPod {
  readonly pod: Pod;
  /** What runs in it; undefined if it has no address or has ended. */
  readonly workload: Workload | undefined;
  /** How many Pods have the endpoint's address. */
  readonly atAddress: number;
}

/**
 * Whether what is known of its Pod contradicts a list that had the endpoint no longer: the Pod is still the one that
 * the Service selects, has the address for itself, and is ready. Then the endpoint is served on.
 */
export function isHeld(
  { address, pod: target, since }: LostEndpoint,
  service: Service,
  known: KnownPod | undefined,
): boolean {
  if (known?.workload?.ready !== true || known.pod.metadata.uid !== target.uid) return false;
  const { pod, workload, atAddress } = known;
  if (!workload.addresses.includes(address)) return false;
  // Pods in the network of their node share its address.
  if (pod.spec?.hostNetwork !== true && atAddress > 1) return false;
  if (!selects(service.spec?.selector ?? {}, pod.metadata.labels ?? {})) return false;
  return !(releasedAt(service) >= Date.parse(since));
}

/** What was lost before is not held any longer. NaN: the annotation is absent or not a time. */
function releasedAt(service: Service): number {
  return Date.parse(service.metadata.annotations?.[RELEASE_ANNOTATION] ?? '');
}

/** What is wrong with the annotation, as the end of a sentence that begins with its field. */
export function releaseMistake(service: Service): string | undefined {
  const text = service.metadata.annotations?.[RELEASE_ANNOTATION];
  if (text === undefined || !Number.isNaN(releasedAt(service))) return undefined;
  return `is not a time like 2030-01-31T12:00:00Z, so it releases nothing; use "fairlead release".`;
}
