import { isObject, type Json } from './json.ts';
import type { SchemaNode } from './schema-node.ts';
import type { FieldPath } from './schema-path.ts';

/** What the API server would keep of a value before checking it. */
export interface Pruned {
  /** Without unknown fields, and without null members, which count as absent. */
  readonly value: unknown;
  /** The first unknown fields, with the names that are known there. */
  readonly unknown: readonly { readonly path: FieldPath; readonly known: readonly string[] }[];
  /** How many values it contains. */
  readonly size: number;
}

/** Never looks deeper than the schema. `limit` bounds the list of unknown fields. */
export function prune(
  value: unknown,
  schema: SchemaNode,
  definitions: Readonly<Record<string, SchemaNode>>,
  path: FieldPath,
  limit: number,
): Pruned {
  const pruning = new Pruning(definitions, limit);
  return { value: pruning.prune(value, schema, path), unknown: pruning.unknown, size: pruning.size };
}

class Pruning {
  readonly unknown: { path: FieldPath; known: readonly string[] }[] = [];
  size = 0;
  private readonly definitions: Readonly<Record<string, SchemaNode>>;
  private readonly limit: number;

  constructor(definitions: Readonly<Record<string, SchemaNode>>, limit: number) {
    this.definitions = definitions;
    this.limit = limit;
  }

  prune(value: unknown, schema: SchemaNode, path: FieldPath): unknown {
    this.size++;
    const { properties, items, additionalProperties } = resolve(schema, this.definitions);
    // A value of the wrong type is left as it is: its type is the error.
    if (Array.isArray(value))
      return items === undefined ? value : value.map((item, index) => this.prune(item, items, [...path, index]));
    if (!isObject(value)) return value;
    if (properties !== undefined) return this.pruneFields(value, properties, path);
    if (additionalProperties !== undefined) return this.pruneMap(value, additionalProperties, path);
    return value;
  }

  private pruneFields(value: Json, properties: Readonly<Record<string, SchemaNode>>, path: FieldPath): unknown {
    const kept: Record<string, unknown> = {};
    for (const key of Object.keys(value)) {
      const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
      if (property === undefined) {
        if (this.unknown.length < this.limit)
          this.unknown.push({ path: [...path, key], known: Object.keys(properties) });
      } else if (value[key] !== null) kept[key] = this.prune(value[key], property, [...path, key]);
    }
    return kept;
  }

  private pruneMap(value: Json, schema: SchemaNode, path: FieldPath): unknown {
    // Without a prototype, `__proto__` is an ordinary key.
    const kept = Object.create(null) as Record<string, unknown>;
    for (const key of Object.keys(value))
      if (value[key] !== null) kept[key] = this.prune(value[key], schema, [...path, key]);
    return kept;
  }
}

function resolve(schema: SchemaNode, definitions: Readonly<Record<string, SchemaNode>>): SchemaNode {
  if (schema.$ref === undefined) return schema;
  const target = definitions[schema.$ref.slice('#/definitions/'.length)];
  if (target === undefined) throw new Error(`no definition ${schema.$ref}`);
  return target;
}
