import type { EncodedResource, Part } from '../../ads/store/resource.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { node, samePart, sameResource } from '../../envoy/encode/resource.ts';
import { hostResource, hostTable } from '../../envoy/names/host.ts';
import { nameTable, tableEntries } from '../../envoy/names/name-table.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import type { NamedHost } from '../../model/named-host.ts';
import { isHeadless } from '../../model/service.ts';
import type { Traits } from '../../model/traits.ts';
import { namedHosts } from '../../settle/named-hosts.ts';
import type { NameDemand, NameForm } from '../clients/name-demand.ts';
import type { Views } from '../clients/views.ts';
import { optionsOf } from '../inputs.ts';
import { namesList, tableList } from '../lists.ts';
import type { ServiceEndpoints } from '../objects/endpoints.ts';
import type { Networks } from '../objects/networks.ts';
import { isLeftToServices } from '../objects/service-names.ts';
import { type SharedEndpointsDeps, sharedClusters } from '../objects/shared-endpoints.ts';
import { type Member, type Members, emitMember, sameMember } from './members.ts';

export interface NameDeps extends SharedEndpointsDeps {
  readonly networks: Networks;
  readonly endpoints: ServiceEndpoints;
  readonly views: Views;
}

/** A service of a view whose names someone asks for. */
interface NameUse {
  readonly form: NameForm;
  readonly list: string;
  readonly view: string;
  /** `namespace/host` */
  readonly service: string;
  readonly traits: Pick<Traits, 'ipFamily' | 'dnsCapture' | 'cluster'>;
}

/** Some entries of a table. */
interface TablePiece {
  readonly view: string;
  readonly part: Part;
}

/**
 * What the agents beside proxies answer to DNS queries. The names of a service are encoded once for all views that see
 * it alike. Our own agents get them host by host; tables for Istio's agents are trees of shared entries.
 */
export function declareNames(graph: Graph, demand: NameDemand, deps: NameDeps): readonly Members[] {
  const uses = graph.derive('name uses', deps.views.serviceViews, (key, member, read, emit: Emit<NameUse>) => {
    const { list, view, service, isFirst } = member;
    const { ipFamily, dnsCapture, cluster } = view.traits;
    // If several egress listeners import a service, its names are in the list of the first.
    if (!isFirst) return;
    const asked = read.get(demand.views, view.key);
    if (asked === undefined || isOthers(service, view.client, read, deps)) return;
    for (const form of asked)
      emit(`${form} ${key}`, { form, list, view: view.key, service, traits: { ipFamily, dnsCapture, cluster } });
  });
  const byService = (form: NameForm) =>
    graph.index(`services named in ${form}`, uses, (_, use) => (use.form === form ? [setOf(use)] : []));
  const hosts = graph.derive(
    'hosts of services',
    byService('hosts'),
    (set, [first], read, emit: Emit<readonly EncodedResource[]>) => {
      const found = hostsOf(first.value, read, deps);
      if (found.length > 0) emit(set, found.map(hostResource));
    },
    (a, b) => a.length === b.length && a.every((each, i) => sameResource(each, b[i]!)),
  );
  const entries = graph.derive(
    'table entries of services',
    byService('table'),
    (set, [first], read, emit: Emit<Part>) => {
      const found = hostsOf(first.value, read, deps);
      if (found.length > 0) emit(set, tableEntries(found));
    },
    samePart,
  );
  const hostMembers = graph.derive(
    'hosts',
    uses,
    (_, use, read, emit: Emit<Member>) => {
      if (use.form !== 'hosts') return;
      for (const host of read.get(hosts, setOf(use)) ?? []) emitMember(emit, namesList(use.list), host);
    },
    sameMember,
  );
  // Even if there are no hosts, an agent is told so.
  const tableMarks = graph.derive(
    'hosts.tables',
    demand.scopes,
    (_, { scope, form }, __, emit: Emit<Member>) => {
      if (form === 'hosts') emitMember(emit, namesList(scope), hostTable());
    },
    sameMember,
  );
  return [hostMembers, tableMarks, declareTables(graph, demand, uses, entries)];
}

function declareTables(
  graph: Graph,
  demand: NameDemand,
  uses: Collection<NameUse>,
  entries: Collection<Part>,
): Members {
  const shards = graph.derive(
    'name tables of shards',
    graph.index('table uses by list', uses, (_, { form, list }) => (form === 'table' ? [list] : [])),
    (list, members, read, emit: Emit<TablePiece>) => {
      const parts = members.flatMap(({ value }) => read.get(entries, setOf(value)) ?? []);
      if (parts.length > 0) emit(list, { view: members[0].value.view, part: node(parts) });
    },
    samePiece,
  );
  const views = graph.derive(
    'name tables of views',
    graph.index('name tables by view', shards, (_, { view }) => [view]),
    (view, members, _, emit: Emit<TablePiece>) =>
      emit(view, { view, part: node(members.map(({ value }) => value.part)) }),
    samePiece,
  );
  return graph.derive(
    'nameTables',
    demand.scopes,
    (_, { scope, form, views: keys }, read, emit: Emit<Member>) => {
      if (form !== 'table') return;
      const parts = keys.flatMap((view) => read.get(views, view)?.part ?? []);
      emitMember(emit, tableList(scope), nameTable(parts));
    },
    sameMember,
  );
}

/** @param key `namespace/host` */
function isOthers(key: string, client: string, read: Reader, { inputs, services }: NameDeps): boolean {
  const [namespace = '', host = ''] = key.split('/');
  return isLeftToServices({ host, namespace }, client, optionsOf(read, inputs).domainSuffix, read, services);
}

/** Views that see a service's names alike have one text. */
function setOf({ service, traits: { ipFamily, dnsCapture, cluster } }: NameUse): string {
  return `${service}|${ipFamily}|${cluster}${dnsCapture ? '|dns-capture' : ''}`;
}

function hostsOf({ service: key, traits }: NameUse, read: Reader, deps: NameDeps): readonly NamedHost[] {
  const { networks, services, endpoints } = deps;
  const service = read.get(services.services, key);
  if (service === undefined) return [];
  const own = traits.cluster || optionsOf(read, deps.inputs).clusterId;
  const all = (): readonly Endpoint[] => {
    if (!isHeadless(service)) return [];
    const shared = sharedClusters(service, read, deps);
    const found = read.group(endpoints.byService, key).flatMap(({ value }) => value.endpoints);
    return shared === undefined
      ? found
      : found.filter(
          ({ cluster, viaClusterMesh }) => cluster === own || shared.includes(cluster) || viaClusterMesh === true,
        );
  };
  return namedHosts(service, all, { traits, cluster: own, network: networks.ofCluster(read, own) });
}

const samePiece = (a: TablePiece, b: TablePiece): boolean => a.view === b.view && samePart(a.part, b.part);
