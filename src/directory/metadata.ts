import { isObject, type Json } from './plain-json.ts';
import type { Kind } from '../api/kinds.ts';
import type { FieldPath } from '../api/schema-path.ts';

/** A field that the API server would refuse, or warn of. */
export interface FieldError {
  readonly path: FieldPath;
  readonly message: string;
}

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const qualifiedName = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/**
 * Checks what every object has in common, as the API server does before it looks at the kind. `identity` is there when
 * kind, namespace and name are beyond doubt.
 */
export function readMetadata(kind: Kind, raw: unknown): { identity?: Identity; errors: readonly FieldError[] } {
  if (!isObject(raw)) return { errors: [{ path: ['metadata'], message: 'is missing; give the object a name' }] };
  const errors: FieldError[] = [];
  const { name, namespace } = raw;
  if (typeof name !== 'string' || name === '') {
    const message = name === undefined || name === null ? 'is missing' : 'must be a string; put it in quotes';
    errors.push({ path: ['metadata', 'name'], message });
  } else if (!isName(kind, name))
    errors.push({ path: ['metadata', 'name'], message: `${quote(name)} is no name of ${nameRule(kind)}` });
  if (kind.namespaced && namespace !== undefined && namespace !== null && namespace !== '') {
    if (typeof namespace !== 'string')
      errors.push({ path: ['metadata', 'namespace'], message: 'must be a string; put it in quotes' });
    else if (namespace.length > 63 || !label.test(namespace))
      errors.push({ path: ['metadata', 'namespace'], message: `${quote(namespace)} is no name of a namespace` });
  }
  if (errors.length > 0) return { errors };
  errors.push(
    ...checkTexts(raw['labels'], 'labels', checkLabelValue),
    ...checkTexts(raw['annotations'], 'annotations'),
  );
  const created = raw['creationTimestamp'];
  if (created !== undefined && created !== null && !isTimestamp(created))
    errors.push({ path: ['metadata', 'creationTimestamp'], message: 'must look like 2026-01-31T12:00:00Z' });
  return {
    identity: { name: name as string, namespace: kind.namespaced ? (namespace as string) || 'default' : '' },
    errors,
  };
}

export interface Identity {
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string;
  readonly name: string;
}

/** The metadata that Fairlead reads, of an object without {@link FieldError}; uid and generation are the source's own. */
export function trimMetadata(identity: Identity, raw: Json): Json {
  const { labels, annotations, creationTimestamp, deletionTimestamp, ownerReferences } = raw;
  const kept = isObject(annotations)
    ? Object.fromEntries(Object.entries(annotations).filter(([key]) => key !== lastApplied))
    : {};
  return {
    name: identity.name,
    ...(identity.namespace === '' ? {} : { namespace: identity.namespace }),
    ...(isTimestamp(creationTimestamp) ? { creationTimestamp } : {}),
    ...(isTimestamp(deletionTimestamp) ? { deletionTimestamp } : {}),
    ...(isObject(labels) && Object.keys(labels).length > 0 ? { labels } : {}),
    ...(Object.keys(kept).length > 0 ? { annotations: kept } : {}),
    ...(Array.isArray(ownerReferences) ? { ownerReferences: ownerReferences.filter(isObject) } : {}),
  };
}

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

function isName(kind: Kind, name: string): boolean {
  if (kind.kind === 'Service' || kind.kind === 'Namespace') return name.length <= 63 && label.test(name);
  return name.length <= 253 && subdomain.test(name);
}

function nameRule(kind: Kind): string {
  const of = kind.kind === 'Service' || kind.kind === 'Namespace' ? '' : ', dots';
  return `a ${kind.kind}; use lower-case letters, digits${of} and dashes`;
}

function checkTexts(raw: unknown, field: string, check?: (value: string) => string | undefined): FieldError[] {
  if (raw === undefined || raw === null) return [];
  if (!isObject(raw)) return [{ path: ['metadata', field], message: 'must be a map of strings' }];
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(raw)) {
    const path = ['metadata', field, key];
    const slash = key.indexOf('/');
    const prefix = slash < 0 ? undefined : key.slice(0, slash);
    const name = key.slice(slash + 1);
    if (prefix !== undefined && (prefix.length > 253 || !subdomain.test(prefix.toLowerCase())))
      errors.push({ path, message: `${quote(prefix)} before the slash is no DNS name` });
    else if (name.length > 63 || !qualifiedName.test(name))
      errors.push({
        path,
        message: `${quote(name)} is no name of ${field}: letters, digits, dashes, dots, at most 63`,
      });
    else if (typeof value !== 'string') errors.push({ path, message: 'must be a string; put it in quotes' });
    else {
      const message = check?.(value);
      if (message !== undefined) errors.push({ path, message });
    }
  }
  return errors;
}

function checkLabelValue(value: string): string | undefined {
  if (value === '' || (value.length <= 63 && qualifiedName.test(value))) return undefined;
  return `${quote(value)} is no value of a label: letters, digits, dashes, dots, at most 63`;
}

function isTimestamp(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value) &&
    !Number.isNaN(Date.parse(value))
  );
}

function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
