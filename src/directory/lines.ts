import type { FieldPath } from '../api/schema-path.ts';
import { lineOf } from '../yaml/document.ts';
import { isMerge } from '../yaml/plain-json.ts';
import { type Node, parseTree } from '../yaml/tree.ts';

/** How many documents are kept parsed: questions come in runs about one document, or about two that hold the same. */
const KEPT = 4;

/**
 * Finds the line of a value when somebody asks. Objects are kept without positions: few are ever asked for, and a tree
 * with positions is many times as large as the text.
 */
export class Lines {
  readonly #recent = new Map<string, Node | undefined>();

  /** Line of the value at the path, or of the deepest one on the way to it that exists; from 1, within the text. */
  of(text: string, path: FieldPath): number {
    return lineOf(text, offsetAt(this.#parsed(text), path));
  }

  #parsed(text: string): Node | undefined {
    const tree = this.#recent.has(text) ? this.#recent.get(text) : treeOf(text);
    this.#recent.delete(text);
    this.#recent.set(text, tree);
    if (this.#recent.size > KEPT) this.#recent.delete(this.#recent.keys().next().value!);
    return tree;
  }
}

/** Undefined also for JSON that is not YAML. */
function treeOf(text: string): Node | undefined {
  try {
    return parseTree(text);
  } catch {
    return undefined;
  }
}

function offsetAt(tree: Node | undefined, path: FieldPath): number {
  let node = tree;
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
    const pairs = node.pairs.filter(({ key }) => !isMerge(key));
    // A key with dots, like that of a label, may have been taken for several steps.
    let taken = String(name);
    let pair = pairs.find(({ key }) => key.kind === 'scalar' && key.text === taken);
    for (let next = step + 1; pair === undefined && next < path.length; next++) {
      taken += `.${path[next]}`;
      pair = pairs.find(({ key }) => key.kind === 'scalar' && key.text === taken);
      if (pair !== undefined) step = next;
    }
    if (pair === undefined) break;
    offset = pair.key.at;
    node = pair.value;
  }
  return offset;
}
