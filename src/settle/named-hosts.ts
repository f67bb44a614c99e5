import type { Endpoint } from '../model/endpoint.ts';
import { compareText } from '../model/age.ts';
import { canonicalAddress, isAddress } from '../model/address.ts';
import { isClusterSetHost } from '../model/exported-service.ts';
import type { NamedHost } from '../model/named-host.ts';
import { type MeshService, addressesIn, isHeadless } from '../model/service.ts';
import type { Traits } from '../model/traits.ts';
import { addressesFor } from './outbound-claims.ts';

/** Who asks for names. */
export interface Asker {
  readonly traits: Pick<Traits, 'ipFamily' | 'dnsCapture' | 'cluster'>;
  /** The id of its cluster, and the network that this is in; empty: not known. */
  readonly cluster: string;
  readonly network: string;
}

/**
 * The names of a service, and of the Pods behind it if it is headless. A host without addresses (an ExternalName, a
 * ServiceEntry without any, a Service of the other IP family) has none: applications get what other name servers know.
 * Pods of another network are left out, because applications dial them directly.
 * @param endpoints of the service; read only if it is headless.
 */
export function namedHosts(
  service: MeshService,
  endpoints: () => readonly Endpoint[],
  { traits, cluster, network }: Asker,
): readonly NamedHost[] {
  const own = addressesFor(service, traits).filter((address) => isAddress(address) && !isUnspecified(address));
  const reachable = own.filter((address) => service.registry === 'External' || isOfFamily(address, traits.ipFamily));
  if (own.length > 0) return reachable.length > 0 ? [namedHost(service, [{ addresses: reachable }])] : [];
  // A service with ranges only stands for them, and not for its endpoints.
  if (!isHeadless(service) || service.ports.length === 0 || !addressesIn(service, traits.cluster).every(isUnspecified))
    return [];
  const isReachable = (endpoint: Endpoint): boolean =>
    network === '' || endpoint.network === '' || endpoint.network === network;
  const found = endpoints().filter((endpoint) => {
    const [first = ''] = endpoint.addresses;
    const isReady = (endpoint.health ?? 'Healthy') === 'Healthy' || service.publishesNotReady === true;
    return isReady && isAddress(first) && isReachable(endpoint);
  });
  if (found.length === 0) return [];
  // Clusters may have Pods of the same names: a ClusterSet name says which, any other name is that of the own one.
  const nameOf = ({ hostname, cluster: of }: Endpoint): string | undefined =>
    hostname !== undefined && isClusterSetHost(service.host) ? `${hostname}.${of}` : hostname;
  const pods = Map.groupBy(found, nameOf);
  return [
    namedHost(service, found),
    ...Array.from(pods).flatMap(([pod, all]) => {
      if (pod === undefined) return [];
      const near = all.filter((endpoint) => endpoint.cluster === cluster);
      return [namedHost(service, near.length > 0 ? near : all, pod)];
    }),
  ];
}

function namedHost(
  { host, name, namespace, registry }: MeshService,
  at: readonly Pick<Endpoint, 'addresses'>[],
  pod?: string,
): NamedHost {
  const prefix = pod === undefined ? '' : `${pod}.`;
  const addresses = at.flatMap((each) => each.addresses);
  return {
    host: `${prefix}${host}`.toLowerCase(),
    addresses: [...new Set(addresses.filter(isAddress).map(canonicalAddress))].sort(compareText),
    registry,
    // Short forms lead to the Service of the cluster itself.
    shortName: registry === 'Kubernetes' && !isClusterSetHost(host) ? `${prefix}${name}` : '',
    namespace,
  };
}

function isOfFamily(address: string, family: Traits['ipFamily']): boolean {
  return family === 'dual' || address.includes(':') === (family === 'v6');
}

function isUnspecified(address: string): boolean {
  return address === '0.0.0.0' || address === '::';
}
