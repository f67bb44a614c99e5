import { parseAllDocuments } from 'yaml';

interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly 'x-kubernetes-int-or-string'?: boolean;
}

interface Crd {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly name: string; readonly schema?: { readonly openAPIV3Schema?: Schema } }[];
  };
}

/**
 * What the CRDs in a text let users write: for each kind its versions, the fields of `spec` with their types, as
 * `spec.hosts[]: string`, and the values of enums, as `spec.mode=STRICT`. The schema is that of the first version.
 */
export function fieldsOfCrds(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, ReadonlySet<string>>();
  for (const document of parseAllDocuments(text)) {
    const crd = document.toJS() as Crd | null;
    if (crd === null) continue;
    const { names, versions } = crd.spec;
    const fields = new Set(versions.map(({ name }) => `version ${name}`));
    const spec = versions[0]?.schema?.openAPIV3Schema?.properties?.['spec'];
    if (spec !== undefined) collect(spec, 'spec', fields);
    found.set(names.kind, fields);
  }
  return found;
}

function collect(schema: Schema, path: string, fields: Set<string>): void {
  fields.add(
    `${path}: ${schema['x-kubernetes-int-or-string'] === true ? 'integer or string' : (schema.type ?? 'any')}`,
  );
  for (const value of schema.enum ?? []) fields.add(`${path}=${String(value)}`);
  for (const [name, member] of Object.entries(schema.properties ?? {})) collect(member, `${path}.${name}`, fields);
  if (schema.items !== undefined) collect(schema.items, `${path}[]`, fields);
  if (typeof schema.additionalProperties === 'object') collect(schema.additionalProperties, `${path}{}`, fields);
}

/** What the second has and the first has not, sorted: `Gateway spec.servers[].bind: string`, or a kind alone. */
export function added(
  from: ReadonlyMap<string, ReadonlySet<string>>,
  to: ReadonlyMap<string, ReadonlySet<string>>,
): readonly string[] {
  return [...to]
    .flatMap(([kind, fields]) => {
      const known = from.get(kind);
      if (known === undefined) return [kind];
      return [...fields].filter((field) => !known.has(field)).map((field) => `${kind} ${field}`);
    })
    .sort();
}
