import { joinKey, splitKey, kindKey, parseKindKey } from '../../api/keys.ts';
import { objectKey, parseObjectKey } from '../../api/object.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import { isMesh } from '../../model/route-binding.ts';
import type { Routers } from './routers.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';

interface Finding extends HasProblems {
  /** Namespace of the routers. */
  readonly namespace: string;
}

/**
 * What is wrong on routers, as reported to the owners of Gateways and routes. A Gateway selects routers by
 * their labels, in every namespace, so anyone can run a router that lacks something. Routers in a namespace of the
 * objects themselves, or in the root namespace, speak for all; if there are none, all others must agree. Keys of the
 * sources begin with the router class.
 */
export function declareRouterFindings(
  graph: Graph,
  { inputs, bindings }: { readonly inputs: Inputs; readonly bindings: RouteBindings },
  routers: Routers,
  sources: readonly Collection<HasProblems>[],
): Collection<HasProblems> {
  const found = sources.map((source, i) =>
    graph.derive(`findings of ${source.name}`, source, (key, { problems }, read, emit: Emit<Finding>) => {
      if (problems.length === 0) return;
      const [routerClass] = splitKey(key);
      emit(joinKey(i, key), { namespace: read.get(routers.classes, routerClass)?.namespace ?? '', problems });
    }),
  );
  const byGateway = graph.index('router classes by gateway', routers.classes, (_, { gateways }) => gateways);
  const byObject = graph.index('findings by object', found, (_, { problems }) => [...new Set(problems.map(idOf))]);
  return graph.derive('router findings', byObject, (id, members, read, emit: Emit<HasProblems>) => {
    const { kind, key } = parseKindKey(id);
    const { source, namespace } = parseObjectKey(key);
    const parents = kind === 'Gateway' ? [] : (read.get(bindings.all, id)?.parents ?? []);
    const named = parents.filter((parent) => !isMesh(parent));
    const gateways = kind === 'Gateway' ? [key] : named.map((each) => objectKey(source, each.namespace, each.name));
    const own = members.map(({ value }) => ({
      namespace: value.namespace,
      problems: value.problems.filter((problem) => idOf(problem) === id),
    }));
    const namespaces = new Set(
      gateways.length === 0
        ? own.map((finding) => finding.namespace)
        : gateways.flatMap((gateway) => read.group(byGateway, gateway).map(({ value }) => value.namespace)),
    );
    const near = new Set([namespace, optionsOf(read, inputs).rootNamespace]);
    for (const gateway of gateways) near.add(parseObjectKey(gateway).namespace);
    const speaking = [...namespaces].filter((each) => near.has(each));
    const problems =
      speaking.length > 0
        ? own.flatMap((finding) => (speaking.includes(finding.namespace) ? finding.problems : []))
        : agreed(own, namespaces.size);
    if (problems.length > 0) emit(id, { problems });
  });
}

/** Problems found on routers in this many namespaces. */
function agreed(findings: readonly Finding[], namespaces: number): Problem[] {
  const all = findings.flatMap(({ namespace, problems }) => problems.map((problem) => ({ namespace, problem })));
  return [...Map.groupBy(all, ({ problem: { field, reason } }) => `${field}|${reason}`).values()].flatMap((same) =>
    new Set(same.map(({ namespace }) => namespace)).size < namespaces ? [] : same.map(({ problem }) => problem),
  );
}

function idOf({ object }: Problem): string {
  return kindKey(object.kind, objectKey(object.source, object.namespace, object.name));
}
