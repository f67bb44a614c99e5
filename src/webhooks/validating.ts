import { isObject, type Json, textOf } from '../api/json.ts';
import { kindOf } from '../api/kinds.ts';
import type { AdmissionRequest, Verdict } from './admission-review.ts';

/** One finding about an object, as `fairlead check` prints it. */
export interface ObjectFinding {
  readonly severity: 'error' | 'warning';
  /** Empty for the object as a whole. */
  readonly field: string;
  /** A `ProblemReason`, or `Unreadable`. */
  readonly reason: string;
  readonly message: string;
}

/** All findings about an object on its own, ordered by field. */
export type CheckObject = (object: Json) => readonly ObjectFinding[];

/**
 * A check that never throws: a bug of ours must not keep anybody from changing an object. Its owner gets a warning.
 *
 * @param failed is told of each bug.
 */
export function failingSoft(check: CheckObject, failed: (error: unknown) => void): CheckObject {
  return (object) => {
    try {
      return check(object);
    } catch (error) {
      failed(error);
      const message = 'was not checked because of an internal error in Fairlead; please report it';
      return [{ severity: 'warning', field: '', reason: 'Unreadable', message }];
    }
  };
}

/** Istio's control plane, and ours, find out with such an object whether validation is served. */
export const ALWAYS_REJECT = 'internal.istio.io/webhook-always-reject';

/** Errors that a refusal spells out; characters of each. */
const MOST_ERRORS = 10;
const LONGEST_ERROR = 1_000;

/** Others may be wrong only because the objects are missing that this one is checked without. */
const warned: ReadonlySet<string> = new Set(['Unreadable', 'UnsupportedField', 'TooBroad']);

/**
 * The verdict about an object that someone creates or updates. An update is refused only for what it makes worse: an
 * object with errors from before can be edited, labelled and deleted.
 */
export function validate(request: AdmissionRequest, check: CheckObject): Verdict {
  const { operation, subresource, object, oldObject } = request;
  if (object === undefined || subresource !== '' || (operation !== 'CREATE' && operation !== 'UPDATE'))
    return { allowed: true };
  if (isToBeRejected(object))
    return { allowed: false, message: `the annotation ${ALWAYS_REJECT} asks for it to be refused` };
  const kind = kindOf(textOf(object['apiVersion']), textOf(object['kind']));
  if (kind?.custom !== true || isBeingDeleted(object)) return { allowed: true };
  const findings = check(withName(object, request));
  const errors = findings.filter(({ severity }) => severity === 'error');
  const before = errors.length > 0 && oldObject !== undefined ? check(withName(oldObject, request)) : [];
  const added = without(errors, before);
  const warnings = findings.filter(({ severity, reason }) => severity === 'warning' && warned.has(reason)).map(print);
  if (added.length > 0) return { allowed: false, message: messageOf(added), warnings };
  return { allowed: true, warnings: [...errors.map(print), ...warnings] };
}

/** `field: sentence`, as `fairlead check` prints it. */
function print({ field, message }: ObjectFinding): string {
  return field === '' ? message : `${field}: ${message}`;
}

function messageOf(errors: readonly ObjectFinding[]): string {
  const lines = errors.slice(0, MOST_ERRORS).map((error) => {
    const line = print(error);
    return line.length <= LONGEST_ERROR ? line : `${line.slice(0, LONGEST_ERROR).toWellFormed()}...`;
  });
  const more = errors.length - lines.length;
  return [...lines, ...(more > 0 ? [`and ${more} more errors; "fairlead check" prints them all`] : [])].join('\n');
}

/** The findings that `before` does not have as often. What moves within a list is not new. */
function without(errors: readonly ObjectFinding[], before: readonly ObjectFinding[]): readonly ObjectFinding[] {
  const key = ({ field, message }: ObjectFinding): string => `${field.replace(/\[\d+\]/g, '[]')}: ${message}`;
  const known = new Map<string, number>();
  for (const error of before) if (error.severity === 'error') known.set(key(error), (known.get(key(error)) ?? 0) + 1);
  return errors.filter((error) => {
    const left = known.get(key(error)) ?? 0;
    known.set(key(error), left - 1);
    return left <= 0;
  });
}

function isToBeRejected(object: Json): boolean {
  const { annotations } = metadataOf(object);
  return isObject(annotations) && annotations[ALWAYS_REJECT] === 'true';
}

/** Only finalizers keep it; whoever removes them changes nothing else. */
function isBeingDeleted(object: Json): boolean {
  const { deletionTimestamp } = metadataOf(object);
  return deletionTimestamp !== undefined && deletionTimestamp !== null;
}

/** With the name and namespace that the API server knows better than the object. */
function withName(object: Json, { name, namespace }: AdmissionRequest): Json {
  const metadata = metadataOf(object);
  const known = {
    name: metadata['name'] ?? (name === '' ? 'unnamed' : name),
    ...(namespace === '' ? {} : { namespace: metadata['namespace'] ?? namespace }),
  };
  return { ...object, metadata: { ...metadata, ...known } };
}

function metadataOf(object: Json): Json {
  return isObject(object['metadata']) ? object['metadata'] : {};
}
