import { dnsEndpointsOf } from '../../model/dns-endpoints.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import type { Labels } from '../../model/labels.ts';
import type { ClusterSettings } from '../../model/mesh-config.ts';
import { type MtlsUse, resolvePolicy, usesMtls } from '../../model/policy-resolution.ts';
import { isDns, type MeshService, type ServicePort } from '../../model/service.ts';
import type { DestinationRuleModel } from '../../model/traffic-policy.ts';
import type { Traits } from '../../model/traits.ts';
import type { Topology } from '../../model/topology.ts';
import { workloadOf } from '../endpoint/assignment-endpoint.ts';
import { duration } from '../duration.ts';
import type { Cluster, ClusterLoadAssignment, LbEndpoint } from '../gen/types.gen.ts';
import { groupByLocality, partsOf, placeGroups } from '../../model/locality-groups.ts';
import { type LocalityPlan, localityPlan, type TopologyNeeds } from '../../model/locality.ts';
import { any } from '../encode/proto.ts';
import { connectAddress, struct, wrapped } from '../encode/values.ts';

/** DNS queries per socket, so that source ports cannot be guessed; and jitter, to spread the queries over time. */
const maxQueriesPerSocket = 100;
const jitterMs = 100;

/** The fields that make a cluster resolve the names of its endpoints. */
export function dnsFields(
  service: MeshService,
  settings: Pick<ClusterSettings, 'dnsRefreshRate'>,
  traits: Pick<Traits, 'ipFamily'>,
): Pick<
  Cluster,
  'type' | 'dnsLookupFamily' | 'dnsRefreshRate' | 'dnsJitter' | 'respectDnsTtl' | 'typedDnsResolverConfig'
> {
  return {
    type: resolvesOneAddress(service) ? 'LOGICAL_DNS' : 'STRICT_DNS',
    dnsLookupFamily: service.raceConnect ? 'ALL' : lookupFamily(traits),
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

/** What the clusters for a port of a DNS service depend on: nothing, or the proxy's locality. */
export function dnsTopologyNeeds(
  service: MeshService,
  port: ServicePort,
  rule: DestinationRuleModel | undefined,
  settings: Pick<ClusterSettings, 'localityLb' | 'defaultTrafficPolicy'>,
): TopologyNeeds {
  const locality = [undefined, ...(rule?.subsets ?? [])].some((subset) => {
    const policy = resolvePolicy(rule, port.number, subset, settings);
    const plan = withoutLabels(localityPlan(policy, service, settings));
    return plan !== undefined && (plan.failover || plan.setting.distribute.length > 0);
  });
  return { locality, nodeName: false, cluster: false, labels: [] };
}

export function lookupFamily({ ipFamily }: Pick<Traits, 'ipFamily'>): 'V4_ONLY' | 'V6_ONLY' {
  return ipFamily === 'v6' ? 'V6_ONLY' : 'V4_ONLY';
}

export interface DnsEndpointsInput {
  readonly clusterName: string;
  readonly service: MeshService;
  /** Endpoints of all ports. */
  readonly endpoints: readonly Endpoint[];
  readonly port: Pick<ServicePort, 'name' | 'number'>;
  readonly subsetLabels: Labels;
  readonly plan: LocalityPlan | undefined;
  readonly mtls: MtlsUse;
  readonly topology: Topology | undefined;
}

/** The endpoints in the cluster itself; undefined if there are none, because Envoy then rejects the cluster. */
export function dnsAssignment(input: DnsEndpointsInput): ClusterLoadAssignment | undefined {
  const { clusterName, service, port, subsetLabels, plan, mtls } = input;
  const endpoints = dnsEndpointsOf(input.endpoints, port, subsetLabels)
    .slice(0, isDns(service) && resolvesOneAddress(service) ? 1 : undefined)
    .map((endpoint) => ({
      locality: endpoint.locality,
      labels: endpoint.labels,
      weight: endpoint.weight || 1,
      message: lbEndpoint(endpoint, mtls),
    }));
  if (endpoints.length === 0) return undefined;
  const groups = placeGroups(groupByLocality(endpoints), withoutLabels(plan), input.topology);
  return {
    clusterName,
    endpoints: groups.map((group) => {
      const [region, zone, subZone] = partsOf(group.locality);
      return {
        locality: { region, zone, subZone },
        lbEndpoints: group.endpoints.map((endpoint) => endpoint.message),
        loadBalancingWeight: wrapped(group.weight),
        priority: group.priority,
      };
    }),
  };
}

/** Envoy rejects a LOGICAL_DNS cluster with more than one name. */
function resolvesOneAddress(service: MeshService): boolean {
  return service.resolution === 'DNSRoundRobinLB' || service.raceConnect;
}

/** Priorities by label are for EDS endpoints: clusters are shared by proxies with different labels. */
function withoutLabels(plan: LocalityPlan | undefined): LocalityPlan | undefined {
  if (plan === undefined || plan.setting.failoverPriority.length === 0) return plan;
  const failover = plan.failover && plan.setting.failover.length > 0;
  return { setting: { ...plan.setting, failoverPriority: [] }, failover };
}

/** Health is left to DNS here. */
function lbEndpoint(endpoint: Endpoint, mtls: MtlsUse): LbEndpoint {
  const { addresses, port, weight, tlsMode } = endpoint;
  const marked = usesMtls(endpoint, mtls);
  return {
    endpoint: { address: connectAddress(addresses[0] ?? '', port) },
    metadata: {
      filterMetadata: {
        istio: struct({ workload: workloadOf(endpoint) }),
        ...(marked && tlsMode === 'istio' ? { 'envoy.transport_socket_match': struct({ tlsMode }) } : {}),
      },
    },
    loadBalancingWeight: wrapped(weight || 1),
  };
}
