import type { Emit, Graph, Index } from '../cache/graph.ts';
import { nearestFirst } from '../envoy/locality.ts';
import type { Rules } from './rules.ts';
import type { Services } from './services.ts';
import type { Settings } from './settings.ts';

/** Group `all`: labels by which endpoints are preferred; proxies that differ in them look from different places. */
export function declarePriorityLabels(
  graph: Graph,
  settings: Settings,
  services: Services,
  rules: Rules,
): Index<string> {
  const ruleLabels = graph.derive(
    'rule priority labels',
    rules.rules,
    (key, rule, _, emit: Emit<readonly string[]>) => {
      const policies = [rule, ...rule.subsets].flatMap(({ policy, portPolicies }) => [
        policy,
        ...Object.values(portPolicies),
      ]);
      const labels = policies.flatMap(({ loadBalancer }) => loadBalancer?.localityLb?.failoverPriority ?? []);
      if (labels.length > 0) emit(key, namesOf(labels));
    },
  );
  const serviceLabels = graph.derive(
    'service priority labels',
    services.byShard,
    (shard, members, _, emit: Emit<readonly string[]>) => {
      const labels = members.flatMap(({ value: { trafficDistribution: near } }) => (near ? nearestFirst[near] : []));
      if (labels.length > 0) emit(shard, namesOf(labels));
    },
  );
  const meshLabels = graph.derive(
    'mesh priority labels',
    settings.clusters,
    (key, { localityLb }, _, emit: Emit<readonly string[]>) => {
      const labels = localityLb?.failoverPriority ?? [];
      if (labels.length > 0) emit(key, namesOf(labels));
    },
  );
  const priorityLabels = graph.derive(
    'priority labels',
    graph.index('who prefers by label', [ruleLabels, serviceLabels, meshLabels], (_, labels) => labels),
    (label, _, __, emit: Emit<string>) => emit(label, label),
  );
  return graph.index('all priority labels', priorityLabels, () => ['all']);
}

/** A failover priority is a label, or one with the value that it should have. */
function namesOf(priorities: readonly string[]): readonly string[] {
  return [...new Set(priorities.map((priority) => priority.split('=', 1)[0]!))];
}
