import type { Endpoint, EndpointSummary } from '../../model/endpoint.ts';
import type { ClusterSettings } from '../../model/mesh-config.ts';
import type { MeshService } from '../../model/service.ts';
import type { DestinationRuleModel } from '../../model/traffic-policy.ts';
import type { Traits } from '../../model/traits.ts';
import type { Topology } from '../../model/topology.ts';
import { reconcileDestinationRule } from '../../reconcilers/destination-rule/destination-rule.ts';
import { mergeRules } from '../../settle/destination-rule-merge.ts';
import { reconcileMeshConfig } from '../../reconcilers/mesh-config/mesh-config.ts';
import { settleClusters } from '../../settle/clusters.ts';
import { type FixedClustersInput, settleFixedClusters } from '../../settle/fixed-clusters.ts';
import { buildCluster } from '../cluster/clusters.ts';
import { buildFixedCluster } from '../cluster/fixed-clusters.ts';
import type { Cluster } from '../gen/types.gen.ts';
import type { Json } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import { protos, port, serviceOf, traitsOf } from './listeners.ts';

export type Members = { readonly [name: string]: Json };

/** Settings from a mesh config. */
export function settingsOf(mesh = ''): ClusterSettings {
  return reconcileMeshConfig(mesh).config.clusters;
}

/** A rule in namespace `shop` for its service `a`. */
export function ruleOf(spec: object): DestinationRuleModel {
  const object = {
    apiVersion: 'networking.istio.io/v1',
    kind: 'DestinationRule',
    metadata: { name: 'd', namespace: 'shop' },
    spec: { host: 'a', ...spec },
  } as const;
  const context = { source: 'test', domainSuffix: 'cluster.local', defaultExportTo: ['*'] };
  const { rules, problems } = reconcileDestinationRule(object, context);
  const broken = problems.filter((problem) => problem.reason === 'Invalid');
  if (broken.length > 0) throw new Error(JSON.stringify(broken));
  return mergeRules(rules).rules[0]!;
}

export function summaryOf(summary: Partial<EndpointSummary> = {}): EndpointSummary {
  return { identities: [], plaintext: false, addresses: [], dnsEndpoints: [], ...summary };
}

/** A ready endpoint of a Pod in namespace `shop`, on port `p`. */
export function endpointOf(address: string, endpoint: Partial<Endpoint> = {}): Endpoint {
  return {
    addresses: [address],
    port: 8080,
    portName: 'p',
    health: 'Healthy',
    labels: {},
    locality: '',
    network: '',
    cluster: 'Kubernetes',
    identity: '',
    tlsMode: 'disabled',
    workload: 'a',
    namespace: 'shop',
    nodeName: '',
    ...endpoint,
  };
}

export interface ClustersCase {
  readonly service?: MeshService;
  readonly rule?: object;
  readonly traits?: Partial<Traits>;
  readonly summary?: Partial<EndpointSummary>;
  readonly mesh?: string;
  readonly topology?: Topology;
}

/** The clusters by name, as protobuf JSON. */
export function clustersOf(given: ClustersCase): ReadonlyMap<string, Members> {
  const service = given.service ?? serviceOf('a', [port(80, 'HTTP')]);
  const shared = {
    service,
    rule: given.rule && ruleOf(given.rule),
    traits: traitsOf(given.traits),
    settings: settingsOf(given.mesh),
    summary: summaryOf(given.summary),
    peersAcceptMtls: true,
    topology: given.topology,
  };
  const { traits, settings } = shared;
  const built = service.ports
    .flatMap((own) => settleClusters({ ...shared, port: own }))
    .map((settled) => buildCluster(settled, traits, settings));
  return new Map(built.map((cluster) => [cluster.name ?? '', jsonOf(cluster)]));
}

/** The cluster of the first port, or of its subset. */
export function clusterOf(given: ClustersCase, subset = ''): Members {
  const found = [...clustersOf(given)].find(([name]) => name.split('|')[2] === subset);
  if (found === undefined) throw new Error('there is no such cluster');
  return found[1];
}

export function fixedClusters(input: FixedClustersInput): readonly Cluster[] {
  return settleFixedClusters(input).map((fixed) => buildFixedCluster(fixed, input.traits, input.settings));
}

/** As protobuf JSON, which also proves that Envoy's types can hold it. */
export function jsonOf(cluster: Cluster): Members {
  return protos.toJson(types.cluster, protos.encode(types.cluster, cluster)) as Members;
}

/** The named member of the cluster's HTTP options; undefined if there are none. */
export function httpOptionsOf(cluster: Members): Members | undefined {
  const options = cluster['typedExtensionProtocolOptions'] as Members | undefined;
  const { '@type': _, ...members } = (options?.[types.httpProtocolOptions] ?? {}) as Record<string, Json>;
  return options === undefined ? undefined : members;
}
