import type { Json } from '../api/json.ts';
import type { FieldPath } from '../api/schema-path.ts';
import { DocumentError } from './document-error.ts';
import { keyOf, valueOf } from './plain-scalar.ts';
import { type AliasNode, type MappingNode, MAX_DEPTH, type Node, type ScalarNode } from './tree.ts';

/** Values and characters that aliases may add to a document. This limits what a chain of aliases can multiply. */
const MAX_ALIASED = 1 << 20;

/**
 * The tree as plain JSON. Throws a {@link DocumentError}. Stricter than kubectl: keys are unique, strings are valid
 * Unicode, and the result is bounded by the size of the text.
 */
export function toPlainJson(root: Node | undefined): unknown {
  return root === undefined ? null : new Conversion().convert(root, [], 0);
}

class Conversion {
  /** The alias being followed; the outermost one if aliases contain aliases. */
  #alias: { readonly at: number; readonly path: FieldPath } | undefined;
  #aliased = 0;

  convert(node: Node, path: FieldPath, depth: number): unknown {
    if (depth > MAX_DEPTH) {
      const { at } = this.#alias ?? node;
      throw new DocumentError('is an alias that contains itself, or nests too deeply', at, this.#alias?.path ?? path);
    }
    switch (node.kind) {
      case 'alias':
        return this.#follow(node, path, (target) => this.convert(target, path, depth + 1));
      case 'scalar':
        return this.#scalar(node, path);
      case 'sequence':
        this.#spend(1);
        return node.items.map((item, index) => this.convert(item, [...path, index], depth + 1));
      case 'mapping':
        this.#spend(1);
        return this.#map(node, path, depth);
    }
  }

  #follow<T>({ at, target }: AliasNode, path: FieldPath, read: (target: Node) => T): T {
    const outer = this.#alias;
    this.#alias ??= { at, path };
    const value = read(target);
    this.#alias = outer;
    return value;
  }

  #scalar(node: ScalarNode, path: FieldPath): unknown {
    const value = within(path, () => valueOf(node));
    this.#spend(typeof value === 'string' ? value.length : 1);
    if (typeof value === 'string' && !value.isWellFormed())
      throw new DocumentError('has an unpaired UTF-16 surrogate; use valid Unicode', node.at, path);
    if (typeof value === 'number' && !Number.isFinite(value))
      throw new DocumentError('is a number that JSON cannot hold', node.at, path);
    return value;
  }

  #map(node: MappingNode, path: FieldPath, depth: number): Json {
    const result: Json = {};
    const seen = new Set<string>();
    for (const { key: keyNode, value: valueNode } of node.pairs) {
      if (isMerge(keyNode)) {
        // As in kubectl, merged members replace those above.
        for (const source of this.#merged(valueNode, path, depth))
          for (const [key, value] of Object.entries(source)) define(result, key, value);
        continue;
      }
      const key = this.#key(keyNode, path);
      if (seen.has(key)) throw new DocumentError('appears twice', keyNode.at, [...path, key]);
      seen.add(key);
      define(result, key, this.convert(valueNode, [...path, key], depth + 1));
    }
    return result;
  }

  /** The maps that `<<` names, in reverse, because the first one wins. */
  #merged(node: Node, path: FieldPath, depth: number): Json[] {
    const sources = node.kind === 'sequence' ? [...node.items].reverse() : [node];
    return sources.map((source) => {
      const { kind } = source.kind === 'alias' ? source.target : source;
      if (kind !== 'mapping') throw new DocumentError('<< needs a map, or a list of maps', source.at, path);
      return this.convert(source, path, depth + 1) as Json;
    });
  }

  #key(node: Node, path: FieldPath): string {
    if (node.kind === 'alias') return this.#follow(node, path, (target) => this.#key(target, path));
    const key = node.kind === 'scalar' ? within(path, () => keyOf(node)) : undefined;
    if (key === undefined) throw new DocumentError('has a key that is not a string', node.at, path, 'key');
    this.#spend(key.length);
    if (!key.isWellFormed())
      throw new DocumentError('has an unpaired UTF-16 surrogate; use valid Unicode', node.at, path);
    return key;
  }

  #spend(amount: number): void {
    if (this.#alias === undefined) return;
    this.#aliased += amount;
    if (this.#aliased > MAX_ALIASED)
      throw new DocumentError('is repeated by too many aliases', this.#alias.at, this.#alias.path);
  }
}

/** Adds the path to errors about a scalar, which know only their place in the text. */
function within<T>(path: FieldPath, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof DocumentError) throw new DocumentError(error.message, error.offset, path, error.kind);
    throw error;
  }
}

/** Makes `__proto__` an ordinary member. */
function define(object: Json, key: string, value: unknown): void {
  if (key === '__proto__')
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  else object[key] = value;
}

/** `<<` without quotes; with the non-specific tag `!`, also in quotes. */
export function isMerge(key: Node): boolean {
  if (key.kind !== 'scalar' || key.text !== '<<') return false;
  return key.tag === '' ? key.isPlain : key.tag === '!' || key.tag === MERGE_TAG;
}

const MERGE_TAG = 'tag:yaml.org,2002:merge';
