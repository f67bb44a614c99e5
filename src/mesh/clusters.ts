import { isDeepStrictEqual } from 'node:util';
import type { EncodedResource } from '../ads/resource.ts';
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
import { dnsVantageNeeds } from '../envoy/cluster-dns.ts';
import { buildClusters } from '../envoy/clusters.ts';
import { types } from '../envoy/proto-types.ts';
import { type Protos, typeUrl } from '../envoy/proto.ts';
import { leaf, resource, sameResource } from '../envoy/resource.ts';
import { hostsMatch } from '../model/host.ts';
import { selects } from '../model/labels.ts';
import type { VisibilitySettings } from '../model/mesh-config.ts';
import { failoverLabels, resolvePolicy } from '../model/policy-resolution.ts';
import { type MeshService, type ServicePort, isDns, outboundCluster } from '../model/service.ts';
import type { DestinationRuleModel } from '../model/traffic-policy.ts';
import { clusterTraitsKey } from '../model/traits.ts';
import type { VantageNeeds } from '../envoy/locality.ts';
import { type EndpointGroup, NO_ENDPOINTS, type ServiceEndpoints } from './endpoints.ts';
import { type Member, type Members, emitMember, sameMember } from './members.ts';
import {
  type Place,
  type Places,
  declarePlaces,
  type Vantages,
  declareVantages,
  needsKey,
  nowhere,
  placesOf,
} from './places.ts';
import type { HasProblems } from './problems.ts';
import { type Rules, ruleOf } from './rules.ts';
import type { Proxies } from './proxies.ts';
import type { Services } from './services.ts';
import { type Settings, settingOf } from './settings.ts';
import type { ServiceView, Views } from './views.ts';

/** The resources of one port of a service under one rule, shared by all views that see it so. */
interface ResourceSet {
  readonly resources: readonly { readonly qualifier: string; readonly resource: EncodedResource }[];
}

/** The first resources of a set; the others stand in `more` further ones. */
interface AssignmentSet extends ResourceSet, HasProblems {
  readonly more: number;
}

export interface ClusterParts {
  readonly settings: Settings;
  readonly services: Services;
  readonly endpoints: ServiceEndpoints;
  readonly rules: Rules;
  readonly proxies: Proxies;
  readonly views: Views;
  readonly destinationViews: Collection<ServiceView>;
  readonly protos: Protos;
}

