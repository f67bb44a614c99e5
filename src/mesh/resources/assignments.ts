import { isDeepStrictEqual } from 'node:util';
import type { ObjectRef } from '../../api/object.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { EncodedEndpoint } from '../../envoy/endpoint/assignment-endpoint.ts';
import { buildAssignment } from '../../envoy/endpoint/assignment.ts';
import type { TopologyNeeds } from '../../model/locality.ts';
import { selected } from '../../model/labels.ts';
import { failoverLabels, mtlsUse, resolvePolicy } from '../../model/policy-resolution.ts';
import { wholeObjects } from '../../model/provenance.ts';
import { type MeshService, isDns, outboundCluster, sniCluster } from '../../model/service.ts';
import type { DestinationRuleModel } from '../../model/traffic-policy.ts';
import { type AssignmentInput, settleAssignment } from '../../settle/assignment.ts';
import { topologyNeeds } from '../../settle/locality-plan.ts';
import type { Horizon } from '../../settle/split-horizon.ts';
import { type AssignmentStep, type PlacedAssignment, stepsOf } from './assignment-steps.ts';
import type { EndpointGroup } from '../objects/endpoint-groups.ts';
import { sharedClusters } from '../objects/shared-endpoints.ts';
import {
  type Place,
  type Places,
  type Topologies,
  countQualifiers,
  declarePlaces,
  everywhere,
  mostAssignmentsOfLabels,
  needsKey,
} from './places.ts';
import {
  type ClusterDeps,
  type Demand,
  type ResourceSet,
  at,
  declareDemands,
  ruledPortOf,
  sameSet,
} from './resource-sets.ts';
import { ONE } from '../inputs.ts';
import { settingOf } from '../settings.ts';
import type { ServiceView } from '../clients/views.ts';

interface MadeAssignments extends ResourceSet, HasProblems {}

/** Has no resources if they are built in steps. */
interface AssignmentSet extends MadeAssignments {
  readonly steps: readonly AssignmentStep[];
}

/** ClusterLoadAssignments of services, one for each place where they differ. */
export interface AssignmentSets {
  of(view: ServiceView, port: string, read: Reader): readonly ResourceSet[];
  readonly problems: readonly Collection<HasProblems>[];
}

export function declareAssignments(
  graph: Graph,
  deps: ClusterDeps,
  sources: readonly Collection<ServiceView>[],
  topologies: Topologies,
): AssignmentSets {
  const demands = declareDemands(graph, 'assignment set', sources, {
    keyOf: assignmentSetKey,
    clientOf,
  });
  const needs = graph.derive('assignment needs', demands, (key, demand, read, emit: Emit<TopologyNeeds>) => {
    const found = assignmentsOf(demand, undefined, read, deps, topologies)?.assignments ?? [];
    const compared = found.map(({ needs }) => needs).filter(({ labels }) => labels.length > 0);
    for (const [id, needs] of new Map(compared.map((needs) => [needsKey(needs), needs]))) emit(`${key}|${id}`, needs);
  });
  const places = declarePlaces(graph, topologies, needs);
  const assignmentSets = graph.derive(
    'assignmentSets',
    demands,
    (key, demand, read, emit: Emit<AssignmentSet>) => {
      const found = foundFor(demand, read, deps, topologies);
      if (found !== undefined) emit(key, assignmentSet(found, read, places, deps));
    },
    (a, b) => sameAssignments(a, b) && isDeepStrictEqual(a.steps, b.steps),
  );
  const steps = graph.derive('assignment steps', assignmentSets, (set, { steps }, _, emit: Emit<AssignmentStep>) => {
    for (const step of steps) emit(stepKey(set, step), step);
  });
  const moreAssignmentSets = graph.derive(
    'more assignmentSets',
    steps,
    (key, { placed }, read, emit: Emit<MadeAssignments>) => {
      const demand = read.get(demands, setOfKey(key));
      const found = demand && foundFor(demand, read, deps, topologies);
      if (found !== undefined) emit(key, makeAssignments(found, placed, deps));
    },
    sameAssignments,
  );
  const assignmentsFor = (view: ServiceView, port: string, read: Reader): readonly ResourceSet[] => {
    const key = assignmentSetKey(view, port);
    const set = read.get(assignmentSets, key);
    if (set === undefined) return [];
    return [set, ...set.steps.flatMap((step) => read.get(moreAssignmentSets, stepKey(key, step)) ?? [])];
  };
  return { of: assignmentsFor, problems: [assignmentSets, moreAssignmentSets] };
}

