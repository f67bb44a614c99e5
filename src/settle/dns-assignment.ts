import type { SettledLocality } from '../model/assignment.ts';
import type { DnsEndpoint } from '../model/cluster.ts';
import { dnsEndpointsOf } from '../model/dns-endpoints.ts';
import type { Endpoint } from '../model/endpoint.ts';
import type { Labels } from '../model/labels.ts';
import { type MtlsUse, usesMtls } from '../model/policy-resolution.ts';
import type { MeshService, ServicePort } from '../model/service.ts';
import type { Topology } from '../model/topology.ts';
import { groupByLocality, partsOf, placeGroups } from './locality-groups.ts';
import { type LocalityPlan, withoutLabels } from './locality-plan.ts';

export interface DnsEndpointsInput {
  readonly service: MeshService;
  /** Endpoints of all ports. */
  readonly endpoints: readonly Endpoint[];
  readonly port: Pick<ServicePort, 'name' | 'number'>;
  readonly subsetLabels: Labels;
  readonly plan: LocalityPlan | undefined;
  readonly mtls: MtlsUse;
  readonly topology: Topology | undefined;
}

/** The endpoints inside a cluster itself. */
export function settleDnsEndpoints(input: DnsEndpointsInput): readonly SettledLocality<DnsEndpoint>[] {
  const { service, port, subsetLabels, plan, mtls, topology } = input;
  const endpoints = dnsEndpointsOf(input.endpoints, port, subsetLabels)
    .slice(0, resolvesOneName(service) ? 1 : undefined)
    .map((endpoint) => ({
      locality: endpoint.locality,
      labels: endpoint.labels,
      weight: endpoint.weight || 1,
      form: { endpoint, mtls: endpoint.tlsMode === 'istio' && usesMtls(endpoint, mtls) },
    }));
  return placeGroups(groupByLocality(endpoints), withoutLabels(plan), topology).map((group) => {
    const [region, zone, subzone] = partsOf(group.locality);
    const { weight, priority } = group;
    return {
      region,
      zone,
      subzone,
      weight,
      priority,
      endpoints: group.endpoints.map(({ form }) => form),
      gateways: [],
    };
  });
}

/** Whether all addresses of a DNS service are one endpoint. */
export function resolvesOneName({ resolution, raceConnect }: MeshService): boolean {
  return resolution === 'DNSRoundRobinLB' || raceConnect;
}
