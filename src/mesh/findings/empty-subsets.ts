import type { HasProblems, Problem } from '../../api/problem.ts';
import { boundProblems } from '../../api/problem-list.ts';
import { quote } from '../../api/quote.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { isWildcard } from '../../model/host.ts';
import { type Labels, printSelector, selected } from '../../model/labels.ts';
import type { MeshService } from '../../model/service.ts';
import { anyTraits } from '../../model/traits.ts';
import { serviceFor } from '../clients/lookups.ts';
import { type Workloads, selectedWorkloads } from '../objects/workloads.ts';
import type { DestinationDeps } from '../clients/destinations.ts';

/** Of more workloads that share a label, it is not known whether a subset has none. */
const mostCompared = 1_000;

/**
 * Subsets to which no workload of their host belongs. Where no workload of it is known, nothing is said: files may be
 * without Pods.
 */
export function declareEmptySubsets(
  graph: Graph,
  deps: DestinationDeps & { readonly workloads: Workloads },
): Collection<HasProblems> {
  const subsetsOf = graph.index('rules with subsets', deps.rules.single, (key, { host, subsets }) =>
    subsets.length === 0 || isWildcard(host) ? [] : [key],
  );
  return graph.derive('empty subsets', subsetsOf, (key, [{ value: rule }], read, emit: Emit<HasProblems>) => {
    const service = serviceFor(read, deps, { client: rule.namespace, traits: anyTraits }, rule.host);
    const known = service && labelsBehind(service, read, deps.workloads);
    if (service === undefined || known === undefined || known.length === 0) return;
    const problems = rule.subsets.flatMap(({ name, labels }, i): Problem[] => {
      const isKnown = Object.keys(labels).every((label) => !/^(topology\.|kubernetes\.io\/)/.test(label));
      if (!isKnown || selected(known, labels).length > 0) return [];
      const what = service.registry === 'Kubernetes' ? 'Pod' : 'endpoint';
      const message = `selects nobody: no ${what} of ${quote(rule.host)} has ${printSelector(labels)}. Requests for subset ${quote(name)} get 503 until there is one; correct the labels, or remove the subset.`;
      return rule.origins.map((object) => ({
        object,
        field: `spec.subsets[${i}].labels`,
        reason: 'Ineffective',
        message,
      }));
    });
    if (problems.length > 0) emit(key, { problems: boundProblems(problems) });
  });
}

/** Undefined: not all of them are known. */
function labelsBehind(
  service: MeshService,
  read: Reader,
  workloads: Workloads,
): readonly { readonly labels: Labels }[] | undefined {
  const { namespace, selector, endpoints, global } = service;
  if (global !== undefined) return undefined;
  const inline = endpoints.filter(({ isHost }) => isHost !== true);
  if (selector === undefined || Object.keys(selector).length === 0) return inline;
  const found = selectedWorkloads(read, workloads, namespace, selector);
  if (found.length > mostCompared) return undefined;
  return [...inline, ...selected(found, selector)];
}
