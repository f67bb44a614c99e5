import type { Reader } from '../../cache/graph.ts';
import { type DomainClaim, type DomainsInput, addressesFor, domainClaims } from '../../settle/domains.ts';
import { isAddress } from '../../model/address.ts';
import {
  type MeshService,
  exportRank,
  isAtHomeIn,
  isVisibleTo,
  portNumbered,
  serviceKey,
} from '../../model/service.ts';
import { egressImportsRoutes } from '../../model/sidecar.ts';
import { isBareName, keepersOf } from '../objects/service-names.ts';
import { egressOf } from '../objects/sidecars.ts';
import { type ClientView, serviceFor } from './lookups.ts';
import type { RouteHost } from './route-hosts.ts';
import { type PortDeps, activePorts, isProxied, isRoutedOn } from './served-ports.ts';

/**
 * The domains of a virtual host to which no other host has a better claim. All claimants apply these rules to what the
 * same client sees, so each domain is in a table only once; otherwise Envoy would reject the whole table:
 *
 * 1. A Kubernetes Service keeps its short forms and addresses, before ServiceEntries in other namespaces.
 * 2. A domain that is the name of a host belongs to that host.
 * 3. The host that has the name of an alias, by routes of its own, has all its forms if the alias has the
 * port, and otherwise only the name, without a final dot. The same holds for a wildcard for pods.
 * 4. An address belongs to the first service that has it: the one exported to the fewest, then the older one; a
 * Service that has the address in another cluster comes last.
 *
 * The winner may end up without a virtual host, because its routes do not apply to the client: then the domain is
 * unused.
 */
export function freeDomains(subject: DomainsInput, view: ClientView, read: Reader, deps: PortDeps): readonly string[] {
  const { host, service } = subject;
  const isTaken = (name: string): boolean =>
    read
      .group(deps.routeHosts.owners, name)
      .some(
        ({ value: rival }) => isThere(rival, subject, view, read, deps) && !isKept(rival, subject, view, read, deps),
      );
  /** Routes for an alias without the port are for its full name alone. */
  const hasForms = (alias: string): boolean =>
    portNumbered(serviceFor(read, deps, view, alias)?.ports ?? [], subject.port) !== undefined;
  const isFree = ({ name, of, kind, absolute }: DomainClaim): boolean => {
    // The absolute form stays, so that a service always has a virtual host, and its port a table.
    if (name === host) return absolute || !isKept(service, subject, view, read, deps);
    // Routes for an alias without the port have no absolute form.
    const isLost = isTaken(name) && !(absolute && name === of && !hasForms(of));
    if (isLost || (of !== host && isTaken(of) && hasForms(of))) return false;
    if (kind === 'pods') return !isTaken(`*.${of}`);
    return kind !== 'address' || firstAt(name, subject, view, read, deps) === service?.host;
  };
  return domainClaims(subject)
    .filter(isFree)
    .flatMap(({ domains }) => domains);
}

/**
 * Whether a Service keeps the name of an entry, for this client. It does so on all ports, even those that it does not
 * have.
 */
function isKept(
  entry: MeshService | RouteHost | undefined,
  { client }: DomainsInput,
  view: ClientView,
  read: Reader,
  deps: PortDeps,
): boolean {
  if (entry === undefined || !('registry' in entry) || entry.registry !== 'External') return false;
  const bare = isBareName(entry.host);
  return keepersOf(entry, client.domainSuffix, read, deps.services).some(
    (keeper) =>
      isVisibleTo(keeper, view.client) &&
      (isAddress(entry.host) || client.traits.shortNames) &&
      (!bare || keeper.namespace === client.namespace),
  );
}

/** Whether the table can have a virtual host for another host. */
function isThere(
  rival: MeshService | RouteHost,
  { port, listenerPort = port }: DomainsInput,
  view: ClientView,
  read: Reader,
  deps: PortDeps,
): boolean {
  if (!isVisibleTo(rival, view.client)) return false;
  if ('resolution' in rival) return isServedOn(rival, port, view, read, deps);
  const listener = egressOf(read, deps.sidecars, view);
  if (listener !== undefined) {
    const binding = read.get(deps.bindings.all, rival.bindingKey);
    if (binding === undefined || !egressImportsRoutes(listener.hosts, view.client, binding)) return false;
  }
  if (listenerPort === 0 && !isProxied(rival, view, read, deps)) return false;
  return activePorts(rival.bindingKey, view, read, deps).has(port);
}

/** If several services have the host, a client gets only one of them. */
function isServedOn(service: MeshService, port: number, view: ClientView, read: Reader, deps: PortDeps): boolean {
  const winner = serviceFor(read, deps, view, service.host);
  if (winner === undefined || serviceKey(winner) !== serviceKey(service)) return false;
  return isRoutedOn(service, port, view, read, deps);
}

/** The host of the service that gets an address. */
function firstAt(
  address: string,
  { port, client }: DomainsInput,
  view: ClientView,
  read: Reader,
  deps: PortDeps,
): string | undefined {
  const rank = (rival: MeshService): number =>
    isAtHomeIn(rival, client.traits.cluster) ? exportRank(rival, view.client) : Number.POSITIVE_INFINITY;
  const [first] = read
    .group(deps.services.byAddress, address)
    .map(({ value }) => value)
    .filter((rival) => isVisibleTo(rival, view.client) && addressesFor(rival, client.traits).includes(address))
    .filter((rival) => isServedOn(rival, port, view, read, deps))
    .sort((a, b) => rank(a) - rank(b));
  return first?.host;
}
