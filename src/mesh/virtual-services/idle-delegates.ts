import { objectKey, sourceOfKey } from '../../api/object.ts';
import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import type { VirtualServices } from './virtual-services.ts';

/** VirtualServices without hosts that no other VirtualService delegates to. */
export function declareIdleDelegates(graph: Graph, { parsed }: VirtualServices): Collection<HasProblems> {
  const delegating = graph.index('delegating routes', parsed, (key, { models }) => [
    ...new Set(
      models.flatMap(({ hosts, http }) =>
        hosts.length === 0
          ? []
          : http.flatMap(({ action }) =>
              action.kind === 'delegate' ? [objectKey(sourceOfKey(key), action.namespace, action.name)] : [],
            ),
      ),
    ),
  ]);
  return graph.derive('idle delegates', parsed, (key, { models }, read, emit: Emit<HasProblems>) => {
    const [model] = models;
    if (model === undefined || model.hosts.length > 0) return;
    if (read.group(delegating, key).length > 0) return;
    const message =
      'has no effect: it has no hosts, and no VirtualService with hosts delegates to it. Name it in http.delegate of one, or give it hosts.';
    emit(key, { problems: [{ object: model.ref, field: 'spec', reason: 'Ineffective', message }] });
  });
}
