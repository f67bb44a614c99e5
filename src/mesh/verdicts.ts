import type { Graph } from '../cache/graph.ts';
import type { Verdict, VerdictsOfKind } from './findings/conditions.ts';
import { problemsKey } from './findings/problems.ts';

/** What the statuses of all objects should say, by `originKey`. */
export interface Verdicts {
  /** Undefined: there is no such object. */
  get(key: string): Verdict | undefined;
  /** Calls back with every verdict that a commit changed; undefined: the object is gone. */
  follow(changed: (key: string, verdict: Verdict | undefined) => void): void;
}

export function verdictsOf(graph: Graph, ofKinds: readonly VerdictsOfKind[]): Verdicts {
  return {
    get(key) {
      const found = ofKinds.find(({ kind }) => key.startsWith(problemsKey(kind, '')));
      return found?.verdicts.get(key.slice(problemsKey(found.kind, '').length));
    },
    follow(changed) {
      for (const { kind, verdicts } of ofKinds)
        graph.follow(verdicts, (changes) => {
          for (const { key, after } of changes) changed(problemsKey(kind, key), after);
        });
    },
  };
}
