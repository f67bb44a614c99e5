import { kinds, type KindName } from '../api/kinds.ts';
import { refOf } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { Draft, Failure, Input, Write } from '../cache/graph.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { Mesh } from '../mesh.ts';

/**
 * Tells the owners of objects about a bug of ours: a transform that threw keeps its last output, and every object whose
 * change led to it gets an `InternalError` until the transform runs again without throwing. `failed` is called once for
 * every failure, and again if it fails in a different way.
 */
export function reportFailures(mesh: Mesh, write: (write: Write) => void, failed: (failure: Failure) => void): void {
  const { graph, inputs } = mesh;
  let reported = new Map<string, Failure>();
  const told = new Set<string>();
  graph.observeFailures((draft) => {
    for (const key of reported.keys())
      if (!graph.failures.has(key) && told.delete(key)) write(inputs.failures.write(key, undefined));
    for (const [key, failure] of graph.failures) {
      const before = reported.get(key);
      if (before === failure) continue;
      if (before === undefined || textOf(before) !== textOf(failure)) failed(failure);
      const problems = blamed(mesh, draft, failure);
      // A write leads to a commit: a failure in every commit that blames no object must not cause the next one.
      if (problems.length === 0 && !told.has(key)) continue;
      told.add(key);
      write(inputs.failures.write(key, { problems }));
    }
    reported = new Map(graph.failures);
  });
}

function textOf({ error }: Failure): string {
  return error instanceof Error ? error.message : String(error);
}

/** How many of the writes that reached a failure it is reported for: a failure while everything is read is about few. */
const mostBlamed = 16;

function blamed(mesh: Mesh, draft: Draft, failure: Failure): Problem[] {
  const text = textOf(failure);
  const message = `Fairlead failed to process this (${failure.collection}: ${text}). The previous configuration stays in force. This is a bug: please report it with the object.`;
  const causes = draft.causesOf(failure.causes).slice(0, mostBlamed);
  return causes.flatMap(({ input, value }) => {
    const kind = kindOf(mesh, input);
    if (kind === undefined || value === undefined) return [];
    const source = mesh.inputs.options.get('')?.clusterId ?? '';
    // The inputs of objects contain nothing else.
    return [{ object: refOf(source, value as KubernetesObject), field: '', reason: 'InternalError' as const, message }];
  });
}

function kindOf(mesh: Mesh, input: Input<unknown>): KindName | undefined {
  return kinds.find(({ name }) => (mesh.inputs.objects[name] as Input<unknown>) === input)?.name;
}
