import type { HasProblems, Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { isWildcard } from '../../model/host.ts';
import type { SidecarModel } from '../../model/sidecar.ts';
import { anyTraits } from '../../model/traits.ts';
import { missingDestination } from '../../settle/missing-destination.ts';
import { type DestinationDeps, targetOf } from '../clients/destinations.ts';
import type { Sidecars } from '../objects/sidecars.ts';

export interface ReferenceDeps extends DestinationDeps {
  readonly sidecars: Sidecars;
}

/** Names in rules and Sidecars that do not resolve for clients in the object's own namespace, even if no proxy is there. */
export function declareReferences(graph: Graph, deps: ReferenceDeps): readonly Collection<HasProblems>[] {
  const rules = graph.derive('references of rules', deps.rules.single, (key, rule, read, emit: Emit<HasProblems>) => {
    if (isWildcard(rule.host) || read.group(deps.services.byHost, rule.host).length > 0) return;
    const message = `No Service or ServiceEntry has the host ${JSON.stringify(rule.host)}; create it, or correct the name. Until then the rule has no effect.`;
    emit(key, {
      problems: rule.origins.map((object) => ({ object, field: 'spec.host', reason: 'RefNotFound' as const, message })),
    });
  });
  const sidecars = graph.derive(
    'references of sidecars',
    deps.sidecars.models,
    (key, model, read, emit: Emit<HasProblems>) => {
      const problems = missingEgressProxy(model, read, deps);
      if (problems.length > 0) emit(key, { problems });
    },
  );
  return [rules, sidecars];
}

function missingEgressProxy(model: SidecarModel, read: Reader, deps: ReferenceDeps): Problem[] {
  const proxy = model.outboundTrafficPolicy?.egressProxy;
  if (proxy === undefined) return [];
  const egress = { sidecar: model.key, listener: 0 };
  const view = { client: model.namespace, traits: anyTraits, matched: [], egress };
  return missingDestination(model.ref, proxy, targetOf(proxy, proxy.port ?? 0, view, read, deps));
}
