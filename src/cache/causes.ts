/**
 * Which writes of a commit reached an entry. A few are their positions, ascending. Many are a tree that shares branches
 * with those of other entries, so that a bulk load does not carry thousands of numbers through every entry; the
 * positions are collected when somebody asks.
 */
export type Causes = readonly number[] | JoinedCauses;

/** More positions than this become a tree. */
const FEW = 16;

class JoinedCauses {
  /** Whoever joined them may still add to them. */
  open = true;
  readonly from: Causes[];
  positions: readonly number[] | undefined;

  constructor(from: Causes[]) {
    this.from = from;
  }
}

/**
 * The union. The result belongs to the caller, who may join more to it: `a` must be its own, or {@link sealed}. Before it
 * is handed to others, it must be sealed.
 */
export function joinCauses(a: Causes, b: Causes): Causes {
  if (a === b || isEmpty(b)) return a;
  if (isEmpty(a)) return b;
  if (a instanceof JoinedCauses || b instanceof JoinedCauses) return joined(a, b);
  if (a.length === 1 && b.length === 1 && a[0] === b[0]) return a;
  const union = [...new Set([...a, ...b])].sort((x, y) => x - y);
  if (union.length === a.length) return a;
  if (union.length === b.length) return b;
  return union.length > FEW ? new JoinedCauses([a, b]) : union;
}

/** Not changed from now on. */
export function sealed(causes: Causes): Causes {
  if (causes instanceof JoinedCauses) causes.open = false;
  return causes;
}

/** Ascending. */
export function positionsOf(causes: Causes): readonly number[] {
  if (!(causes instanceof JoinedCauses)) return causes;
  if (causes.positions === undefined) {
    const positions = new Set<number>();
    collect(causes, positions, new Set());
    causes.positions = [...positions].sort((x, y) => x - y);
  }
  return causes.positions;
}

function joined(a: Causes, b: Causes): Causes {
  if (!(a instanceof JoinedCauses && a.open)) return new JoinedCauses([a, b]);
  // An entry is often marked several times in a row by outputs of the same run.
  if (a.from.at(-1) !== b) a.from.push(b);
  a.positions = undefined;
  return a;
}

/** As deep as the graph: each level of the tree is another collection. */
function collect(causes: Causes, positions: Set<number>, visited: Set<Causes>): void {
  if (visited.has(causes)) return;
  visited.add(causes);
  if (!(causes instanceof JoinedCauses)) for (const position of causes) positions.add(position);
  else if (causes.positions !== undefined) for (const position of causes.positions) positions.add(position);
  else for (const part of causes.from) collect(part, positions, visited);
}

function isEmpty(causes: Causes): boolean {
  return !(causes instanceof JoinedCauses) && causes.length === 0;
}
