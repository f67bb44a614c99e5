import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { isWildcard } from '../../model/host.ts';
import { type MeshService, isRouted, routedPort } from '../../model/service.ts';
import { egressImports, importedPorts, takesPort } from '../../model/sidecar.ts';
import { type CoveredServices, coveredBy } from './covered-services.ts';
import { type ClientView, type ServiceLookup, serviceFor } from './lookups.ts';
import type { RouteHost, RouteHosts } from './route-hosts.ts';
import type { RouteHostView, Views } from './views.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import { egressOf } from '../objects/sidecars.ts';

export interface PortDeps extends ServiceLookup {
  readonly routeHosts: RouteHosts;
  readonly bindings: RouteBindings;
  readonly coveredServices: CoveredServices;
  readonly portsByRoutes: PortsByRoutes;
}

/** For clients with a Sidecar, the ports of the services that the hosts of routes name: all of them ask. */
export type PortsByRoutes = Collection<readonly number[]>;

export function declarePortsByRoutes(
  graph: Graph,
  { routeHostViews }: Views,
  deps: Omit<PortDeps, 'portsByRoutes'>,
): PortsByRoutes {
  const uses = graph.index<RouteHostView>('clients of routes', routeHostViews, (_, { view, host }) =>
    view.egress === undefined ? [] : [portsKey(host.bindingKey, view)],
  );
  return graph.derive('ports by routes', uses, (key, [first], read, emit: Emit<readonly number[]>) => {
    const { view, host } = first.value;
    emit(key, computedPorts(host.bindingKey, view, read, deps));
  });
}

function portsKey(bindingKey: string, { client, traits, egress }: ClientView): string {
  return [bindingKey, client, traits.proxyType, egress?.sidecar, egress?.listener].join('|');
}

/** Whether HTTP proxies get a host without a service: only alongside services on port 80. */
export function isProxied(
  { bindingKey }: Pick<RouteHost, 'bindingKey'>,
  view: ClientView,
  read: Reader,
  deps: PortDeps,
): boolean {
  return namedPorts(bindingKey, view, read, deps).includes(80);
}

/** Ports on which the hosts of routes are served if they have no service there: 80, and those of its services. */
export function activePorts(bindingKey: string, view: ClientView, read: Reader, deps: PortDeps): ReadonlySet<number> {
  return new Set([80, ...namedPorts(bindingKey, view, read, deps)]);
}

/** Ports of the services that their hosts name. */
function namedPorts(bindingKey: string, view: ClientView, read: Reader, deps: PortDeps): readonly number[] {
  const known = view.egress && read.get(deps.portsByRoutes, portsKey(bindingKey, view));
  return known ?? computedPorts(bindingKey, view, read, deps);
}

function computedPorts(
  bindingKey: string,
  view: ClientView,
  read: Reader,
  deps: Omit<PortDeps, 'portsByRoutes'>,
): readonly number[] {
  const { hosts, ports, others } = read.get(deps.routeHosts.named, bindingKey) ?? {
    hosts: [],
    ports: [],
    others: [],
  };
  const isWhole = egressOf(read, deps.sidecars, view) === undefined;
  const single = isWhole ? others : [...hosts, ...others];
  const found = new Set(single.flatMap((host) => portsFor(host, view, read, deps, 'routed')));
  return [...new Set([...(isWhole ? ports : []), ...found])];
}

/**
 * Ports of the service with that name, or of the services under that wildcard, as the clients see them: all, or only
 * those served as HTTP.
 */
export function portsFor(
  host: string,
  view: ClientView,
  read: Reader,
  deps: Omit<PortDeps, 'portsByRoutes'>,
  which: 'ports' | 'routed',
): readonly number[] {
  if (!isWildcard(host)) return portsOf(host, view, read, deps, which);
  const listener = egressOf(read, deps.sidecars, view);
  const covered = coveredBy(host, { client: view.client, listener }, which, read, deps.coveredServices);
  return [...covered.ports, ...covered.hosts.flatMap((name) => portsOf(name, view, read, deps, which))];
}

/** Whether the clients reach the port of a service, which is theirs for its host, by HTTP. */
export function isRoutedOn(
  service: MeshService,
  port: number,
  view: ClientView,
  read: Reader,
  deps: PortDeps,
): boolean {
  if (isWildcard(service.host)) return portsFor(service.host, view, read, deps, 'routed').includes(port);
  const listener = egressOf(read, deps.sidecars, view);
  return (
    routedPort(service.ports, port) !== undefined &&
    (listener === undefined || (takesPort(listener, port) && egressImports(listener.hosts, view.client, service)))
  );
}

function portsOf(
  host: string,
  view: ClientView,
  read: Reader,
  deps: Omit<PortDeps, 'portsByRoutes'>,
  which: 'ports' | 'routed',
): readonly number[] {
  const service = serviceFor(read, deps, view, host);
  if (service === undefined) return [];
  const listener = egressOf(read, deps.sidecars, view);
  const imported = listener && importedPorts(listener, view.client, service);
  return service.ports
    .filter((port) => which === 'ports' || isRouted(port.protocol))
    .map((port) => port.number)
    .filter((port) => imported === undefined || imported.includes(port));
}