function sameAssignments(a: MadeAssignments, b: MadeAssignments): boolean {
  return isDeepStrictEqual(a.problems, b.problems) && sameSet(a, b);
}

const stepKey = (set: string, { id }: AssignmentStep): string => `${set}#${id}`;

const setOfKey = (key: string): string => key.slice(0, key.lastIndexOf('#'));

const assignmentSetKey = (view: ServiceView, port: string): string =>
  [view.service, view.rule, clientOf(view), port].join('|');

/** Whether clients have an agent, and so certificates; or forward what has mutual TLS already. */
type AssignmentClient = 'plain' | 'agent' | 'forwards';

type AssignmentDemand = Demand<AssignmentClient>;

function clientOf({ view, forwards = false }: ServiceView): AssignmentClient {
  if (forwards) return 'forwards';
  return view.traits.agent ? 'agent' : 'plain';
}

function foundFor(
  demand: AssignmentDemand,
  read: Reader,
  deps: ClusterDeps,
  topologies: Topologies,
): Assignments | undefined {
  return assignmentsOf(demand, read.get(deps.endpoints.groups, demand.service), read, deps, topologies);
}

interface Assignments {
  readonly service: MeshService;
  readonly rule: DestinationRuleModel | undefined;
  readonly endpoints: readonly EncodedEndpoint[];
  readonly localities: number;
  /** See {@link sizeOf}. */
  readonly size: number;
  readonly origins: readonly ObjectRef[];
  readonly assignments: readonly Assignment[];
}

/** The assignment of the host or of one of its subsets. */
interface Assignment {
  readonly input: AssignmentInput<Uint8Array>;
  readonly isSubset: boolean;
  readonly needs: TopologyNeeds;
}

function assignmentsOf(
  demand: AssignmentDemand,
  group: EndpointGroup | undefined,
  read: Reader,
  deps: ClusterDeps,
  topologies: Topologies,
): Assignments | undefined {
  const found = ruledPortOf(demand, read, deps);
  if (found === undefined || isDns(found.service)) return undefined;
  const { service, port, rule } = found;
  const settings = settingOf(read, deps.settings.clusters);
  const sharedBy = sharedClusters(service, read, deps);
  const endpoints = group?.byPort.get(port.name) ?? [];
  const forwards = demand.client === 'forwards';
  const horizon = horizonOf(demand.service, read, deps, topologies);
  const network = horizon === undefined ? {} : { network: true };
  const localities = new Set(endpoints.map(({ locality }) => locality)).size;
  return {
    service,
    rule,
    endpoints,
    localities,
    size: sizeOf(endpoints.length, localities),
    origins: [...service.origins, ...(rule?.origins ?? []), ...(group?.origins ?? [])],
    assignments: [undefined, ...(rule?.subsets ?? [])].map((subset) => {
      const policy = resolvePolicy(rule, port.number, subset, settings);
      const input = {
        service,
        settings,
        sharedBy,
        clusterName: (forwards ? sniCluster : outboundCluster)(port.number, subset?.name ?? '', service.host),
        forwards,
        policy,
        endpoints,
        horizon,
        subsetLabels: subset?.labels ?? {},
        mtls: demand.client === 'plain' ? ('never' as const) : mtlsUse(rule, port.number, subset),
      };
      return {
        input,
        isSubset: subset !== undefined,
        needs: { ...topologyNeeds(policy, service, settings, sharedBy !== undefined), ...network },
      };
    }),
  };
}

