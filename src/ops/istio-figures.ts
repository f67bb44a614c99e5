import { nameKey, kindKey, parseKindKey } from '../api/keys.ts';
import type { Labelled, MetricFactory } from './metric-factory.ts';

/** What counts of a problem. */
export interface ProblemFigure {
  readonly reason: string;
  readonly field: string;
  readonly object: { readonly kind: string; readonly namespace: string; readonly name: string };
}

/** Changes delivered by a source. */
export interface Deliveries {
  readonly add: number;
  readonly update: number;
  readonly delete: number;
}

/** What Istio calls Kubernetes' own kinds; undefined for those that it does not count. */
export const registryTypes: Readonly<Record<string, string | undefined>> = {
  ConfigMap: undefined,
  Endpoints: 'Endpoints',
  EndpointSlice: 'EndpointSlice',
  Namespace: 'Namespaces',
  Node: 'Nodes',
  Pod: 'Pods',
  Secret: undefined,
  Service: 'Services',
};

/** @param typeOf undefined for kinds that do not count. */
export function eventsOf(
  deliveries: Readonly<Record<string, Deliveries>>,
  typeOf: (kind: string) => string | undefined,
): Labelled<'type' | 'event'> {
  return Object.entries(deliveries).flatMap(([kind, counts]) => {
    const type = typeOf(kind);
    if (type === undefined) return [];
    return (['add', 'update', 'delete'] as const).map((event) => [{ type, event }, counts[event]] as const);
  });
}

/** By Istio's types of updates. Pods, Nodes and Namespaces are none of them. */
export function inboundUpdates(deliveries: Readonly<Record<string, Deliveries>>): Readonly<Record<string, number>> {
  const all = ({ add, update, delete: gone }: Deliveries): number => add + update + gone;
  const updates = { config: 0, eds: 0, svc: 0, svcdelete: 0 };
  for (const [kind, counts] of Object.entries(deliveries)) {
    if (kind === 'Service') {
      updates.svc += counts.add + counts.update;
      updates.svcdelete += counts.delete;
    } else if (kind === 'EndpointSlice' || kind === 'Endpoints') updates.eds += all(counts);
    else if (!(kind in registryTypes)) updates.config += all(counts);
  }
  return updates;
}

/** Problems that have a metric of their own in Istio. Unlike there, no label names the object: tenants choose names. */
export function countProblems(
  gauge: MetricFactory['gauge'],
  gauges: MetricFactory['gauges'],
  problems: () => readonly ProblemFigure[],
): void {
  const count = (kind: string, fits: (problem: ProblemFigure) => boolean) => () =>
    problems().filter((problem) => problem.object.kind === kind && fits(problem)).length;
  gauge(
    'pilot_vservice_dup_domain',
    'Hosts of VirtualServices that older ones have.',
    count('VirtualService', ({ reason, field }) => reason === 'Conflicted' && field.startsWith('spec.hosts')),
  );
  gauge(
    'pilot_destrule_subsets',
    'Subsets of DestinationRules that older ones have.',
    count(
      'DestinationRule',
      ({ reason, field }) => reason === 'Conflicted' && /^spec\.subsets\[\d+\]\.name$/.test(field),
    ),
  );
  gauges('pilot_total_rejected_configs', 'Objects with Accepted=False, by kind.', ['type'], () => {
    const rejected = problems().filter(({ reason }) => rejecting.has(reason));
    const keys = new Set(
      rejected.map(({ object: { kind, namespace, name } }) => kindKey(kind, nameKey(namespace, name))),
    );
    return [...Map.groupBy(keys, (key) => parseKindKey(key).kind)].map(
      ([type, objects]) => [{ type }, objects.length] as const,
    );
  });
}

const rejecting: ReadonlySet<string> = new Set(['Invalid', 'Conflicted', 'InternalError']);
