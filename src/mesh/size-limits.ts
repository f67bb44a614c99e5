import type { Service } from '../api/core.ts';
import { parseObjectKey, refOf } from '../api/object.ts';
import type { Collection, Emit, Graph } from '../cache/graph.ts';
import { anyTraits } from '../model/traits.ts';
import { mostPorts } from '../reconcilers/service.ts';
import { type ServiceLookup, serviceFor } from './clients.ts';
import type { Inputs } from './inputs.ts';
import type { HasProblems } from './problems.ts';
import { type Rules, fitRule, mostSubsetClusters } from './rules.ts';

export interface SizeLimitParts extends ServiceLookup {
  readonly inputs: Inputs;
  readonly rules: Rules;
}

/** Objects that count in part, since they would make too much: as clients in their own namespace see it. */
export function declareSizeLimits(graph: Graph, parts: SizeLimitParts): readonly Collection<HasProblems>[] {
  const large = graph.index('Services with too many ports', parts.inputs.objects.Service, (key, object) =>
    portsOf(object as Service) > mostPorts ? [key] : [],
  );
  const ports = graph.derive('ports of Services', large, (key, [member], _, emit: Emit<HasProblems>) => {
    const service = member!.value as Service;
    const message = `has ${portsOf(service)} ports; at most ${mostPorts} are possible, and only the first ones count. Split the Service.`;
    const object = refOf(parseObjectKey(key).source, service);
    emit(key, { problems: [{ object, field: 'spec.ports', reason: 'Ineffective', message }] });
  });
  const subsets = graph.derive('subsets of rules', parts.rules.rules, (key, rule, read, emit: Emit<HasProblems>) => {
    const view = { client: rule.namespace, traits: anyTraits };
    // Those of a wildcard count for every service.
    const service = serviceFor(read, parts, view, rule.host);
    if (service === undefined) return;
    const count = fitRule(rule, service).subsets.length;
    if (count === rule.subsets.length) return;
    const message = `${rule.host} has ${service.ports.length} ports, and a cluster for each port and subset, of which at most ${mostSubsetClusters} are possible: only the first ${count} of ${rule.subsets.length} subsets count. Remove those that no route names.`;
    const problems = rule.origins.map((object) => ({
      object,
      field: 'spec.subsets',
      reason: 'Ineffective' as const,
      message,
    }));
    emit(key, { problems });
  });
  return [ports, subsets];
}

const portsOf = ({ spec }: Service): number => spec?.ports?.length ?? 0;
