import { Ajv } from 'ajv';
import type { ErrorObject } from 'ajv';
import { exclusiveMessage, keywordMessage } from './schema-messages.ts';
import type { Rule, SchemaNode } from './schema-node.ts';
import { isObject } from './json.ts';
import type { FieldPath } from './schema-path.ts';
import { ruleHolds } from './validate-rules.ts';

export interface Finding {
  readonly path: FieldPath;
  readonly message: string;
}

/** Checks a pruned value against one definition; paths start with `at`. */
export type Check = (value: unknown, at: FieldPath) => readonly Finding[];

/** A check stops at `limit` errors. */
export function createCompiler(
  definitions: Readonly<Record<string, SchemaNode>>,
  { limit }: { readonly limit: number },
): (definition: string) => Check {
  const ajv = new Ajv({
    allErrors: limit > 1,
    strict: false,
    validateSchema: false,
    ownProperties: true,
    inlineRefs: false,
    messages: false,
    verbose: true,
    logger: false,
    formats: { int32: true, double: true, byte: isBase64 },
    keywords: [
      {
        keyword: 'x-exclusive',
        type: 'object',
        validate: (groups: Groups, data: Json) => !broken(groups, data).length,
      },
      {
        keyword: 'x-kubernetes-validations',
        validate: (rules: readonly Rule[], data: unknown) => rules.every(({ rule }) => ruleHolds(rule, data)),
      },
      {
        keyword: 'x-kubernetes-list-map-keys',
        type: 'array',
        validate: (keys: readonly string[], data: readonly unknown[]) => !repeated(keys, data).length,
      },
    ],
  });
  ajv.addSchema({ $id: 'api', definitions });
  return (definition) => {
    const validate = ajv.compile({ $ref: `api#/definitions/${definition}` });
    return (value, at) => (validate(value) ? [] : findingsOf((validate.errors ?? []).slice(0, limit), value, at));
  };
}

type Json = Readonly<Record<string, unknown>>;
type Groups = readonly (readonly string[])[];

function findingsOf(errors: readonly ErrorObject[], root: unknown, at: FieldPath): Finding[] {
  return errors.flatMap((error) => {
    const path = [...at, ...stepsOf(error.instancePath, root)];
    return explain(error).map(({ path: steps, message }) => ({ path: [...path, ...steps], message }));
  });
}

/** What an error means; its path is relative to the value that the error is about. */
function explain(error: ErrorObject): Finding[] {
  const { keyword, schema, data } = error;
  switch (keyword) {
    case 'required':
      return [{ path: [String(error.params['missingProperty'])], message: keywordMessage(error) }];
    case 'x-exclusive':
      return broken(schema as Groups, data as Json).map((group) => ({ path: [], message: exclusiveMessage(group) }));
    case 'x-kubernetes-validations':
      return (schema as readonly Rule[])
        .filter(({ rule }) => !ruleHolds(rule, data))
        .map(({ message }) => ({ path: [], message }));
    case 'x-kubernetes-list-map-keys':
      return repeated(schema as readonly string[], data as readonly unknown[]).map((index) => ({
        path: [index],
        message: `has the same ${(schema as readonly string[]).join(' and ')} as another element`,
      }));
    default:
      return [{ path: [], message: keywordMessage(error) }];
  }
}

/** A JSON pointer does not distinguish list indexes from keys made of digits; the value does. */
function stepsOf(pointer: string, root: unknown): FieldPath {
  let value = root;
  return pointer
    .split('/')
    .slice(1)
    .map((escaped) => {
      const key = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
      const step = Array.isArray(value) ? Number(key) : key;
      value = (value as Record<string | number, unknown>)[step];
      return step;
    });
}

/** The groups with more than one field set. */
function broken(groups: Groups, data: Json): Groups {
  const isSet = (field: string) => {
    const value = data[field];
    return value !== undefined && !(Array.isArray(value) && value.length === 0);
  };
  return groups.filter((group) => group.filter(isSet).length > 1);
}

/** Indexes of elements whose keys an earlier element already has. */
function repeated(keys: readonly string[], data: readonly unknown[]): number[] {
  const seen = new Set<string>();
  const found: number[] = [];
  for (const [index, element] of data.entries()) {
    if (!isObject(element)) continue;
    const values = keys.map((key) => element[key]);
    if (values.some((value) => typeof value !== 'string')) continue;
    const id = JSON.stringify(values);
    if (seen.has(id)) found.push(index);
    seen.add(id);
  }
  return found;
}

/** Standard base64 with padding. Searches for errors: matching the whole text would take too much stack. */
function isBase64(text: string): boolean {
  return text !== '' && text.length % 4 === 0 && !/[^A-Za-z0-9+/=]|=[^=]|={3}/.test(text);
}
