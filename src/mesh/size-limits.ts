import type { Service } from '../api/core.ts';
import { parseObjectKey, refOf } from '../api/object.ts';
import type { Collection, Emit, Graph } from '../cache/graph.ts';
import { mostPorts } from '../reconcilers/service.ts';
import type { Inputs } from './inputs.ts';
import type { HasProblems } from './problems.ts';

/** Objects that count in part, since they would make too much. */
export function declareSizeLimits(graph: Graph, inputs: Inputs): readonly Collection<HasProblems>[] {
  const large = graph.index('Services with too many ports', inputs.objects.Service, (key, object) =>
    portsOf(object as Service) > mostPorts ? [key] : [],
  );
  const ports = graph.derive('ports of Services', large, (key, [member], _, emit: Emit<HasProblems>) => {
    const service = member!.value as Service;
    const message = `has ${portsOf(service)} ports; at most ${mostPorts} are possible, and only the first ones count. Split the Service.`;
    const object = refOf(parseObjectKey(key).source, service);
    emit(key, { problems: [{ object, field: 'spec.ports', reason: 'Ineffective', message }] });
  });
  return [ports];
}

const portsOf = ({ spec }: Service): number => spec?.ports?.length ?? 0;
