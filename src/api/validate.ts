import { definitions } from './gen/schemas.gen.ts';
import { type ForeignKindName, type Kind, sourceKindOf } from './kinds.ts';
import { createCompiler } from './schema-compile.ts';
import type { Check, Finding } from './schema-compile.ts';
import { unknownMessage } from './schema-messages.ts';
import { printPath } from './schema-path.ts';
import { isObject } from './json.ts';
import { prune } from './schema-prune.ts';
import { validateCore } from './validate-core.ts';
import { validateMetadata } from './validate-metadata.ts';

/** What is wrong with an object according to its schema. */
export interface SchemaError {
  /** As kubectl prints it: `spec.http[0].match[1].uri`. Empty for the object as a whole. */
  readonly field: string;
  /** Without the field: `must be a string`. */
  readonly message: string;
  /** The API server refuses objects with errors. It drops unknown fields, which are warnings. */
  readonly severity: 'error' | 'warning';
}

export type Validate = (object: unknown) => readonly SchemaError[];

/** An object gets at most this many of each severity. */
const MAX_FINDINGS = 100;
/** Up to this size, all errors of an object are found; beyond it, only the first: each takes memory. */
const MAX_SIZE_FOR_ALL = 50_000;

/** The top-level members that the API server knows. */
const TOP = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];

/**
 * The API server's verdict, without an API server: the same errors at the same fields. Never throws, whatever JSON it
 * gets. An object of a kind that is not ours is always right, and so is a `status`, which users do not write. Schemas
 * are compiled on first use, about 50 ms per kind.
 */
export function createValidator(): Validate {
  const allErrors = lazyChecks(MAX_FINDINGS);
  const firstError = lazyChecks(1);

  const validateSpec = (object: Json, { kind }: Kind): readonly SchemaError[] => {
    const name = `${kind}Spec`;
    if (object['spec'] === undefined || object['spec'] === null)
      return errors([{ path: ['spec'], message: 'is missing' }]);
    const { value, unknown, size } = prune(
      object['spec'],
      { $ref: `#/definitions/${name}` },
      definitions,
      ['spec'],
      MAX_FINDINGS,
    );
    const check = size > MAX_SIZE_FOR_ALL ? firstError(name) : allErrors(name);
    const findings = check(value, ['spec']);
    return [...errors(findings), ...unknown.map(({ path, known }) => warning(path, known))];
  };

  return (object) => {
    if (!isObject(object)) return errors([{ path: [], message: 'must be an object' }]);
    const { apiVersion, kind: kindName } = object;
    if (typeof apiVersion !== 'string' || typeof kindName !== 'string') {
      const field = typeof apiVersion !== 'string' ? 'apiVersion' : 'kind';
      return errors([{ path: [field], message: object[field] == null ? 'is missing' : 'must be a string' }]);
    }
    const kind = sourceKindOf(apiVersion, kindName);
    if (kind === undefined) return [];
    const metadata = errors(validateMetadata(object['metadata'], kind));
    if (!kind.custom) return [...metadata, ...errors(validateCore(object, kind.name as ForeignKindName | 'Secret'))];
    const top = Object.keys(object).filter((key) => !TOP.includes(key));
    const unknown = top.slice(0, MAX_FINDINGS).map((key) => warning([key], TOP));
    return [...metadata, ...unknown, ...validateSpec(object, kind)];
  };
}

type Json = Readonly<Record<string, unknown>>;

/** Checks by definition name, compiled on first use. */
function lazyChecks(limit: number): (definition: string) => Check {
  const checks = new Map<string, Check>();
  let compile: ((definition: string) => Check) | undefined;
  return (definition) => {
    const known = checks.get(definition);
    if (known !== undefined) return known;
    compile ??= createCompiler(definitions, { limit });
    const check = compile(definition);
    checks.set(definition, check);
    return check;
  };
}

function errors(findings: readonly Finding[]): readonly SchemaError[] {
  return findings
    .slice(0, MAX_FINDINGS)
    .map(({ path, message }) => ({ field: printPath(path), message, severity: 'error' }));
}

function warning(path: readonly (string | number)[], known: readonly string[]): SchemaError {
  return { field: printPath(path), message: unknownMessage(String(path.at(-1)), known), severity: 'warning' };
}