/**
 * The gateways of the networks that the endpoints of a service are in. Undefined: all proxies reach them directly. The
 * networks are those of the summary, so that it stays the same while endpoints come and go.
 */
function horizonOf(service: string, read: Reader, deps: ClusterDeps, topologies: Topologies): Horizon | undefined {
  const { networks = [] } = read.get(deps.endpoints.summaries, service) ?? {};
  if (networks.length === 0) return undefined;
  const known = networks.flatMap((network) => {
    const found = read.get(deps.networks.gateways, network);
    return found === undefined ? [] : [[network, found.gateways] as const];
  });
  if (known.length === 0 && read.get(topologies.requested, ONE) === undefined) return undefined;
  return new Map(known);
}

/**
 * Maximum number of endpoints in all assignments of a host, counted once per place and subset: about 100 bytes each. An
 * assignment of the host itself that looks the same from everywhere has all endpoints.
 */
const mostPlacedEndpoints = 500_000;
/** What a locality costs in addition to its endpoints. */
const endpointsOfLocality = 3;
/** Maximum for proxies that differ in a compared label, counting each even if several see the same. */
const mostPlacedAssignments = 50_000;

/** In endpoints, the unit of the limits: a single locality costs no more than its endpoints. */
const sizeOf = (endpoints: number, localities: number): number =>
  Math.max(1, endpoints + Math.max(0, localities - 1) * endpointsOfLocality);

/** Maximum size of one assignment. */
const mostOfEach = ({ service, assignments }: Assignments): number =>
  Math.floor(mostPlacedEndpoints / (assignments.length * service.ports.length));

function assignmentSet(found: Assignments, read: Reader, places: Places, deps: ClusterDeps): AssignmentSet {
  const { service, size, assignments } = found;
  const mostPlaces = Math.max(1, Math.floor(mostOfEach(found) / size));
  const labelled = assignments.filter(({ needs }) => needs.labels.length > 0).length;
  const mostProxies = Math.floor(mostPlacedAssignments / Math.max(1, labelled));
  const problems: Problem[] = [];
  const placed = assignments.flatMap(({ input, needs }, index) => {
    const from = (all: readonly Place[], ignoresLabels = false) =>
      all.map((place): PlacedAssignment => ({ index, ignoresLabels, place }));
    const all = places.of(read, needs);
    if (all !== undefined && needs.labels.length === 0) {
      const near = nearby(all, needs, mostPlaces);
      if (near !== all && problems.length === 0) problems.push(...tooManyLocalities(found, all.length));
      return from(near);
    }
    if (all !== undefined && all.length <= mostPlaces && countQualifiers(all) <= mostProxies) return from(all);
    if (problems.length === 0) problems.push(...tooManyPlaces(found, all));
    const { policy, settings, sharedBy } = input;
    const { network } = needs;
    const alike = {
      ...topologyNeeds(policy, service, settings, sharedBy !== undefined, true),
      ...(network === true && { network }),
    };
    return from(nearby(places.of(read, alike) ?? [], alike, mostPlaces), true);
  });
  const steps = stepsOf(placed, size);
  if (steps.length > 1) return { resources: [], problems, steps };
  const made = makeAssignments(found, placed, deps);
  return { resources: made.resources, problems: [...problems, ...made.problems], steps: [] };
}

function makeAssignments(
  found: Assignments,
  placed: readonly PlacedAssignment[],
  { encoder }: ClusterDeps,
): MadeAssignments {
  const { size, origins, assignments } = found;
  const most = mostOfEach(found);
  const problems: Problem[] = [];
  const resources = placed.flatMap(({ index, ignoresLabels, place }) => {
    const { input, isSubset } = assignments[index]!;
    const fitting = isSubset && size > most ? firstEndpoints(input, most) : input;
    if (fitting !== input && problems.length === 0) problems.push(...tooManyEndpoints(found, most));
    const built = buildAssignment(settleAssignment({ ...fitting, ignoresLabels, topology: place.topology }));
    const made = encoder.assignment(input.clusterName, built, () => wholeObjects(origins));
    return at(place, made);
  });
  return { resources, problems };
}

