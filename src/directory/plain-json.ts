import { type Document, isAlias, isMap, isScalar, isSeq, type Node, type Pair, type YAMLMap } from 'yaml';
import type { FieldPath } from '../api/schema-path.ts';

export type Json = Record<string, unknown>;

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What makes a document unusable, and where in its text. */
export class DocumentError extends Error {
  override readonly name = 'DocumentError';
  readonly code = 'DOCUMENT';
  readonly offset: number;
  readonly path: FieldPath;

  constructor(message: string, offset: number, path: FieldPath = []) {
    super(message);
    this.offset = offset;
    this.path = path;
  }
}

/** Deeper than any object of Kubernetes, and shallow enough for code that walks JSON by recursion. */
export const MAX_DEPTH = 100;
/** Values and characters that aliases may add to a document: what a chain of aliases multiplies ends here. */
const MAX_ALIASED = 1 << 20;

/**
 * The document as plain JSON, or a {@link DocumentError}. Stricter than the parser's own conversion: keys are unique,
 * what JSON cannot hold is refused, strings are valid Unicode, and the result is bounded by the size of the text.
 */
export function toPlainJson(document: Document): unknown {
  return new Conversion().convert(document.contents, [], 0);
}

class Conversion {
  private readonly anchors = new Map<string, Node>();
  /** The alias being followed; the outermost one, where aliases contain aliases. */
  private alias: { readonly at: number; readonly path: FieldPath } | undefined;
  private aliased = 0;

  convert(node: unknown, path: FieldPath, depth: number): unknown {
    if (node === null || node === undefined) return null;
    const at = offsetOf(node);
    if (depth > MAX_DEPTH) {
      const { alias } = this;
      if (alias === undefined) throw new DocumentError(`is nested more than ${MAX_DEPTH} levels deep`, at, path);
      throw new DocumentError('is an alias that contains itself, or nests too deeply', alias.at, alias.path);
    }
    if (isAlias(node)) {
      const target = this.anchors.get(node.source);
      if (target === undefined) throw new DocumentError(`the anchor &${node.source} is not defined above`, at, path);
      const outer = this.alias;
      this.alias ??= { at, path };
      const value = this.convert(target, path, depth + 1);
      this.alias = outer;
      return value;
    }
    const anchor = (node as Node & { anchor?: string }).anchor;
    if (anchor !== undefined) this.anchors.set(anchor, node as Node);
    if (isScalar(node)) return this.scalar(node.value, at, path);
    this.spend(1);
    if (isSeq(node)) return node.items.map((item, index) => this.convert(item, [...path, index], depth + 1));
    if (isMap(node)) return this.map(node, path, depth);
    throw new DocumentError('is nothing that JSON can hold', at, path);
  }

  private scalar(value: unknown, at: number, path: FieldPath): unknown {
    this.spend(typeof value === 'string' ? value.length : 1);
    switch (typeof value) {
      case 'string':
        if (!value.isWellFormed())
          throw new DocumentError('has half of a UTF-16 surrogate pair; write valid Unicode', at, path);
        return value;
      case 'number':
        if (!Number.isFinite(value)) throw new DocumentError('is a number that JSON cannot hold', at, path);
        return value;
      case 'boolean':
        return value;
      default:
        if (value === null || value === undefined) return null;
        throw new DocumentError('is nothing that JSON can hold; put it in quotes', at, path);
    }
  }

  private map(node: YAMLMap, path: FieldPath, depth: number): Json {
    const result: Json = {};
    const merged: Json[] = [];
    const seen = new Set<string>();
    for (const pair of node.items) {
      if (isMerge(pair)) {
        const value = this.convert(pair.value, path, depth + 1);
        for (const source of Array.isArray(value) ? value : [value]) {
          if (!isObject(source)) throw new DocumentError('<< needs a map, or a list of maps', offsetOf(pair.key), path);
          merged.push(source);
        }
        continue;
      }
      const key = this.key(pair.key, path);
      if (seen.has(key)) throw new DocumentError('is there twice', offsetOf(pair.key), [...path, key]);
      seen.add(key);
      define(result, key, this.convert(pair.value, [...path, key], depth + 1));
    }
    // What the map says itself wins over what it merges, and the first merged map over the next.
    for (const source of merged)
      for (const [key, value] of Object.entries(source)) if (!Object.hasOwn(result, key)) define(result, key, value);
    return result;
  }

  private key(node: unknown, path: FieldPath): string {
    const at = offsetOf(node);
    if (isAlias(node)) return this.key(this.anchors.get(node.source), path);
    if (!isScalar(node) || node.value === null || typeof node.value === 'object')
      throw new DocumentError('has a key that is not a string', at, path);
    if (node.anchor !== undefined) this.anchors.set(node.anchor, node);
    return String(this.scalar(node.value, at, path));
  }

  private spend(amount: number): void {
    if (this.alias === undefined) return;
    this.aliased += amount;
    if (this.aliased > MAX_ALIASED)
      throw new DocumentError('is repeated by too many aliases', this.alias.at, this.alias.path);
  }
}

/** `__proto__` becomes a member like any other. */
function define(object: Json, key: string, value: unknown): void {
  if (key === '__proto__')
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  else object[key] = value;
}

export function isMerge(pair: Pair): boolean {
  return isScalar(pair.key) && pair.key.value === '<<' && pair.key.type === 'PLAIN';
}

export function offsetOf(node: unknown): number {
  return (node as Partial<Node> | null | undefined)?.range?.[0] ?? 0;
}

/** Members that are `null` are absent to the API server. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([key, member]) => [key, withoutNulls(member)]),
  );
}
