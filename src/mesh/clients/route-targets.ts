import type { Reader } from '../../cache/graph.ts';
import { isWildcard } from '../../model/host.ts';
import type { VirtualServiceModel } from '../../model/virtual-service.ts';
import { type Services, namespacesOf } from '../objects/services.ts';
import { type VirtualServices, wildcardKey } from '../objects/virtual-services.ts';

/**
 * Namespaces whose views may contain routes of one of the mesh's VirtualServices: its own, and those of services and
 * other VirtualServices with its hosts. `*`: any, because of a wildcard.
 */
export function routeTargets(
  model: VirtualServiceModel,
  read: Reader,
  services: Services,
  virtualServices: VirtualServices,
): ReadonlySet<string> {
  return new Set([...namespacesOfRivals(model, read, virtualServices), ...namespacesOf(read, services, model.hosts)]);
}

/** Namespaces whose views may contain the hosts of a VirtualService: its own, and those of others with these hosts. */
export function namespacesOfRivals(
  { namespace, hosts }: VirtualServiceModel,
  read: Reader,
  { byHost, byWildcard }: VirtualServices,
): ReadonlySet<string> {
  const rivals = hosts.flatMap((host) =>
    isWildcard(host) ? read.group(byWildcard, wildcardKey(host)) : read.group(byHost, host),
  );
  return new Set([namespace, ...rivals.map(({ value }) => value.namespace)]);
}
