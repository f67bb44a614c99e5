import type { Reader } from '../../cache/graph.ts';
import { isWildcard } from '../../model/host.ts';
import { isRouted } from '../../model/service.ts';
import { importedPorts } from '../../model/sidecar.ts';
import { type CoveredServices, coveredBy } from './covered-services.ts';
import { type ClientView, type ServiceLookup, serviceFor } from './lookups.ts';
import type { RouteHost, RouteHosts } from './route-hosts.ts';
import { egressOf } from '../objects/sidecars.ts';
import type { VirtualServices } from '../objects/virtual-services.ts';

export interface PortDeps extends ServiceLookup {
  readonly routeHosts: RouteHosts;
  readonly coveredServices: CoveredServices;
  readonly virtualServices: VirtualServices;
}

/** Whether HTTP proxies get a host without a service: only alongside services on port 80. */
export function isProxied(
  { virtualService }: Pick<RouteHost, 'virtualService'>,
  view: ClientView,
  read: Reader,
  deps: PortDeps,
): boolean {
  return namedPorts(virtualService, view, read, deps).has(80);
}

/** Ports on which a VirtualService's hosts are served if they have no service there: 80, and those of its services. */
export function activePorts(
  virtualService: string,
  view: ClientView,
  read: Reader,
  deps: PortDeps,
): ReadonlySet<number> {
  return new Set([80, ...namedPorts(virtualService, view, read, deps)]);
}

/** Ports of the services that the VirtualService's hosts name. */
function namedPorts(virtualService: string, view: ClientView, read: Reader, deps: PortDeps): ReadonlySet<number> {
  const { hosts, ports, others } = read.get(deps.routeHosts.named, virtualService) ?? {
    hosts: [],
    ports: [],
    others: [],
  };
  const isWhole = egressOf(read, deps.sidecars, view) === undefined;
  const single = isWhole ? others : [...hosts, ...others];
  return new Set([...(isWhole ? ports : []), ...single.flatMap((host) => portsFor(host, view, read, deps, 'routed'))]);
}

/**
 * Ports of the service with that name, or of the services under that wildcard, as the clients see them: all, or only
 * those served as HTTP.
 */
export function portsFor(
  host: string,
  view: ClientView,
  read: Reader,
  deps: PortDeps,
  which: 'ports' | 'routed',
): readonly number[] {
  if (!isWildcard(host)) return portsOf(host, view, read, deps, which);
  const listener = egressOf(read, deps.sidecars, view);
  const covered = coveredBy(host, { client: view.client, listener }, which, read, deps.coveredServices);
  return [...covered.ports, ...covered.hosts.flatMap((name) => portsOf(name, view, read, deps, which))];
}

function portsOf(
  host: string,
  view: ClientView,
  read: Reader,
  deps: PortDeps,
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
