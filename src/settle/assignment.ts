import type { AssignableEndpoint, GatewayEndpoint, SettledAssignment, SettledLocality } from '../model/assignment.ts';
import type { Affinity } from '../model/cluster-mesh.ts';
import { isDraining } from '../model/endpoint.ts';
import { type Labels, selected } from '../model/labels.ts';
import { groupByLocality, type LocalityGroup, partsOf, placeGroups } from './locality-groups.ts';
import { localityPlan } from './locality-plan.ts';
import type { ClusterSettings } from '../model/mesh-config.ts';
import { type MtlsUse, sendsUnhealthy, usesMtls } from '../model/policy-resolution.ts';
import type { MeshService } from '../model/service.ts';
import type { Topology } from '../model/topology.ts';
import type { TrafficPolicy } from '../model/traffic-policy.ts';
import { type Horizon, splitHorizon } from './split-horizon.ts';

export interface AssignmentInput<Form> {
  readonly clusterName: string;
  /** All endpoints of the service port. */
  readonly endpoints: readonly AssignableEndpoint<Form>[];
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

/** Which endpoints clients at a place use, in which order and with which weights, and how they reach them. */
export function settleAssignment<Form>(input: AssignmentInput<Form>): SettledAssignment<Form> {
  const { clusterName, policy, service, settings, topology, ignoresLabels } = input;
  const ranks = byAffinity(selectEndpoints(input), service.global?.affinity)
    .map((rank) => reached(rank, input))
    .filter((endpoints) => endpoints.length > 0);
  if (ranks.length === 0) return { clusterName, localities: [], untilTheLastOne: false, ready: false };
  const plan = localityPlan(policy, service, settings, ignoresLabels);
  const groups = oneAfterTheOther(ranks.map((rank) => placeGroups(groupByLocality(rank), plan, topology)));
  return {
    clusterName,
    localities: groups.map((group) => settleLocality(group, input)),
    untilTheLastOne: ranks.length > 1,
    ready: ranks.flat().some(isReady),
  };
}

function selectEndpoints<Form>(input: AssignmentInput<Form>): readonly AssignableEndpoint<Form>[] {
  const { endpoints, subsetLabels, policy, service, topology } = input;
  const unhealthy = sendsUnhealthy(policy, service);
  const draining = service.persistentSession;
  const sharedBy = service.nodeLocal ? [] : input.sharedBy;
  // A gateway may know an endpoint whose address is not told here.
  const behindGateways = input.horizon !== undefined && topology !== undefined;
  return selected(endpoints, subsetLabels).filter(
    (endpoint) =>
      (input.forwards !== true || isMarked(endpoint, input.mtls)) &&
      (endpoint.sendable || (behindGateways && endpoint.address === '')) &&
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

/** The endpoints that are used first, and those that are used once none of the first is healthy. */
function byAffinity<Form>(
  endpoints: readonly AssignableEndpoint<Form>[],
  affinity: Affinity = 'none',
): readonly (readonly AssignableEndpoint<Form>[])[] {
  if (affinity === 'none') return [endpoints];
  const isFirst = ({ viaClusterMesh }: AssignableEndpoint<Form>): boolean => viaClusterMesh === (affinity === 'remote');
  return [endpoints.filter(isFirst), endpoints.filter((endpoint) => !isFirst(endpoint))];
}

type Reached<Form> = AssignableEndpoint<Form> | GatewayEndpoint;

function reached<Form>(
  endpoints: readonly AssignableEndpoint<Form>[],
  { topology, horizon, mtls, forwards = false }: AssignmentInput<Form>,
): readonly Reached<Form>[] {
  if (horizon === undefined || topology === undefined) return endpoints;
  const passes = (endpoint: AssignableEndpoint<Form>): boolean =>
    !forwards && isMarked(endpoint, mtls) && isReady(endpoint);
  return splitHorizon(endpoints, topology, horizon, passes);
}

function oneAfterTheOther<Form>(
  ranks: readonly (readonly LocalityGroup<Reached<Form>>[])[],
): readonly LocalityGroup<Reached<Form>>[] {
  let next = 0;
  return ranks.flatMap((groups) => {
    const first = next;
    next = first + 1 + Math.max(...groups.map(({ priority }) => priority));
    return groups.map((group) => ({ ...group, priority: first + group.priority }));
  });
}

function settleLocality<Form>(
  { locality, weight, priority, endpoints }: LocalityGroup<Reached<Form>>,
  { mtls, horizon }: AssignmentInput<Form>,
): SettledLocality<Form> {
  const [region, zone, subzone] = partsOf(locality);
  const gateways = horizon === undefined ? [] : endpoints.filter(isGateway);
  const others = gateways.length === 0 ? endpoints : endpoints.filter((endpoint) => !isGateway(endpoint));
  const forms = (others as readonly AssignableEndpoint<Form>[]).map<Form>(formFor[mtls]);
  return { region, zone, subzone, weight, priority, endpoints: forms, gateways };
}

const isGateway = <Form>(endpoint: Reached<Form>): endpoint is GatewayEndpoint => 'addresses' in endpoint;

/** The same as {@link usesMtls}, for thousands of endpoints. */
const formFor: Record<
  MtlsUse,
  <Form>(endpoint: Pick<AssignableEndpoint<Form>, 'plain' | 'mtls' | 'disablesMtls'>) => Form
> = {
  never: ({ plain }) => plain,
  auto: ({ disablesMtls, plain, mtls }) => (disablesMtls ? plain : mtls),
  always: ({ mtls }) => mtls,
};

function isReady({ health }: Pick<Reached<unknown>, 'health'>): boolean {
  return health === undefined || health === 'Healthy';
}

/** Whether connections to the endpoint use mutual TLS, by whose SNI a gateway knows where they lead. */
function isMarked<Form>(endpoint: AssignableEndpoint<Form>, mtls: MtlsUse): boolean {
  return usesMtls(endpoint, mtls) && endpoint.mtls !== endpoint.plain;
}