/** Outbound clusters and their assignments. Rules have subsets by the hundred, for every port: each is a step of its own. */
export function declareClusters(
  graph: Graph,
  parts: ClusterParts,
): { readonly members: readonly Members[]; readonly problems: readonly Collection<HasProblems>[] } {
  const vantages = declareVantages(graph, parts.proxies);
  const sources = [parts.views.serviceViews, parts.destinationViews];
  const clusterSets = graph.derive(
    'clusterSets',
    graph.index('views by cluster set', sources, (_, view) => portsOf(view).map((port) => clusterSetKey(view, port))),
    (key, members, read, emit: Emit<ResourceSet>) => {
      const { value } = members[0]!;
      const set = clusterSet(value, portOfKey(key), read, parts, vantages);
      if (set !== undefined) emit(key, set);
    },
    sameSet,
  );
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
  const steps = graph.derive('more assignments', assignmentSets, (set, { more }, _, emit: Emit<Step>) => {
    for (let step = 1; step <= more; step++) emit(stepKey(set, step), { set, step });
  });
  const moreAssignmentSets = graph.derive(
    'more assignmentSets',
    steps,
    (key, { set, step }, read, emit: Emit<AssignmentSet>) => {
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
  const clustersFor = (view: ServiceView, port: string, read: Reader): readonly ResourceSet[] => {
    const set = read.get(clusterSets, clusterSetKey(view, port));
    return set === undefined ? [] : [set];
  };
  const byPort = sources.map((source) =>
    graph.index(`ports of ${source.name}`, source, (key, view) => portsOf(view).map((port) => `${key}|${port}`)),
  );
  const membersOf = (
    name: string,
    setsFor: (view: ServiceView, port: string, read: Reader) => readonly ResourceSet[],
  ): readonly Members[] =>
    byPort.map((source) =>
      graph.derive(
        `${name} of ${source.name}`,
        source,
        (key, [first], read, emit: Emit<Member>) => {
          const view = first!.value;
          for (const { resources } of setsFor(view, portOfKey(key), read))
            for (const entry of resources) emitMember(emit, view.list, entry.resource, entry.qualifier);
        },
        sameMember,
      ),
    );
  return {
    members: [...membersOf('clusters', clustersFor), ...membersOf('assignments', assignmentsFor)],
    problems: [assignmentSets, moreAssignmentSets],
  };
}

function sameAssignments(a: AssignmentSet, b: AssignmentSet): boolean {
  return a.more === b.more && isDeepStrictEqual(a.problems, b.problems) && sameSet(a, b);
}

interface Step {
  readonly set: string;
  readonly step: number;
}

const stepKey = (set: string, step: number): string => `${set}#${step}`;

/** A number may be that of a port of TCP and of one of UDP. */
const portsOf = (view: ServiceView): string[] => [...new Set(view.clusterPorts)].map(String);

const portOfKey = (key: string): string => key.slice(key.lastIndexOf('|') + 1);

const clusterSetKey = (view: ServiceView, port: string): string =>
  [view.service, view.rule, clusterTraitsKey(view.view.traits), port].join('|');

const assignmentSetKey = (view: ServiceView, port: string): string =>
  [view.service, view.rule, Number(view.view.traits.agent), port].join('|');

function sameSet(a: ResourceSet, b: ResourceSet): boolean {
  return (
    a.resources.length === b.resources.length &&
    a.resources.every((x, i) => {
      const y = b.resources[i]!;
      return x.qualifier === y.qualifier && sameResource(x.resource, y.resource);
    })
  );
}

const noNeeds: VantageNeeds = { locality: false, nodeName: false, cluster: false, labels: [] };
interface Parts {
  readonly service: MeshService;
  readonly port: ServicePort;
  readonly rule: DestinationRuleModel | undefined;
}

function partsOf(view: ServiceView, number: string, read: Reader, parts: ClusterParts): Parts | undefined {
  const service = read.get(parts.services.services, view.service);
  const port = service?.ports.find((own) => String(own.number) === number && own.protocol !== 'UDP');
  if (service === undefined || port === undefined) return undefined;
  return { service, port, rule: ruleOf(read, parts.rules, view.rule, service) };
}

function clusterSet(
  view: ServiceView,
  number: string,
  read: Reader,
  parts: ClusterParts,
  vantages: Vantages,
): ResourceSet | undefined {
  const found = partsOf(view, number, read, parts);
  if (found === undefined) return undefined;
  const { service, port, rule } = found;
  const settings = settingOf(read, parts.settings.clusters);
  const summary = read.get(parts.endpoints.summaries, view.service) ?? NO_ENDPOINTS;
  // The endpoints of a DNS service stand in the cluster itself.
  const needs = isDns(service) ? dnsVantageNeeds(service, port, rule, settings) : noNeeds;
  return {
    resources: placesOf(read, vantages, needs).flatMap((place) =>
      buildClusters({
        protos: parts.protos,
        service,
        port,
        ...(rule && { rule }),
        traits: view.view.traits,
        settings,
        summary,
        vantage: place.vantage,
      }).flatMap((built) => {
        const part = leaf(parts.protos.encode(types.cluster, built.cluster), [], built.origins);
        return at(place, resource(typeUrl(types.cluster), built.name, part));
      }),
    ),
  };
}

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
  const found = partsOf(view, number, read, parts);
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
    if (needs.labels.length === 0) return nearby(all, needs, mostPlaces).map((place) => ({ input, isSubset, place }));
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
  const times = `${service.ports.length} ports × ${1 + (rule?.subsets.length ?? 0)} assignments (of the host and its subsets)`;
  const message = `${service.host} has ${times} × ${endpoints} endpoints, and its clients have ${places.length} combinations of the labels that are compared (${countQualifiers(places)} of all labels that any rule compares); ${mostPlacedEndpoints} endpoints and ${mostPlacedAssignments} assignments are possible, so labels are not compared. Name labels in which fewer Pods differ.`;
  return (ruled ? rule : service).origins.map((object) => ({ object, field, reason: 'Ineffective', message }));
}

function countQualifiers(places: readonly Place[]): number {
  let sum = 0;
  for (const { qualifiers } of places) sum += qualifiers.length;
  return sum;
}

/** A resource for all who are at a place. */
function at(place: Place, made: EncodedResource): ResourceSet['resources'] {
  return place.qualifiers.map((qualifier) => ({ qualifier, resource: made }));
}

/** The most specific setting for a host decides. */
function isClusterLocal(host: string, settings: VisibilitySettings['clusterLocalHosts']): boolean {
  return settings.find((setting) => hostsMatch(setting.host, host))?.clusterLocal ?? false;
}