/** With too many localities, all endpoints count as equally far. */
function nearby(places: readonly Place[], needs: TopologyNeeds, most: number): readonly Place[] {
  const byLocality = needs.locality && !needs.nodeName && !needs.cluster && needs.network !== true;
  return byLocality && places.length > most ? [everywhere] : places;
}

/** For a subset, the first endpoints that it selects; the unchanged input if all of them fit. */
function firstEndpoints(input: AssignmentInput<Uint8Array>, most: number): AssignmentInput<Uint8Array> {
  const first: EncodedEndpoint[] = [];
  const localities = new Set<string>();
  for (const endpoint of selected(input.endpoints, input.subsetLabels)) {
    localities.add(endpoint.locality);
    if (sizeOf(first.length + 1, localities.size) > most) return { ...input, endpoints: first };
    first.push(endpoint);
  }
  return input;
}

function tooManyEndpoints({ service, rule, localities }: Assignments, most: number): Problem[] {
  const message = `${service.host} has ${service.ports.length} ports and ${rule?.subsets.length ?? 0} subsets, which share a limit of ${mostPlacedEndpoints} endpoints: only the first ${most} count for each${printLocalities(localities)}. Remove subsets that no route uses.`;
  return (rule?.origins ?? []).map((object) => ({ object, field: 'spec.subsets', reason: 'Ineffective', message }));
}

function tooManyLocalities(found: Assignments, localities: number): Problem[] {
  const { service, rule } = found;
  const ruled = rule?.policy.loadBalancer?.localityLb !== undefined;
  const field = ruled ? 'spec.trafficPolicy.loadBalancer.localityLbSetting' : 'spec';
  const message = `${printAssignments(found)}, and its clients are in ${localities} localities; at most ${mostPlacedEndpoints} endpoints in total are allowed, so near endpoints are not preferred. Remove subsets that no route uses, or turn off locality load balancing.`;
  return (ruled ? rule : service).origins.map((object) => ({ object, field, reason: 'Ineffective', message }));
}

function printAssignments({ service, rule, endpoints, localities }: Assignments): string {
  const { host, ports } = service;
  const subsets = rule?.subsets.length ?? 0;
  return `${host} has ${ports.length} ports × ${1 + subsets} assignments (of the host and its subsets) × ${endpoints.length} endpoints${printLocalities(localities)}`;
}

const printLocalities = (localities: number): string =>
  localities > 1
    ? ` (each of their ${localities} localities after the first counts as ${endpointsOfLocality} more)`
    : '';

function tooManyPlaces(found: Assignments, places: readonly Place[] | undefined): Problem[] {
  const { service, rule } = found;
  const ruled = rule !== undefined && failoverLabels(rule).length > 0;
  const field = !ruled
    ? 'spec'
    : rule.policy.loadBalancer?.localityLb === undefined
      ? 'spec.subsets'
      : 'spec.trafficPolicy.loadBalancer.localityLbSetting.failoverPriority';
  const message =
    places === undefined
      ? `The labels of clients would be compared for so many services that more than ${mostAssignmentsOfLabels} assignments would be needed, so they are not compared. Use labels with fewer distinct values, or compare them for fewer hosts.`
      : `${printAssignments(found)}, and its clients have ${places.length} combinations of the compared labels (${countQualifiers(places)} of all labels that any rule compares); at most ${mostPlacedEndpoints} endpoints and ${mostPlacedAssignments} assignments are allowed, so labels are not compared. Use labels with fewer distinct values.`;
  return (ruled ? rule : service).origins.map((object) => ({ object, field, reason: 'Ineffective', message }));
}
