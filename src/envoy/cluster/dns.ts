import type { SettledLocality } from '../../model/assignment.ts';
import type { DnsEndpoint } from '../../model/cluster.ts';
import type { ClusterSettings } from '../../model/mesh-config.ts';
import type { MeshService } from '../../model/service.ts';
import type { Traits } from '../../model/traits.ts';
import { workloadOf } from '../endpoint/assignment-endpoint.ts';
import { duration } from '../duration.ts';
import type { Cluster, ClusterLoadAssignment, LbEndpoint } from '../gen/types.gen.ts';
import { any } from '../encode/proto.ts';
import { connectAddress, struct, wrapped } from '../encode/wrappers.ts';

/** DNS queries per socket, so that source ports cannot be guessed; and jitter, to spread the queries over time. */
const maxQueriesPerSocket = 100;
const jitterMs = 100;

/** The fields that make a cluster resolve the names of its endpoints. */
export function dnsFields(
  { raceConnect }: Pick<MeshService, 'raceConnect'>,
  oneName: boolean,
  settings: Pick<ClusterSettings, 'dnsRefreshRate'>,
  traits: Pick<Traits, 'ipFamily'>,
): Pick<
  Cluster,
  'type' | 'dnsLookupFamily' | 'dnsRefreshRate' | 'dnsJitter' | 'respectDnsTtl' | 'typedDnsResolverConfig'
> {
  return {
    type: oneName ? 'LOGICAL_DNS' : 'STRICT_DNS',
    dnsLookupFamily: raceConnect ? 'ALL' : lookupFamily(traits),
    dnsRefreshRate: duration(settings.dnsRefreshRate),
    dnsJitter: duration(jitterMs),
    respectDnsTtl: true,
    typedDnsResolverConfig: {
      name: 'envoy.network.dns_resolver.cares',
      typedConfig: any('envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig', {
        udpMaxQueries: wrapped(maxQueriesPerSocket),
      }),
    },
  };
}

export function lookupFamily({ ipFamily }: Pick<Traits, 'ipFamily'>): 'V4_ONLY' | 'V6_ONLY' {
  return ipFamily === 'v6' ? 'V6_ONLY' : 'V4_ONLY';
}

/** The endpoints in the cluster itself. */
export function dnsAssignment(
  clusterName: string,
  localities: readonly SettledLocality<DnsEndpoint>[],
): ClusterLoadAssignment {
  return {
    clusterName,
    endpoints: localities.map(({ region, zone, subzone: subZone, weight, priority, endpoints }) => ({
      locality: { region, zone, subZone },
      lbEndpoints: endpoints.map(lbEndpoint),
      loadBalancingWeight: wrapped(weight),
      priority,
    })),
  };
}

/** Health is left to DNS here. */
function lbEndpoint({ endpoint, mtls }: DnsEndpoint): LbEndpoint {
  const { addresses, port, weight } = endpoint;
  return {
    endpoint: { address: connectAddress(addresses[0] ?? '', port) },
    metadata: {
      filterMetadata: {
        istio: struct({ workload: workloadOf(endpoint) }),
        ...(mtls ? { 'envoy.transport_socket_match': struct({ tlsMode: 'istio' }) } : {}),
      },
    },
    loadBalancingWeight: wrapped(weight || 1),
  };
}
