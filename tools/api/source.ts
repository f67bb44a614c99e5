import { readFileSync, readdirSync } from 'node:fs';
import { parse } from 'yaml';
import type { SchemaNode } from '../../src/api/schema-node.ts';

/**
 * The sources in `schemas/` are OpenAPI schemas as in a CRD, with two additions: `$ref` to a definition (a description
 * beside it replaces the definition's, and `properties` beside it add constraints), and `x-exclusive`: groups of fields
 * of which at most one may be set (an empty list counts as unset).
 */
export type Schema = SchemaNode;

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly jsonPath: string;
  readonly description: string;
}

export interface KindSource {
  readonly group: string;
  /** Storage version first. */
  readonly versions: readonly string[];
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly description: string;
  /** Printer columns, placed before those that all kinds have. */
  readonly columns: readonly Column[];
  /** An object without a spec is valid. */
  readonly specIsOptional?: boolean;
  /** Name of the status definition; that of the spec is `<kind>Spec`. */
  readonly status: string;
  readonly definitions: Readonly<Record<string, Schema>>;
}

interface RootSource {
  readonly roots: readonly string[];
  readonly definitions: Readonly<Record<string, Schema>>;
}

export interface Source {
  readonly kinds: readonly KindSource[];
  /** Definitions of what is not an object of its own. */
  readonly roots: readonly string[];
  /** Definitions that several kinds use. */
  readonly shared: Readonly<Record<string, Schema>>;
  /** All definitions. Names are unique across kinds. */
  readonly definitions: Readonly<Record<string, Schema>>;
}

export function readSource(directory: string): Source {
  const kinds: KindSource[] = [];
  const definitions: Record<string, Schema> = {};
  let [shared, roots]: [Readonly<Record<string, Schema>>, readonly string[]] = [{}, []];
  for (const file of readdirSync(directory).sort()) {
    const content = parse(readFileSync(`${directory}/${file}`, 'utf8')) as KindSource | RootSource;
    if ('roots' in content) roots = content.roots;
    else if (content.kind === undefined) shared = content.definitions;
    else kinds.push(content);
    for (const [name, schema] of Object.entries(content.definitions)) {
      if (definitions[name] !== undefined) throw new Error(`${file}: definition ${name} exists already`);
      definitions[name] = schema;
    }
  }
  return { kinds, roots, shared, definitions };
}

/** Name of the definition that `$ref` points to. */
export function referenced(ref: string): string {
  return ref.slice('#/definitions/'.length);
}

/** `virtual-service` for `VirtualService`. */
export function fileName(kind: string): string {
  return kind.replace(/(?<=[a-z])[A-Z]/g, '-$&').toLowerCase();
}
