import type { Affinity } from '../../model/cluster-mesh.ts';
import type { Labels } from '../../model/labels.ts';
import { selected } from '../../model/labels.ts';
import type { ClusterSettings } from '../../model/mesh-config.ts';
import type { MeshService } from '../../model/service.ts';
import type { TrafficPolicy } from '../../model/traffic-policy.ts';
import type { Topology } from '../../model/topology.ts';
import { isDraining } from '../../model/endpoint.ts';
import type { EncodedEndpoint } from './assignment-endpoint.ts';
import { groupByLocality, type LocalityGroup, partsOf, placeGroups } from '../../model/locality-groups.ts';
import { localityPlan } from '../../model/locality.ts';
import { type MtlsUse, usesMtls } from '../../model/policy-resolution.ts';
import { BackwardWriter } from '../encode/wire.ts';
import { type Horizon, splitHorizon } from './split-horizon.ts';

export { type EncodedEndpoint, encodeEndpoints } from './assignment-endpoint.ts';
export type { Horizon } from './split-horizon.ts';
export { topologyNeeds } from '../../model/locality.ts';
export { mtlsUse } from '../../model/policy-resolution.ts';

export interface AssignmentInput {
  readonly clusterName: string;
  /** All endpoints of the service port. */
  readonly endpoints: readonly EncodedEndpoint[];
  /** Empty: all endpoints. */
  readonly subsetLabels: Labels;
  /** The policy for the port and subset. */
  readonly policy: TrafficPolicy;
  readonly service: MeshService;
  readonly settings: Pick<ClusterSettings, 'localityLb'>;
  /** Which endpoints are marked for mutual TLS; `never` if the proxy has no certificates. */
  readonly mtls: MtlsUse;
  /** Endpoints in other clusters than these and the proxy's are left out. Absent: none are. */
  readonly sharedBy?: readonly string[] | undefined;
  /** Proxies with too many different labels ask: see {@link localityPlan}. */
  readonly ignoresLabels?: boolean;
  /** Needed if {@link topologyNeeds} says so. */
  readonly topology?: Topology | undefined;
  /**
   * The gateways of other networks, by network; see {@link splitHorizon}. Absent: all endpoints are reached directly.
   */
  readonly horizon?: Horizon | undefined;
  /**
   * For AUTO_PASSTHROUGH servers, which cannot tell what they forward: only endpoints that terminate mutual TLS, and
   * none by way of another gateway, which could send connections back.
   */
  readonly forwards?: boolean;
}

/** The bytes of a ClusterLoadAssignment, and whether requests may go anywhere. */
export interface BuiltAssignment {
  readonly bytes: Uint8Array;
  readonly ready: boolean;
}

/** Without endpoints, it has only a name. */
export function buildAssignment(input: AssignmentInput): BuiltAssignment {
  const { clusterName, policy, service, settings, topology, mtls, ignoresLabels } = input;
  const ranks = byAffinity(selectEndpoints(input), service.global?.affinity)
    .map((selected) => reachable(selected, input))
    .filter((endpoints) => endpoints.length > 0);
  const endpoints = ranks.flat();
  if (endpoints.length === 0) return { bytes: emptyAssignment(clusterName), ready: false };
  const plan = localityPlan(policy, service, settings, ignoresLabels);
  const groups = oneAfterTheOther(ranks.map((rank) => placeGroups(groupByLocality(rank), plan, topology)));
  // ClusterLoadAssignment: cluster_name 1, endpoints 2, policy 4. Policy: overprovisioning_factor 3.
  const writer = new BackwardWriter(bytesOfEndpoint * endpoints.length);
  if (ranks.length > 1) {
    const end = writer.mark();
    const factor = writer.mark();
    writer.unsigned(1, untilTheLastOne);
    writer.wrap(3, factor);
    writer.wrap(4, end);
  }
  for (const group of groups.toReversed()) {
    const end = writer.mark();
    writeGroup(writer, group, mtls);
    writer.wrap(2, end);
  }
  writer.text(1, clusterName);
  return { bytes: writer.since(0), ready: endpoints.some(isReady) };
}

/** Those that are used first, and those that are used once no healthy one is left of them. */
function byAffinity(
  endpoints: readonly EncodedEndpoint[],
  affinity: Affinity = 'none',
): readonly (readonly EncodedEndpoint[])[] {
  if (affinity === 'none') return [endpoints];
  const isFirst = ({ viaClusterMesh }: EncodedEndpoint): boolean => viaClusterMesh === (affinity === 'remote');
  return [endpoints.filter(isFirst), endpoints.filter((endpoint) => !isFirst(endpoint))];
}

