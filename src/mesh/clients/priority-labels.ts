import type { Emit, Graph, Index } from '../../cache/graph.ts';
import { clusterLabel, nearestFirst, nodeLabel } from '../../model/locality.ts';
import { failoverLabels, labelsOf } from '../../model/policy-resolution.ts';
import type { Rules } from '../objects/rules.ts';
import type { Services } from '../objects/services.ts';
import type { Settings } from '../settings.ts';
import { wholeOf } from '../whole.ts';

/** Group `all`: labels by which endpoints are preferred or hidden; proxies that differ in them are in different places. */
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
      const labels = failoverLabels(rule);
      if (labels.length > 0) emit(key, labels);
    },
  );
  const serviceLabels = graph.derive(
    'service priority labels',
    services.byShard,
    (shard, members, _, emit: Emit<readonly string[]>) => {
      const labels = members.flatMap(({ value: { trafficDistribution: near, nodeLocal } }) => [
        ...(near ? nearestFirst[near] : []),
        ...(nodeLocal ? [nodeLabel, clusterLabel] : []),
      ]);
      if (labels.length > 0) emit(shard, [...new Set(labels)]);
    },
  );
  const meshLabels = graph.derive(
    'mesh priority labels',
    settings.clusters,
    (key, { localityLb }, _, emit: Emit<readonly string[]>) => {
      const labels = labelsOf(localityLb?.failoverPriority ?? []);
      if (labels.length > 0) emit(key, labels);
    },
  );
  const visibilityLabels = graph.derive(
    'visibility labels',
    settings.visibility,
    (key, { clusterLocalHosts }, _, emit: Emit<readonly string[]>) => {
      if (clusterLocalHosts.some(({ clusterLocal }) => clusterLocal)) emit(key, [clusterLabel]);
    },
  );
  const priorityLabels = graph.derive(
    'priority labels',
    graph.index(
      'who prefers by label',
      [ruleLabels, serviceLabels, meshLabels, visibilityLabels],
      (_, labels) => labels,
    ),
    (label, _, __, emit: Emit<string>) => emit(label, label),
  );
  return wholeOf(graph, 'all priority labels', priorityLabels);
}
