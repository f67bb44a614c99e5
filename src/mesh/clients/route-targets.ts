import type { Reader } from '../../cache/graph.ts';
import type { VirtualServiceModel } from '../../model/virtual-service.ts';
import { type Services, namespacesOf } from '../objects/services.ts';
import type { VirtualServices } from '../objects/virtual-services.ts';

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
  const rivals = model.hosts.flatMap((host) => read.group(virtualServices.byHost, host));
  return new Set([
    model.namespace,
    ...namespacesOf(read, services, model.hosts),
    ...rivals.map(({ value }) => value.namespace),
  ]);
}
