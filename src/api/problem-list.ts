import { printRef } from './object.ts';
import type { Problem } from './problem.ts';

/** Of one object, for one reason: an owner reads the first ones. */
const MOST = 100;

/** Problems, however many there are: of those over a limit for each object, one stands for all. */
export class ProblemList {
  readonly #kept: Problem[] = [];
  readonly #counts = new Map<string, { kept: number; more: number; first?: Problem }>();

  add(problem: Problem): void {
    // By reason: the reasons decide what becomes of the object.
    const key = `${problem.reason} ${printRef(problem.object)}`;
    const count = this.#counts.get(key) ?? { kept: 0, more: 0 };
    this.#counts.set(key, count);
    if (count.kept < MOST) {
      count.kept++;
      this.#kept.push(problem);
    } else {
      count.first ??= problem;
      count.more += numberOf(problem);
    }
  }

  /** In the order in which they came; those that stand for others last. */
  get all(): readonly Problem[] {
    const others = [...this.#counts.values()].flatMap(({ first, more }) =>
      first === undefined
        ? []
        : [{ ...first, message: `is one of ${more} more findings like these.`, standsFor: more }],
    );
    return others.length === 0 ? this.#kept : [...this.#kept, ...others];
  }
}

export function boundProblems(problems: Iterable<Problem>): readonly Problem[] {
  const list = new ProblemList();
  for (const problem of problems) list.add(problem);
  return list.all;
}

/** How many findings it is. */
export function numberOf({ standsFor = 1 }: Pick<Problem, 'standsFor'>): number {
  return standsFor;
}
