import { joinKey, parseNameKey, splitKey } from '../../api/keys.ts';
import type { Collection, Emit, Graph, Index } from '../../cache/graph.ts';
import { printSelector } from '../../model/labels.ts';
import { isInMesh } from '../../model/route-binding.ts';
import type { Audiences } from './audiences.ts';
import type { Selectors } from './selectors.ts';
import { routeTargets } from './route-targets.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import { type Services, shardOf } from '../objects/services.ts';
import { wholeOf } from '../whole.ts';

export interface NamespaceDeps {
  readonly services: Services;
  readonly bindings: RouteBindings;
  readonly selectors: Selectors;
  readonly audiences: Audiences;
  /** Hosts of routes. */
  readonly routeHosts: { readonly hosts: Collection<{ readonly namespace: string; readonly host: string }> };
}

/** Who sees the services of a namespace differently. */
export interface NamespaceClients {
  readonly namespace: string;
  /** Client namespaces with a view of their own. */
  readonly audiences: readonly string[];
  /** Selectors that split its clients further. */
  readonly selectors: readonly string[];
  /** Other namespaces that have routes for hosts of this one. */
  readonly routedFrom: readonly string[];
  /** Other namespaces for whose hosts this one has routes. */
  readonly routedTo: readonly string[];
  /** Whether another namespace has a service with one of its hosts. */
  readonly contested: boolean;
}

export interface Namespaces {
  /** Shards with services or route hosts, by namespace. */
  readonly shards: Collection<readonly string[]>;
  /** Group `all`. */
  readonly all: Index<NamespaceClients>;
}

/** The namespaces that have services or route hosts. */
export function declareNamespaces(graph: Graph, deps: NamespaceDeps): Namespaces {
  const shards = graph.derive(
    'shards',
    graph.index<{ readonly namespace: string; readonly host: string }>(
      'hosts by shard',
      [deps.services.services, deps.routeHosts.hosts],
      (_, value) => [shardOf(value)],
    ),
    (shard, _, __, emit: Emit<string>) => emit(shard, parseNameKey(shard).namespace),
  );
  const byNamespace = graph.index('shards by namespace', shards, (_, namespace) => [namespace]);
  const shardsOf = graph.derive(
    'shards of namespaces',
    byNamespace,
    (namespace, members, _, emit: Emit<readonly string[]>) =>
      emit(
        namespace,
        members.map((member) => member.key),
      ),
  );
  const foreignRoutes = declareForeignRoutes(graph, deps);
  const contested = declareContested(graph, deps);
  // Kept apart from the shards, which come and go with services: scopes read this.
  const clients = graph.derive('namespaces', shardsOf, (namespace, _, read, emit: Emit<NamespaceClients>) => {
    const about = <T>(index: Index<T>) =>
      [...read.group(index, namespace), ...read.group(index, '*')].map((member) => member.value);
    emit(namespace, {
      namespace,
      audiences: [...new Set(about(deps.audiences.byTarget).map((claim) => claim.client))].sort(),
      selectors: [...new Set(about(deps.selectors.byTarget).map((mention) => printSelector(mention.selector)))].sort(),
      routedFrom: about(foreignRoutes.byTarget).filter((from) => from !== namespace),
      routedTo: read.group(foreignRoutes.bySource, namespace).map((member) => member.value),
      contested: read.get(contested, namespace) === true,
    });
  });
  return { shards: shardsOf, all: wholeOf(graph, 'all namespaces', clients) };
}

/** Namespaces of routes by the namespaces whose hosts these are for (`*`: any), and the reverse. */
function declareForeignRoutes(
  graph: Graph,
  { services, bindings }: NamespaceDeps,
): { readonly byTarget: Index<string>; readonly bySource: Index<string> } {
  interface ForeignRoute {
    readonly target: string;
    readonly from: string;
  }
  const each = graph.derive('foreignRoutes.each', bindings.all, (key, binding, read, emit: Emit<ForeignRoute>) => {
    if (!isInMesh(binding)) return;
    const { namespace } = binding;
    for (const target of routeTargets(binding, read, services, bindings))
      if (target !== namespace) emit(joinKey(key, target), { target, from: namespace });
  });
  const distinct = graph.derive(
    'foreignRoutes',
    graph.index('foreign routes by namespaces', each, (_, { target, from }) => [joinKey(target, from)]),
    (key, [first], _, emit: Emit<string>) => emit(key, first.value.from),
  );
  const targetOf = (key: string): string => splitKey(key)[0];
  const targets = graph.derive('foreignRoutes.targets', distinct, (key, _, __, emit: Emit<string>) =>
    emit(key, targetOf(key)),
  );
  return {
    byTarget: graph.index('foreign routes by target', distinct, (key) => [targetOf(key)]),
    bySource: graph.index('foreign routes by source', targets, (key) => [splitKey(key)[1]]),
  };
}

/** Namespaces that share a host with another namespace. */
function declareContested(graph: Graph, { services }: NamespaceDeps): Collection<true> {
  const each = graph.derive('contested.each', services.byHost, (host, members, _, emit: Emit<string>) => {
    const namespaces = new Set(members.map(({ value }) => value.namespace));
    if (namespaces.size > 1) for (const namespace of namespaces) emit(joinKey(host, namespace), namespace);
  });
  return graph.derive(
    'contested',
    graph.index('contested hosts by namespace', each, (_, namespace) => [namespace]),
    (namespace, _, __, emit: Emit<true>) => emit(namespace, true),
  );
}
