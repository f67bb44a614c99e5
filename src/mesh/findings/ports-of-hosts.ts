import type { Reader } from '../../cache/graph.ts';
import { isWildcard } from '../../model/host.ts';
import { type MeshService, type Protocol, isRouted } from '../../model/service.ts';
import { anyTraits } from '../../model/traits.ts';
import type { DestinationDeps } from '../clients/destinations.ts';
import { concreteService } from '../clients/lookups.ts';

/** An object with routes, and the hosts that they are for. */
interface HasHosts {
  readonly namespace: string;
  readonly hosts: readonly string[];
}

/** The services of all its hosts, as its namespace sees them; undefined: one of them is not known, or its ports are not. */
export function servicesOf(
  { namespace, hosts }: HasHosts,
  read: Reader,
  deps: DestinationDeps,
): readonly MeshService[] | undefined {
  const view = { client: namespace, traits: anyTraits };
  const services: MeshService[] = [];
  for (const host of hosts) {
    const service = isWildcard(host) ? undefined : concreteService(read, deps, view, host);
    if (service === undefined || service.ports.length === 0) return undefined;
    services.push(service);
  }
  return services;
}

/** The protocols of all ports of its hosts; undefined: one of them is not known. */
export function protocolsOf(of: HasHosts, read: Reader, deps: DestinationDeps): readonly Protocol[] | undefined {
  return servicesOf(of, read, deps)?.flatMap(({ ports }) => ports.map(({ protocol }) => protocol));
}

/** Whether sidecars may take its routes of the mesh for requests. */
export function takesRequests(of: HasHosts, read: Reader, deps: DestinationDeps): boolean {
  return protocolsOf(of, read, deps)?.some(isRouted) ?? true;
}

/** More ports are not listed in a message. */
const MOST_NAMED = 20;

/** For people: which ports may be meant. @param otherwise if there are too many. */
export function oneOf(numbers: Pick<ReadonlySet<number>, 'keys' | 'size'>, otherwise: string): string {
  return numbers.size > MOST_NAMED ? otherwise : `one of ${[...numbers.keys()].join(', ')}`;
}
