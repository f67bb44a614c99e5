import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, visit } from 'yaml';
import { parseYaml } from './document.ts';
import type { FieldPath } from '../api/schema-path.ts';
import { isMerge, offsetOf } from './plain-json.ts';

/** How many documents are kept parsed: questions come in runs about one document, or about two that hold the same. */
const KEPT = 4;

/**
 * Finds the line of a value when somebody asks. Objects are kept without positions: few are ever asked for, and a tree
 * with positions is some fifty times as large as the text.
 */
export class Lines {
  readonly #recent = new Map<string, { readonly document: Document; readonly lines: LineCounter }>();

  /** Line of the value at the path, or of the deepest one on the way to it that exists; from 1, within the text. */
  of(text: string, path: FieldPath): number {
    const { document, lines } = this.#parsed(text);
    return Math.max(lines.linePos(offsetAt(document, path)).line, 1);
  }

  #parsed(text: string): { readonly document: Document; readonly lines: LineCounter } {
    let parsed = this.#recent.get(text);
    if (parsed === undefined) {
      const lines = new LineCounter();
      parsed = { document: parseYaml(text, lines), lines };
    }
    this.#recent.delete(text);
    this.#recent.set(text, parsed);
    if (this.#recent.size > KEPT) this.#recent.delete(this.#recent.keys().next().value!);
    return parsed;
  }
}

function offsetAt(document: Document, path: FieldPath): number {
  let node: unknown = document.contents;
  let offset = offsetOf(node);
  for (let step = 0; step < path.length; step++) {
    if (isAlias(node)) node = anchored(document, node.source);
    const name = path[step]!;
    if (isSeq(node) && typeof name === 'number') {
      node = node.items[name];
      if (node === undefined) break;
      offset = offsetOf(node);
      continue;
    }
    if (!isMap(node)) break;
    const pairs = node.items.filter((pair) => !isMerge(pair));
    // A key with dots, like that of a label, may have been taken for several steps.
    let taken = String(name);
    let pair = pairs.find(({ key }) => isScalar(key) && String(key.value) === taken);
    for (let next = step + 1; pair === undefined && next < path.length; next++) {
      taken += `.${path[next]}`;
      pair = pairs.find(({ key }) => isScalar(key) && String(key.value) === taken);
      if (pair !== undefined) step = next;
    }
    if (pair === undefined) break;
    offset = offsetOf(pair.key);
    node = pair.value;
  }
  return offset;
}

function anchored(document: Document, name: string): unknown {
  let found: unknown;
  visit(document, {
    Node: (_, node) => {
      if (!isAlias(node) && node.anchor === name) {
        found = node;
        return visit.BREAK;
      }
      return undefined;
    },
  });
  return found;
}
