import { distinctRefs } from '../../api/object.ts';
import type { MeshService } from '../../model/service.ts';
import { mostEndpoints } from '../core/endpoint-slice.ts';
import { mostPorts } from '../core/service.ts';

/**
 * Merges a host's claims in one namespace into one service; the winner comes first. Of a Service in several clusters, the
 * others add addresses for their own proxies, and names in certificates. ServiceEntries with the winner's resolution add
 * their ports, addresses and endpoints. All others lose.
 */
export function mergeClaims(claims: readonly MeshService[]): MeshService {
  const [winner] = claims;
  if (winner === undefined) throw new Error('a host without claims');
  const joining = joiningOf(claims);
  if (joining.length === 0) return winner;
  if (winner.registry === 'Kubernetes') return mergeClusters([winner, ...joining], winner);
  const ports = new Map(winner.ports.map((port) => [port.number, port]));
  for (const other of joining)
    for (const port of other.ports) if (!ports.has(port.number)) ports.set(port.number, port);
  return {
    ...winner,
    ports: [...ports.values()],
    addresses: distinct([winner, ...joining].flatMap((claim) => claim.addresses)),
    endpoints: [winner, ...joining].flatMap((claim) => claim.endpoints),
    subjectAltNames: distinct([winner, ...joining].flatMap((claim) => claim.subjectAltNames)),
    origins: [winner, ...joining].flatMap((claim) => claim.origins),
  };
}

function mergeClusters(services: readonly MeshService[], winner: MeshService): MeshService {
  return {
    ...winner,
    addressesIn: Object.fromEntries(
      services.flatMap(({ remote, addresses }) => (remote === undefined ? [] : [[remote, addresses]])),
    ),
    subjectAltNames: distinct(services.flatMap((service) => service.subjectAltNames)),
    origins: distinctRefs(services.flatMap((service) => service.origins)),
  };
}

/** Each address and port of a host is a listener. */
export const mostListeners = 10_000;

/** The claims that are served together with the first one, as long as there is room: they are built in one step. */
export function joiningOf([winner, ...others]: readonly MeshService[]): readonly MeshService[] {
  if (winner === undefined) return [];
  // All of one name, each in its own cluster.
  if (winner.registry === 'Kubernetes') return others.filter(({ registry }) => registry === 'Kubernetes');
  let count = countEndpoints(winner);
  const ports = new Set(winner.ports.map(({ number }) => number));
  const addresses = new Set(winner.addresses);
  return others.filter((other) => {
    if (!joins(winner, other) || count + countEndpoints(other) > mostEndpoints) return false;
    const morePorts = other.ports.map(({ number }) => number).filter((number) => !ports.has(number));
    const moreAddresses = other.addresses.filter((address) => !addresses.has(address));
    const allPorts = ports.size + morePorts.length;
    if (allPorts > mostPorts || (addresses.size + moreAddresses.length) * allPorts > mostListeners) return false;
    count += countEndpoints(other);
    for (const number of morePorts) ports.add(number);
    for (const address of moreAddresses) addresses.add(address);
    return true;
  });
}

function countEndpoints({ endpoints }: MeshService): number {
  return endpoints.reduce((count, { servicePorts }) => count + servicePorts.length, 0);
}

/** Whether a claim of the same host and namespace is served together with the winner. */
export function joins(winner: MeshService, other: MeshService): boolean {
  return winner.registry === 'External' && other.registry === 'External' && winner.resolution === other.resolution;
}

function distinct(values: readonly string[]): string[] {
  const all = [...new Set(values)];
  return all.length > 1 ? all.filter((value) => value !== '0.0.0.0') : all;
}
