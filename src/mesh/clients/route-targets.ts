import type { Reader } from '../../cache/graph.ts';
import { isWildcard, wildcardKey } from '../../model/host.ts';
import type { RouteBinding } from '../../model/route-binding.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import { type Services, namespacesOf } from '../objects/services.ts';

/**
 * Namespaces whose views may contain the routes of an object: its own, and those of services and of other routes with
 * its hosts. `*`: any, because of a wildcard.
 */
export function routeTargets(
  binding: RouteBinding,
  read: Reader,
  services: Services,
  bindings: RouteBindings,
): ReadonlySet<string> {
  return new Set([...namespacesOfRivals(binding, read, bindings), ...namespacesOf(read, services, binding.hosts)]);
}

/** Namespaces whose views may contain the hosts of a route: its own, and those of others with these hosts. */
export function namespacesOfRivals(
  { namespace, hosts }: RouteBinding,
  read: Reader,
  { byHost, byWildcard }: RouteBindings,
): ReadonlySet<string> {
  const rivals = hosts.flatMap((host) =>
    isWildcard(host) ? read.group(byWildcard, wildcardKey(host)) : read.group(byHost, host),
  );
  return new Set([namespace, ...rivals.map(({ value }) => value.namespace)]);
}
