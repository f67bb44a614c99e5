import { withArticle } from './article.ts';
import type { Kind } from './kinds.ts';
import type { Finding } from './schema-compile.ts';
import { isObject } from './json.ts';
import { quote } from './quote.ts';

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const qualifiedName = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/** Checks what every object has in common, as the API server does before it looks at the kind. */
export function validateMetadata(metadata: unknown, kind: Kind): readonly Finding[] {
  if (!isObject(metadata)) return [{ path: ['metadata'], message: 'is missing; give the object a name' }];
  const errors = [...checkName(metadata['name'], kind), ...checkNamespace(metadata['namespace'], kind)];
  if (errors.length > 0) return errors;
  errors.push(
    ...checkTexts(metadata['labels'], 'labels', checkLabelValue),
    ...checkTexts(metadata['annotations'], 'annotations'),
  );
  const created = metadata['creationTimestamp'];
  if (created !== undefined && created !== null && !isTimestamp(created))
    errors.push({ path: ['metadata', 'creationTimestamp'], message: 'must look like 2026-01-31T12:00:00Z' });
  return errors;
}

/** What an object is called; undefined if in doubt. */
export function identityOf(metadata: unknown, kind: Kind): Identity | undefined {
  if (!isObject(metadata)) return undefined;
  const { name, namespace } = metadata;
  if (checkName(name, kind).length > 0 || checkNamespace(namespace, kind).length > 0) return undefined;
  return { name: String(name), namespace: kind.namespaced ? text(namespace) || 'default' : '' };
}

export interface Identity {
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string;
  readonly name: string;
}

export function isTimestamp(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value) &&
    !Number.isNaN(Date.parse(value))
  );
}

function checkName(name: unknown, kind: Kind): Finding[] {
  const path = ['metadata', 'name'];
  if (name === undefined || name === null || name === '') return [{ path, message: 'is missing' }];
  if (typeof name !== 'string') return [{ path, message: 'must be a string; put it in quotes' }];
  return isName(kind, name) ? [] : [{ path, message: `${quote(name)} is not a valid name for ${nameRule(kind)}` }];
}

function checkNamespace(namespace: unknown, kind: Kind): Finding[] {
  if (!kind.namespaced || namespace === undefined || namespace === null || namespace === '') return [];
  const path = ['metadata', 'namespace'];
  if (typeof namespace !== 'string') return [{ path, message: 'must be a string; put it in quotes' }];
  if (namespace.length <= 63 && label.test(namespace)) return [];
  return [{ path, message: `${quote(namespace)} is not a valid name for a namespace` }];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function isName(kind: Kind, name: string): boolean {
  if (kind.name === 'Service' || kind.name === 'Namespace') return name.length <= 63 && label.test(name);
  return name.length <= 253 && subdomain.test(name);
}

function nameRule(kind: Kind): string {
  const of = kind.name === 'Service' || kind.name === 'Namespace' ? '' : ', dots';
  return `${withArticle(kind.kind)}; use lower-case letters, digits${of} and dashes`;
}

function checkTexts(raw: unknown, field: string, check?: (value: string) => string | undefined): Finding[] {
  if (raw === undefined || raw === null) return [];
  if (!isObject(raw)) return [{ path: ['metadata', field], message: 'must be a map of strings' }];
  const errors: Finding[] = [];
  for (const [key, value] of Object.entries(raw)) {
    const path = ['metadata', field, key];
    const slash = key.indexOf('/');
    const prefix = slash < 0 ? undefined : key.slice(0, slash);
    const name = key.slice(slash + 1);
    if (prefix !== undefined && (prefix.length > 253 || !subdomain.test(prefix.toLowerCase())))
      errors.push({ path, message: `${quote(prefix)} before the slash is not a DNS name` });
    else if (name.length > 63 || !qualifiedName.test(name))
      errors.push({
        path,
        message: `${quote(name)} is not a valid name for ${field}: letters, digits, dashes, dots, at most 63`,
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
  return `${quote(value)} is not a valid label value: letters, digits, dashes, dots, at most 63`;
}
