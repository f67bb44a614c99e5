import type { Endpoint } from '../model/endpoint.ts';
import { compareText } from '../model/age.ts';
import { canonicalAddress, isAddress } from '../model/address.ts';
import { isClusterSetHost } from '../model/exported-service.ts';
import type { NamedHost } from '../model/named-host.ts';
import { type MeshService, addressesIn, isHeadless } from '../model/service.ts';
import type { Traits } from '../model/traits.ts';
import { addressesFor } from './outbound-claims.ts';

/**
 * The names of a service, and of the Pods behind it if it is headless. A host without addresses (an ExternalName, a
 * ServiceEntry without any, a Service of the other IP family) has none: applications get what other name servers know.
 * @param endpoints of the service; read only if it is headless.
 */
export function namedHosts(
  service: MeshService,
  endpoints: () => readonly Endpoint[],
  traits: Pick<Traits, 'ipFamily' | 'dnsCapture' | 'cluster'>,
): readonly NamedHost[] {
  const own = addressesFor(service, traits).filter((address) => isAddress(address) && !isUnspecified(address));
  const reachable = own.filter((address) => service.registry === 'External' || isOfFamily(address, traits.ipFamily));
  if (own.length > 0) return reachable.length > 0 ? [namedHost(service, reachable)] : [];
  // A service with ranges only stands for them, and not for its endpoints.
  if (!isHeadless(service) || service.ports.length === 0 || !addressesIn(service, traits.cluster).every(isUnspecified))
    return [];
  const found = endpoints().filter(({ health = 'Healthy', addresses: [first = ''] }) => {
    return (health === 'Healthy' || service.publishesNotReady === true) && isAddress(first);
  });
  if (found.length === 0) return [];
  const pods = new Map<string, string[]>();
  for (const { hostname, cluster, addresses } of found) {
    if (hostname === undefined) continue;
    // Clusters may have Pods of the same names.
    const pod = isClusterSetHost(service.host) ? `${hostname}.${cluster}` : hostname;
    pods.set(pod, [...(pods.get(pod) ?? []), ...addresses]);
  }
  return [
    namedHost(
      service,
      found.flatMap(({ addresses }) => addresses),
    ),
    ...Array.from(pods, ([pod, addresses]) => namedHost(service, addresses, pod)),
  ];
}

function namedHost(
  { host, name, namespace, registry }: MeshService,
  addresses: readonly string[],
  pod?: string,
): NamedHost {
  const prefix = pod === undefined ? '' : `${pod}.`;
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
