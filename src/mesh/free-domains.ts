import type { Reader } from '../cache/graph.ts';
import { type DomainClaim, type DomainsInput, addressesFor, domainClaims } from '../settle/domains.ts';
import { isAddress } from '../model/address.ts';
import { type MeshService, exportRank, isVisibleTo, serviceKey } from '../model/service.ts';
import { egressImportsRoutes } from '../model/sidecar.ts';
import { type ClientView, serviceFor } from './clients.ts';
import type { RouteHost } from './route-hosts.ts';
import { type PortDeps, activePorts, isProxied, portsFor } from './served-ports.ts';
import { isBareName, keepersOf } from './service-names.ts';
import { egressOf } from './sidecars.ts';

/**
 * The domains of a virtual host that no other has a better claim to. All that want one decide by these rules, from what the
 * same client sees, so it stands in a table once; Envoy would refuse the whole table else:
 *
 * 1. A short form or address of a Kubernetes Service stays with it, before ServiceEntries of other namespaces.
 * 2. What is the name of a host is of that host.
 * 3. Who has the name of an alias, by routes of its own, has all its forms. So it is with a wildcard for pods.
 * 4. An address is of the first service that has it: what is exported to fewer comes first, then the older.
 *
 * The winner may have no virtual host after all, because its routes do not apply to the client: then the domain is unused.
 */
export function freeDomains(subject: DomainsInput, view: ClientView, read: Reader, deps: PortDeps): readonly string[] {
  const { host, service } = subject;
  const isTaken = (name: string): boolean =>
    read
      .group(deps.routeHosts.owners, name)
      .some(
        ({ value: rival }) => isThere(rival, subject, view, read, deps) && !isKept(rival, subject, view, read, deps),
      );
  const isFree = ({ name, of, kind, absolute }: DomainClaim): boolean => {
    // The absolute form stays, so that a service has a virtual host, and its port a table.
    if (name === host) return absolute || !isKept(service, subject, view, read, deps);
    if (isTaken(name) || (of !== host && isTaken(of))) return false;
    if (kind === 'pods') return !isTaken(`*.${of}`);
    return kind !== 'address' || firstAt(name, subject, view, read, deps) === service?.host;
  };
  return domainClaims(subject)
    .filter(isFree)
    .flatMap(({ domains }) => domains);
}

/** Whether a Service keeps the name of an entry, for this client. It does on all ports: it may have none of that number. */
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

/** Whether the table can have a virtual host of another host. */
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
    const model = read.get(deps.virtualServices.routes, rival.virtualService);
    if (model === undefined || !egressImportsRoutes(listener.hosts, view.client, model)) return false;
  }
  if (listenerPort === 0 && !isProxied(rival, view, read, deps)) return false;
  return activePorts(rival.virtualService, view, read, deps).has(port);
}

/** Of the services of one host a client has one. */
function isServedOn(service: MeshService, port: number, view: ClientView, read: Reader, deps: PortDeps): boolean {
  const winner = serviceFor(read, deps, view, service.host);
  if (winner === undefined || serviceKey(winner) !== serviceKey(service)) return false;
  return portsFor(service.host, view, read, deps, 'routed').includes(port);
}

/** The host of the service that has an address. */
function firstAt(
  address: string,
  { port, client }: DomainsInput,
  view: ClientView,
  read: Reader,
  deps: PortDeps,
): string | undefined {
  const [first] = read
    .group(deps.services.byAddress, address)
    .map(({ value }) => value)
    .filter((rival) => isVisibleTo(rival, view.client) && addressesFor(rival, client.traits).includes(address))
    .filter((rival) => isServedOn(rival, port, view, read, deps))
    .sort((a, b) => exportRank(a, view.client) - exportRank(b, view.client));
  return first?.host;
}
