import type { FieldPath } from '../api/schema-path.ts';
import { isMerge } from '../yaml/plain-json.ts';
import { type MappingNode, type Node, type Pair, parseTree } from '../yaml/tree.ts';

/**
 * How much text is kept parsed, in characters: 20 bytes for each. Lookups come in runs for one document, or for a few
 * whose objects belong together. If documents are longer than this, the last two are kept.
 */
const KEPT = 2_000_000;
const LEAST_KEPT = 2;

/**
 * Finds the line of a value on demand. Objects are kept without positions: few are ever needed, and a tree with
 * positions is many times the size of the text.
 */
export class Lines {
  readonly #parse: typeof parseTree;
  readonly #kept: number;
  readonly #recent = new Map<string, Places>();
  #length = 0;

  /** @param kept characters of text to keep parsed. */
  constructor({ parse = parseTree, kept = KEPT }: { readonly parse?: typeof parseTree; readonly kept?: number } = {}) {
    this.#parse = parse;
    this.#kept = kept;
  }

  /** Line of the value at the path, or of its deepest existing ancestor; counted from 1 within the text. */
  of(text: string, path: FieldPath): number {
    return this.#placesIn(text).lineOf(path);
  }

  #placesIn(text: string): Places {
    const known = this.#recent.get(text);
    const places = known ?? new Places(text, this.#treeOf(text) ?? this.#treeOf(withoutEscapes(text)));
    if (known === undefined) this.#length += text.length;
    this.#recent.delete(text);
    this.#recent.set(text, places);
    for (const oldest of this.#recent.keys()) {
      if (this.#length <= this.#kept || this.#recent.size <= LEAST_KEPT) break;
      this.#recent.delete(oldest);
      this.#length -= oldest.length;
    }
    return places;
  }

  #treeOf(text: string): Node | undefined {
    try {
      return this.#parse(text);
    } catch {
      return undefined;
    }
  }
}

/** JSON allows escapes and characters that YAML does not; replacing them does not move any value to another line. */
function withoutEscapes(json: string): string {
  return json.replace(/\\(?:u[\da-f]{4}|.)|[\x7f-\x9f\ud800-\udfff\ufffe\uffff]/gi, (found) =>
    '_'.repeat(found.length),
  );
}

/** Positions of the values in a text. The cost of a lookup depends on the length of its path, not on the text. */
class Places {
  readonly #tree: Node | undefined;
  /** Offset of each line. */
  readonly #starts: readonly number[];
  /** The pairs of maps that lookups have visited, by key. */
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
      // A key with dots, like that of a label, may have been parsed as several steps.
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
      // If two pairs have the same key, the first one is found.
      const named = node.pairs.filter(({ key }) => !isMerge(key)).reverse();
      pairs = new Map(named.flatMap((pair) => (pair.key.kind === 'scalar' ? [[pair.key.text, pair]] : [])));
      this.#pairs.set(node, pairs);
    }
    return pairs;
  }
}
