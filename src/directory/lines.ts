import type { FieldPath } from '../api/schema-path.ts';
import { isMerge } from '../yaml/plain-json.ts';
import { type MappingNode, type Node, type Pair, parseTree } from '../yaml/tree.ts';

/** How many documents are kept parsed: questions come in runs about one document, or about two that hold the same. */
const KEPT = 4;

/**
 * Finds the line of a value when somebody asks. Objects are kept without positions: few are ever asked for, and a tree
 * with positions is many times as large as the text.
 */
export class Lines {
  readonly #parse: typeof parseTree;
  readonly #recent = new Map<string, Places>();

  constructor(parse: typeof parseTree = parseTree) {
    this.#parse = parse;
  }

  /** Line of the value at the path, or of the deepest one on the way to it that exists; from 1, within the text. */
  of(text: string, path: FieldPath): number {
    return this.#placesIn(text).lineOf(path);
  }

  #placesIn(text: string): Places {
    const places = this.#recent.get(text) ?? new Places(text, this.#treeOf(text));
    this.#recent.delete(text);
    this.#recent.set(text, places);
    if (this.#recent.size > KEPT) this.#recent.delete(this.#recent.keys().next().value!);
    return places;
  }

  /** Undefined also for JSON that is not YAML. */
  #treeOf(text: string): Node | undefined {
    try {
      return this.#parse(text);
    } catch {
      return undefined;
    }
  }
}

/** Where values stand in a text. A question costs as much as its path is long, however large the text is. */
class Places {
  readonly #tree: Node | undefined;
  /** Offset of each line. */
  readonly #starts: readonly number[];
  /** The pairs of the maps that questions went through, by key. */
  readonly #pairs = new Map<MappingNode, ReadonlyMap<string, Pair>>();

  constructor(text: string, tree: Node | undefined) {
    this.#tree = tree;
    const starts = [0];
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
    this.#starts = starts;
  }

  lineOf(path: FieldPath): number {
    const offset = this.#offsetOf(path);
    let [low, high] = [0, this.#starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#starts[middle]! <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  }

  #offsetOf(path: FieldPath): number {
    let node = this.#tree;
    let offset = node?.at ?? 0;
    for (let step = 0; step < path.length; step++) {
      if (node?.kind === 'alias') node = node.target;
      const name = path[step]!;
      if (node?.kind === 'sequence' && typeof name === 'number') {
        node = node.items[name];
        if (node === undefined) break;
        offset = node.at;
        continue;
      }
      if (node?.kind !== 'mapping') break;
      const pairs = this.#pairsOf(node);
      // A key with dots, like that of a label, may have been taken for several steps.
      let taken = String(name);
      let pair = pairs.get(taken);
      for (let next = step + 1; pair === undefined && next < path.length; next++) {
        taken += `.${path[next]}`;
        pair = pairs.get(taken);
        if (pair !== undefined) step = next;
      }
      if (pair === undefined) break;
      offset = pair.key.at;
      node = pair.value;
    }
    return offset;
  }

  #pairsOf(node: MappingNode): ReadonlyMap<string, Pair> {
    let pairs = this.#pairs.get(node);
    if (pairs === undefined) {
      // The first of two with one key is found.
      const named = node.pairs.filter(({ key }) => !isMerge(key)).reverse();
      pairs = new Map(named.flatMap((pair) => (pair.key.kind === 'scalar' ? [[pair.key.text, pair]] : [])));
      this.#pairs.set(node, pairs);
    }
    return pairs;
  }
}
