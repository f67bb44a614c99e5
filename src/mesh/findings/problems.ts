import { placeKey } from '../../api/place.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import { boundProblems } from '../../api/problem-list.ts';
import type { Collection, Emit, Graph, Index } from '../../cache/graph.ts';
import { type ObjectRef, objectKey } from '../../api/object.ts';
import { compareText } from '../../model/age.ts';

/** A problem, without the object that it is about. */
export type Remark = Pick<Problem, 'field' | 'reason' | 'message'>;

export interface Problems {
  /** By {@link problemsKey}; absent for objects without problems. */
  readonly byObject: Collection<readonly Problem[]>;
}

/** All findings about each object, from every collection: distinct, ordered by field, and bounded in number. */
export function declareProblems(graph: Graph, sources: readonly Collection<HasProblems>[]): Problems {
  // Keys of different collections may be equal, so the collection is part of the key.
  const found = sources.map((source, i) =>
    graph.derive(
      `problems.${source.name}`,
      graph.index(`${source.name} with problems`, source, (key, { problems }) => (problems.length > 0 ? [key] : [])),
      (key, [first], _, emit: Emit<readonly Problem[]>) => {
        // One finding may be about thousands of objects.
        for (const [object, problems] of Map.groupBy(first.value.problems, problemKey))
          emit(`${i}|${key}|${object}`, boundProblems(problems));
      },
    ),
  );
  const byObject: Index<readonly Problem[]> = graph.index('problems by object', found, (_, [first]) =>
    first === undefined ? [] : [problemKey(first)],
  );
  return {
    byObject: graph.derive('problems', byObject, (key, members, _, emit: Emit<readonly Problem[]>) => {
      const own = members.flatMap((member) => member.value);
      const distinct = new Map(
        own.map((problem) => [`${problem.field}|${problem.reason}|${problem.message}|${placeOf(problem)}`, problem]),
      );
      emit(key, boundProblems([...distinct.values()].sort(compareProblems)));
    }),
  };
}

function compareProblems(a: Problem, b: Problem): number {
  return (
    compareFieldPaths(a.field, b.field) ||
    compareText(a.reason, b.reason) ||
    compareText(a.message, b.message) ||
    compareText(placeOf(a), placeOf(b))
  );
}

const placeOf = ({ place }: Problem): string => (place === undefined ? '' : placeKey(place));

/** In the order of the object: indexes compare as numbers. */
function compareFieldPaths(a: string, b: string): number {
  const [left, right] = [a, b].map((path) => path.split(/[.[\]]/)) as [string[], string[]];
  for (const [i, part] of left.entries()) {
    const other = right[i];
    if (other === undefined) return 1;
    if (part === other) continue;
    const isIndex = /^\d+$/.test(part) && /^\d+$/.test(other);
    return isIndex ? Number(part) - Number(other) : compareText(part, other);
  }
  return left.length - right.length;
}

/** @param key of the object in the collection for its kind. */
export function problemsKey({ group, kind }: Pick<ObjectRef, 'group' | 'kind'>, key: string): string {
  return `${group}/${kind}/${key}`;
}

function problemKey({ object }: Problem): string {
  return problemsKey(object, objectKey(object.source, object.namespace, object.name));
}
