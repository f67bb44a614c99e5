import type { Collection, Emit, Graph, Index } from '../../cache/graph.ts';
import { compareAge } from '../../model/age.ts';
import { isWildcard } from '../../model/host.ts';
import { type MeshService, isRouted } from '../../model/service.ts';
import { isInMesh } from '../../model/route-binding.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import { type Services, shardOf } from '../objects/services.ts';

/**
 * A host of routes of the mesh. On ports where no service has that name, it is a virtual host of its own: always on
 * port 80, and on other ports alongside the services that its routes' hosts name.
 */
export interface RouteHost {
  /** Key of the `RouteBinding`. */
  readonly bindingKey: string;
  /** That of the routes. */
  readonly namespace: string;
  readonly host: string;
  readonly exportTo: readonly string[];
  readonly createdAt: string;
  readonly name: string;
  /** Whether there are rules for requests. Without them, it is only a source of destinations. */
  readonly routed: boolean;
}

/** The services that the hosts of routes name: they decide on which ports all these hosts are served. */
export interface NamedServices {
  /** Hosts with exactly one service, exported to everyone. */
  readonly hosts: readonly string[];
  /** HTTP ports of these services. */
  readonly ports: readonly number[];
  /** Wildcards, and hosts of services that clients see differently. */
  readonly others: readonly string[];
}

export interface RouteHosts {
  readonly hosts: Collection<RouteHost>;
  /**
   * By key of the binding. Each of its hosts reads this: there may be thousands, and few of them name a service.
   */
  readonly named: Collection<NamedServices>;
  readonly byShard: Index<RouteHost>;
  /** Services and route hosts by host name: those that may own a domain. */
  readonly owners: Index<MeshService | RouteHost>;
}

/** Declared before views, because shards hold these hosts too. */
export function declareRouteHosts(graph: Graph, services: Services, bindings: RouteBindings): RouteHosts {
  const hosts = graph.derive('routeHosts', bindings.all, (key, binding, _, emit: Emit<RouteHost>) => {
    if (!isInMesh(binding)) return;
    const { namespace, exportTo, createdAt, name, hasRequests: routed } = binding;
    for (const host of binding.hosts)
      if (host !== '*')
        emit(`${key}|${host}`, {
          bindingKey: key,
          namespace,
          host,
          exportTo,
          createdAt,
          name,
          routed,
        });
  });
  const named = graph.derive('named services', bindings.all, (key, binding, read, emit: Emit<NamedServices>) => {
    if (!isInMesh(binding)) return;
    const found = { hosts: [] as string[], ports: new Set<number>(), others: [] as string[] };
    for (const host of binding.hosts) {
      const [first, ...more] = isWildcard(host) ? [] : read.group(services.byHost, host);
      if (first !== undefined && more.length === 0 && first.value.exportTo.includes('*')) {
        found.hosts.push(host);
        for (const { number, protocol } of first.value.ports) if (isRouted(protocol)) found.ports.add(number);
      } else if (first !== undefined || isWildcard(host)) found.others.push(host);
    }
    emit(key, { ...found, ports: [...found.ports].sort((a, b) => a - b) });
  });
  return {
    hosts,
    named,
    byShard: graph.index(
      'route hosts by shard',
      hosts,
      (_, value) => [shardOf(value)],
      (a, b) => compareAge(a.value, b.value),
    ),
    owners: graph.index<MeshService | RouteHost>('owners of domains', [services.services, hosts], (_, value) =>
      ('resolution' in value ? value.resolution !== 'Alias' : value.routed) ? [value.host] : [],
    ),
  };
}
