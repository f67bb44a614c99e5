import type { EncodedResource } from '../ads/resource.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../cache/graph.ts';
import { buildAssignment, mtlsUsable, narrowVantage, vantageNeeds } from '../envoy/assignment.ts';
import { dnsVantageNeeds } from '../envoy/cluster-dns.ts';
import { buildClusters } from '../envoy/clusters.ts';
import { types } from '../envoy/proto-types.ts';
import { type Protos, typeUrl } from '../envoy/proto.ts';
import { leaf, resource, sameResource } from '../envoy/resource.ts';
import { hostsMatch } from '../model/host.ts';
import type { VisibilitySettings } from '../model/mesh-config.ts';
import { resolvePolicy } from '../model/policy-resolution.ts';
import { type MeshService, type ServicePort, isDns, outboundCluster } from '../model/service.ts';
import type { DestinationRuleModel } from '../model/traffic-policy.ts';
import { clusterTraitsKey } from '../model/traits.ts';
import type { VantageNeeds } from '../envoy/locality.ts';
import type { Vantage } from '../model/vantage.ts';
import { NO_ENDPOINTS, type ServiceEndpoints } from './endpoints.ts';
import { type Member, type Members, emitMember, qualifiers, sameMember } from './members.ts';
import { type Rules, ruleOf } from './rules.ts';
import type { Proxies } from './proxies.ts';
import type { Services } from './services.ts';
import { type Settings, settingOf } from './settings.ts';
import type { ServiceView, Views } from './views.ts';

/** The resources of one port of a service under one rule, shared by all views that see it so. */
interface ResourceSet {
  readonly resources: readonly { readonly qualifier: string; readonly resource: EncodedResource }[];
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
export function declareClusters(graph: Graph, parts: ClusterParts): readonly Members[] {
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
  const assignmentSets = graph.derive(
    'assignmentSets',
    graph.index('views by assignment set', sources, (_, view) =>
      portsOf(view).map((port) => assignmentSetKey(view, port)),
    ),
    (key, members, read, emit: Emit<ResourceSet>) => {
      const { value } = members[0]!;
      const set = assignmentSet(value, portOfKey(key), read, parts, vantages);
      if (set !== undefined) emit(key, set);
    },
    sameSet,
  );
  const byPort = sources.map((source) =>
    graph.index(`ports of ${source.name}`, source, (key, view) => portsOf(view).map((port) => `${key}|${port}`)),
  );
  const membersOf = (name: string, sets: Collection<ResourceSet>, keyOf: (view: ServiceView, port: string) => string) =>
    byPort.map((source) =>
      graph.derive(
        `${name} of ${source.name}`,
        source,
        (key, [first], read, emit: Emit<Member>) => {
          const view = first!.value;
          for (const entry of read.get(sets, keyOf(view, portOfKey(key)))?.resources ?? [])
            emitMember(emit, view.list, entry.resource, entry.qualifier);
        },
        sameMember,
      ),
    );
  return [
    ...membersOf('clusters', clusterSets, clusterSetKey),
    ...membersOf('assignments', assignmentSets, assignmentSetKey),
  ];
}

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

interface Vantages {
  /** Group `all`: every locality that a connected proxy has. */
  readonly localities: Index<string>;
  readonly full: Index<{ readonly key: string; readonly vantage: Vantage }>;
}

/** Demand is data: assignments are made for the places where somebody is. */
function declareVantages(graph: Graph, proxies: Proxies): Vantages {
  const full = graph.derive(
    'vantages',
    proxies.byVantage,
    (key, members, _, emit: Emit<{ key: string; vantage: Vantage }>) => {
      const { value } = members[0]!;
      if ('vantage' in value) emit(key, { key, vantage: value.vantage });
    },
  );
  const localities = graph.derive(
    'localities',
    graph.index('vantages by locality', full, (_, { vantage }) => [vantage.locality]),
    (locality, _, __, emit: Emit<string>) => emit(locality, locality),
  );
  return {
    localities: graph.index('all localities', localities, () => ['all']),
    full: graph.index('all vantages', full, () => ['all']),
  };
}

interface Place {
  readonly vantage: Vantage;
  /** Of the proxies there; a single empty one where something looks the same from everywhere. */
  readonly qualifiers: readonly string[];
}

/** The places from which something looks different, each once, however many proxies are there. */
function placesOf(read: Reader, vantages: Vantages, needs: VantageNeeds): readonly Place[] {
  if (needs.nodeName || needs.cluster || needs.labels.length > 0) {
    const places = new Map<string, { vantage: Vantage; qualifiers: string[] }>();
    for (const { value } of read.group(vantages.full, 'all')) {
      const vantage = narrowVantage(value.vantage, needs);
      const id = JSON.stringify(vantage);
      const place = places.get(id) ?? { vantage, qualifiers: [] };
      places.set(id, place);
      place.qualifiers.push(qualifiers.vantage(value.key));
    }
    return [...places.values()];
  }
  if (!needs.locality) return [{ vantage: nowhere, qualifiers: [''] }];
  return read
    .group(vantages.localities, 'all')
    .map(({ value }) => ({ vantage: { ...nowhere, locality: value }, qualifiers: [qualifiers.locality(value)] }));
}

const noNeeds: VantageNeeds = { locality: false, nodeName: false, cluster: false, labels: [] };
const nowhere: Vantage = { locality: '', network: '', cluster: '', nodeName: '', labels: {} };

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

function assignmentSet(
  view: ServiceView,
  number: string,
  read: Reader,
  parts: ClusterParts,
  vantages: Vantages,
): ResourceSet | undefined {
  const found = partsOf(view, number, read, parts);
  if (found === undefined || isDns(found.service)) return undefined;
  const { service, port, rule } = found;
  const settings = settingOf(read, parts.settings.clusters);
  const { clusterLocalHosts } = settingOf(read, parts.settings.visibility);
  const clusterLocal = isClusterLocal(service.host, clusterLocalHosts);
  const group = read.get(parts.endpoints.groups, view.service);
  const origins = [...service.origins, ...(rule?.origins ?? []), ...(group?.origins ?? [])];
  const shared = { service, settings, clusterLocal };
  return {
    resources: [undefined, ...(rule?.subsets ?? [])].flatMap((subset) => {
      const policy = resolvePolicy(rule, port.number, subset, settings);
      const clusterName = outboundCluster(port.number, subset?.name ?? '', service.host);
      const input = {
        ...shared,
        clusterName,
        policy,
        endpoints: group?.byPort.get(port.name) ?? [],
        subsetLabels: subset?.labels ?? {},
        mtls: view.view.traits.agent && mtlsUsable(rule, port.number, subset),
      };
      const needs = vantageNeeds(policy, service, settings, clusterLocal);
      return placesOf(read, vantages, needs).flatMap((place) => {
        const bytes = buildAssignment({ ...input, vantage: place.vantage });
        return at(place, resource(typeUrl(types.endpoint), clusterName, leaf(bytes, [], origins)));
      });
    }),
  };
}

/** A resource for all who are at a place. */
function at(place: Place, made: EncodedResource): ResourceSet['resources'] {
  return place.qualifiers.map((qualifier) => ({ qualifier, resource: made }));
}

/** The most specific setting for a host decides. */
function isClusterLocal(host: string, settings: VisibilitySettings['clusterLocalHosts']): boolean {
  return settings.find((setting) => hostsMatch(setting.host, host))?.clusterLocal ?? false;
}
