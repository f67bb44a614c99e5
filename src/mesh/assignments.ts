import { isDeepStrictEqual } from 'node:util';
import type { ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../cache/graph.ts';
import {
  type AssignmentInput,
  type EncodedEndpoint,
  buildAssignment,
  mtlsUsable,
  vantageNeeds,
} from '../envoy/assignment.ts';
import type { VantageNeeds } from '../envoy/locality.ts';
import { types } from '../envoy/proto-types.ts';
import { typeUrl } from '../envoy/proto.ts';
import { leaf, resource } from '../envoy/resource.ts';
import { hostsMatch } from '../model/host.ts';
import { selects } from '../model/labels.ts';
import type { VisibilitySettings } from '../model/mesh-config.ts';
import { failoverLabels, resolvePolicy } from '../model/policy-resolution.ts';
import { type MeshService, isDns, outboundCluster } from '../model/service.ts';
import type { DestinationRuleModel } from '../model/traffic-policy.ts';
import type { EndpointGroup } from './endpoints.ts';
import { type Place, type Places, type Vantages, declarePlaces, needsKey, nowhere } from './places.ts';
import type { HasProblems } from './problems.ts';
import { type ClusterParts, type ResourceSet, at, portOfKey, portsOf, ruledPortOf, sameSet } from './resource-sets.ts';
import { settingOf } from './settings.ts';
import type { ServiceView } from './views.ts';

/** The first resources of a set; the others stand in `more` further ones. */
interface AssignmentSet extends ResourceSet, HasProblems {
  readonly more: number;
}

/** ClusterLoadAssignments of services, for each place where they differ. */
export interface AssignmentSets {
  of(view: ServiceView, port: string, read: Reader): readonly ResourceSet[];
  readonly problems: readonly Collection<HasProblems>[];
}

export function declareAssignments(
  graph: Graph,
  parts: ClusterParts,
  sources: readonly Collection<ServiceView>[],
  vantages: Vantages,
): AssignmentSets {
  const byAssignmentSet = graph.index('views by assignment set', sources, (_, view) =>
    portsOf(view).map((port) => assignmentSetKey(view, port)),
  );
  const needs = graph.derive('assignment needs', byAssignmentSet, (key, members, read, emit: Emit<VantageNeeds>) => {
    const found = assignmentsOf(members[0]!.value, portOfKey(key), undefined, read, parts)?.assignments ?? [];
    const compared = found.map(({ needs }) => needs).filter(({ labels }) => labels.length > 0);
    for (const [id, needs] of new Map(compared.map((needs) => [needsKey(needs), needs]))) emit(`${key}|${id}`, needs);
  });
  const places = declarePlaces(graph, vantages, needs);
  const assignmentSets = graph.derive(
    'assignmentSets',
    byAssignmentSet,
    (key, members, read, emit: Emit<AssignmentSet>) => {
      const built = buildAssignments(members[0]!.value, portOfKey(key), 0, read, parts, places);
      if (built !== undefined) emit(key, built);
    },
    sameAssignments,
  );
  const steps = graph.index('more assignments', assignmentSets, (set, { more }) =>
    Array.from({ length: more }, (_, i) => stepKey(set, i + 1)),
  );
  const moreAssignmentSets = graph.derive(
    'more assignmentSets',
    steps,
    (key, _, read, emit: Emit<AssignmentSet>) => {
      const { set, step } = stepOfKey(key);
      const [member] = read.group(byAssignmentSet, set);
      const built = member && buildAssignments(member.value, portOfKey(set), step, read, parts, places);
      if (built !== undefined) emit(key, built);
    },
    sameAssignments,
  );
  const assignmentsFor = (view: ServiceView, port: string, read: Reader): readonly ResourceSet[] => {
    const key = assignmentSetKey(view, port);
    const first = read.get(assignmentSets, key);
    if (first === undefined) return [];
    const rest = Array.from({ length: first.more }, (_, i) => read.get(moreAssignmentSets, stepKey(key, i + 1)));
    return [first, ...rest.filter((set) => set !== undefined)];
  };
  return { of: assignmentsFor, problems: [assignmentSets, moreAssignmentSets] };
}

function sameAssignments(a: AssignmentSet, b: AssignmentSet): boolean {
  return a.more === b.more && isDeepStrictEqual(a.problems, b.problems) && sameSet(a, b);
}

const stepKey = (set: string, step: number): string => `${set}#${step}`;

function stepOfKey(key: string): { readonly set: string; readonly step: number } {
  const at = key.lastIndexOf('#');
  return { set: key.slice(0, at), step: Number(key.slice(at + 1)) };
}

const assignmentSetKey = (view: ServiceView, port: string): string =>
  [view.service, view.rule, Number(view.view.traits.agent), port].join('|');

interface Assignments {
  readonly service: MeshService;
  readonly rule: DestinationRuleModel | undefined;
  readonly endpoints: readonly EncodedEndpoint[];
  readonly origins: readonly ObjectRef[];
  readonly assignments: readonly Assignment[];
}

/** Of the host, or one of its subsets. */
interface Assignment {
  readonly input: AssignmentInput;
  readonly isSubset: boolean;
  readonly needs: VantageNeeds;
}

function assignmentsOf(
  view: ServiceView,
  number: string,
  group: EndpointGroup | undefined,
  read: Reader,
  parts: ClusterParts,
): Assignments | undefined {
  const found = ruledPortOf(view, number, read, parts);
  if (found === undefined || isDns(found.service)) return undefined;
  const { service, port, rule } = found;
  const settings = settingOf(read, parts.settings.clusters);
  const { clusterLocalHosts } = settingOf(read, parts.settings.visibility);
  const clusterLocal = isClusterLocal(service.host, clusterLocalHosts);
  const endpoints = group?.byPort.get(port.name) ?? [];
  return {
    service,
    rule,
    endpoints,
    origins: [...service.origins, ...(rule?.origins ?? []), ...(group?.origins ?? [])],
    assignments: [undefined, ...(rule?.subsets ?? [])].map((subset) => {
      const policy = resolvePolicy(rule, port.number, subset, settings);
      const input = {
        service,
        settings,
        clusterLocal,
        clusterName: outboundCluster(port.number, subset?.name ?? '', service.host),
        policy,
        endpoints,
        subsetLabels: subset?.labels ?? {},
        mtls: view.view.traits.agent && mtlsUsable(rule, port.number, subset),
      };
      return {
        input,
        isSubset: subset !== undefined,
        needs: vantageNeeds(policy, service, settings, clusterLocal),
      };
    }),
  };
}

/**
 * Endpoints that the assignments of a host hold together, each once for every place and subset: about 100 bytes each. An
 * assignment of the host itself that looks the same from everywhere has all.
 */
const mostPlacedEndpoints = 500_000;
/** For proxies that differ in a label, however many see the same: in one step for each port. */
const mostPlacedAssignments = 50_000;
/** In one step, 1 µs each. */
const endpointsOfStep = 20_000;

function buildAssignments(
  view: ServiceView,
  number: string,
  step: number,
  read: Reader,
  parts: ClusterParts,
  places: Places,
): AssignmentSet | undefined {
  const group = read.get(parts.endpoints.groups, view.service);
  const found = assignmentsOf(view, number, group, read, parts);
  if (found === undefined) return undefined;
  const { service, rule, endpoints, origins, assignments } = found;
  const size = Math.max(1, endpoints.length);
  const mostEndpoints = Math.floor(mostPlacedEndpoints / (assignments.length * service.ports.length));
  const mostPlaces = Math.max(1, Math.floor(mostEndpoints / size));
  const labelled = assignments.filter(({ needs }) => needs.labels.length > 0).length;
  const mostProxies = Math.floor(mostPlacedAssignments / Math.max(1, labelled));
  const problems: Problem[] = [];
  const placed = assignments.flatMap(({ input, isSubset, needs }) => {
    const all = places.of(read, needs);
    if (needs.labels.length === 0) {
      const near = nearby(all, needs, mostPlaces);
      if (near !== all && problems.length === 0)
        problems.push(...tooManyLocalities(service, rule, all.length, endpoints.length));
      return near.map((place) => ({ input, isSubset, place }));
    }
    if (all.length <= mostPlaces && countQualifiers(all) <= mostProxies)
      return all.map((place) => ({ input, isSubset, place }));
    if (problems.length === 0) problems.push(...tooManyPlaces(service, rule, all, endpoints.length));
    const { policy, settings, clusterLocal } = input;
    const alike = vantageNeeds(policy, service, settings, clusterLocal, true);
    return nearby(places.of(read, alike), alike, mostPlaces).map((place) => ({
      input: { ...input, ignoresLabels: true },
      isSubset,
      place,
    }));
  });
  const length = Math.max(1, Math.floor(endpointsOfStep / size));
  const built = placed.slice(step * length, (step + 1) * length).flatMap(({ input, isSubset, place }) => {
    const fitting = !isSubset || size <= mostEndpoints ? input : firstEndpoints(input, mostEndpoints);
    if (fitting.endpoints.length < input.endpoints.length && fitting.endpoints.length === mostEndpoints)
      problems.push(...tooManyEndpoints(service, rule, mostEndpoints));
    const bytes = buildAssignment({ ...fitting, vantage: place.vantage });
    return at(place, resource(typeUrl(types.endpoint), input.clusterName, leaf(bytes, [], origins)));
  });
  return { resources: built, more: Math.ceil(placed.length / length) - 1, problems };
}

/** From too many localities all endpoints are equally far. */
function nearby(places: readonly Place[], needs: VantageNeeds, most: number): readonly Place[] {
  const byLocality = needs.locality && !needs.nodeName && !needs.cluster;
  return byLocality && places.length > most ? [nowhere] : places;
}

/** Of a subset, those that it selects. */
function firstEndpoints(input: AssignmentInput, most: number): AssignmentInput {
  const { endpoints, subsetLabels } = input;
  const selected: EncodedEndpoint[] = [];
  for (const endpoint of endpoints) {
    if (selected.length === most) break;
    if (selects(subsetLabels, endpoint.labels)) selected.push(endpoint);
  }
  return { ...input, endpoints: selected };
}

function tooManyEndpoints(service: MeshService, rule: DestinationRuleModel | undefined, most: number): Problem[] {
  const message = `${service.host} has ${service.ports.length} ports and ${rule?.subsets.length ?? 0} subsets, and ${mostPlacedEndpoints} endpoints are possible for all of them: only the first ${most} count for each. Remove subsets that no route names.`;
  return (rule?.origins ?? []).map((object) => ({ object, field: 'spec.subsets', reason: 'Ineffective', message }));
}

function tooManyLocalities(
  service: MeshService,
  rule: DestinationRuleModel | undefined,
  localities: number,
  endpoints: number,
): Problem[] {
  const ruled = rule?.policy.loadBalancer?.localityLb !== undefined;
  const field = ruled ? 'spec.trafficPolicy.loadBalancer.localityLbSetting' : 'spec';
  const message = `${printAssignments(service, rule, endpoints)}, and its clients are in ${localities} localities; ${mostPlacedEndpoints} endpoints are possible for all of them, so near endpoints are not preferred. Remove subsets that no route names, or turn locality load balancing off.`;
  return (ruled ? rule : service).origins.map((object) => ({ object, field, reason: 'Ineffective', message }));
}

function printAssignments(
  { host, ports }: MeshService,
  rule: DestinationRuleModel | undefined,
  endpoints: number,
): string {
  const subsets = rule?.subsets.length ?? 0;
  return `${host} has ${ports.length} ports × ${1 + subsets} assignments (of the host and its subsets) × ${endpoints} endpoints`;
}

function tooManyPlaces(
  service: MeshService,
  rule: DestinationRuleModel | undefined,
  places: readonly Place[],
  endpoints: number,
): Problem[] {
  const ruled = rule !== undefined && failoverLabels(rule).length > 0;
  const field = !ruled
    ? 'spec'
    : rule.policy.loadBalancer?.localityLb === undefined
      ? 'spec.subsets'
      : 'spec.trafficPolicy.loadBalancer.localityLbSetting.failoverPriority';
  const message = `${printAssignments(service, rule, endpoints)}, and its clients have ${places.length} combinations of the labels that are compared (${countQualifiers(places)} of all labels that any rule compares); ${mostPlacedEndpoints} endpoints and ${mostPlacedAssignments} assignments are possible, so labels are not compared. Name labels in which fewer Pods differ.`;
  return (ruled ? rule : service).origins.map((object) => ({ object, field, reason: 'Ineffective', message }));
}

function countQualifiers(places: readonly Place[]): number {
  let sum = 0;
  for (const { qualifiers } of places) sum += qualifiers.length;
  return sum;
}

/** The most specific setting for a host decides. */
function isClusterLocal(host: string, settings: VisibilitySettings['clusterLocalHosts']): boolean {
  return settings.find((setting) => hostsMatch(setting.host, host))?.clusterLocal ?? false;
}