/**
 * In percent: Envoy leaves a priority in part when its share of healthy endpoints, times this, is less than 100 (its
 * default is 140). Cilium leaves it for others only with the last one: here, if one of a thousand is healthy.
 */
const untilTheLastOne = 100_000;

function oneAfterTheOther(
  ranks: readonly (readonly LocalityGroup<EncodedEndpoint>[])[],
): readonly LocalityGroup<EncodedEndpoint>[] {
  let next = 0;
  return ranks.flatMap((groups) => {
    const first = next;
    next = first + 1 + Math.max(...groups.map(({ priority }) => priority));
    return groups.map((group) => ({ ...group, priority: first + group.priority }));
  });
}

function reachable(
  endpoints: readonly EncodedEndpoint[],
  { topology, horizon, mtls, forwards = false }: AssignmentInput,
): readonly EncodedEndpoint[] {
  if (horizon === undefined || topology === undefined) return endpoints.filter(({ sendable }) => sendable);
  const passes = (endpoint: EncodedEndpoint): boolean => !forwards && isMarked(endpoint, mtls) && isReady(endpoint);
  return splitHorizon(endpoints, topology, horizon, passes);
}

function isReady({ health }: EncodedEndpoint): boolean {
  return health === undefined || health === 'Healthy';
}

/** Whether connections to the endpoint use mutual TLS, by whose SNI a gateway knows where they lead. */
function isMarked(endpoint: EncodedEndpoint, mtls: MtlsUse): boolean {
  return usesMtls(endpoint, mtls) && endpoint.mtls !== endpoint.plain;
}

/** More than most endpoints need, including their share of the group: buffers that do not grow are not copied. */
const bytesOfEndpoint = 200;

/** The answer for a cluster that has no endpoints or does not exist. */
export function emptyAssignment(clusterName: string): Uint8Array {
  const writer = new BackwardWriter();
  writer.text(1, clusterName);
  return writer.since(0);
}

/**
 * Endpoints that are not ready are sent, marked as such, so that Envoy does not enter panic mode. A rule with
 * `minHealthPercent` asks for panic mode, which would send requests to them.
 */
export function sendsUnhealthy(policy: TrafficPolicy, service: Pick<MeshService, 'trafficDistribution'>): boolean {
  return service.trafficDistribution !== undefined || (policy.outlierDetection?.minHealthPercent ?? 0) === 0;
}

function selectEndpoints(input: AssignmentInput): readonly EncodedEndpoint[] {
  const { endpoints, subsetLabels, policy, service, topology } = input;
  const unhealthy = sendsUnhealthy(policy, service);
  const draining = service.persistentSession;
  const sharedBy = service.nodeLocal ? [] : input.sharedBy;
  return selected(endpoints, subsetLabels).filter(
    (endpoint) =>
      (input.forwards !== true || isMarked(endpoint, input.mtls)) &&
      (endpoint.sendable || endpoint.address === '') &&
      endpoint.health !== 'Terminating' &&
      (unhealthy || endpoint.health !== 'UnHealthy') &&
      (draining || !isDraining(endpoint)) &&
      (sharedBy === undefined ||
        topology === undefined ||
        endpoint.cluster === topology.cluster ||
        sharedBy.includes(endpoint.cluster) ||
        // They are there because their Service is annotated as global.
        (endpoint.viaClusterMesh && !service.nodeLocal)) &&
      (!service.nodeLocal || topology === undefined || endpoint.nodeName === topology.nodeName),
  );
}

/** LocalityLbEndpoints: locality 1, lb_endpoints 2, load_balancing_weight 3, priority 5. */
function writeGroup(writer: BackwardWriter, group: LocalityGroup<EncodedEndpoint>, mtls: MtlsUse): void {
  writer.unsigned(5, group.priority);
  const weight = writer.mark();
  writer.unsigned(1, group.weight);
  writer.wrap(3, weight);
  for (const endpoint of group.endpoints.toReversed()) {
    writer.bytes(usesMtls(endpoint, mtls) ? endpoint.mtls : endpoint.plain);
  }
  const locality = writer.mark();
  const [region, zone, subzone] = partsOf(group.locality);
  writer.text(3, subzone);
  writer.text(2, zone);
  writer.text(1, region);
  writer.wrap(1, locality);
}
