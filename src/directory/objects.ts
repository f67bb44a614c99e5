import { isObject, type Json, textOf, withoutNulls } from '../api/json.ts';
import { type Kind, sourceKindOf, sourceKinds } from '../api/kinds.ts';
import type { KubernetesObject, ObjectRef } from '../api/object.ts';
import { remarkOn } from '../api/unread-kinds.ts';
import type { Validate } from '../api/validate.ts';
import { type Identity, identityOf } from '../api/validate-metadata.ts';
import { readDocument } from '../yaml/document.ts';
import type { FieldPath } from '../api/schema-path.ts';
import { MESH_CONFIG } from '../api/mesh-config-names.ts';
import { parsePath } from './field-path.ts';
import { trimMetadata } from './metadata.ts';
import { templateIn } from './templates.ts';

/** Of the ConfigMaps, only mesh configs are read, and what has the certificates of authorities. */
const MESH_CONFIG_ENTRIES = ['mesh', 'meshNetworks'];
const AUTHORITIES = ['ca.crt', 'cacert'];

/** What a document says about one object. */
export interface DocumentObject extends Identity {
  readonly key: string;
  readonly kind: Kind;
  /** Steps from the top of the document to the object: some objects are in lists. */
  readonly path: FieldPath;
  /** Absent if the object is unusable; `errors` then says why. Has neither uid nor generation. */
  readonly object?: KubernetesObject;
  /** An unusable object that must not fall away, for lack of an earlier version: a policy would open a door. */
  readonly failsClosed?: KubernetesObject;
  readonly errors: readonly Finding[];
}

/** Something that the API server would reject or warn about, or that is not read. */
export interface Finding {
  readonly path: FieldPath;
  readonly message: string;
  readonly severity: 'error' | 'warning';
  /** Of objects of a kind that is not read, the same for those that have the same finding. */
  readonly unread?: string;
  /** Counted from 1 within the document, if known more precisely than from the path. */
  readonly line?: number;
}

const ENCRYPTED: Finding = {
  path: ['sops'],
  message: 'has been encrypted by SOPS, and what it contains is not looked at',
  severity: 'warning',
};

/** One document, parsed. Its meaning depends neither on its file nor on its position. */
export interface ParsedDocument {
  readonly text: string;
  readonly objects: readonly DocumentObject[];
  /** Findings about the document as a whole. */
  readonly findings: readonly Finding[];
  /** Number of objects of kinds that Fairlead does not know. */
  readonly ignored: number;
  /** These objects as they are written, for who asks to keep them. */
  readonly others: readonly OtherObject[];
}

/** An object that is not read. Without a namespace, it counts as in `default`. */
export interface OtherObject {
  readonly key: string;
  /** Steps from the top of the document to the object. */
  readonly path: FieldPath;
  readonly object: KubernetesObject;
}

export interface ReadingOptions {
  /** Objects of kinds that Fairlead does not know stay in the documents. */
  readonly keepsOthers?: boolean;
  /** A kustomization reads the documents, as something else than objects. */
  readonly isPart?: boolean;
}

export function parseObjects(text: string, validate: Validate, options?: ReadingOptions): ParsedDocument {
  const content = readDocument(text);
  if ('broken' in content) {
    const { line, path, message } = content.broken;
    return { text, objects: [], findings: [{ severity: 'error', path, line, message }], ignored: 0, others: [] };
  }
  return { text, ...readValue(content.value, validate, options) };
}

/** The same for a document that is already parsed. */
export function readValue(
  value: unknown,
  validate: Validate,
  options: ReadingOptions = {},
): Omit<ParsedDocument, 'text'> {
  const reading = new Reading(validate, options);
  reading.read(value, []);
  return reading;
}

function isRead(configMap: string, data: unknown): boolean {
  if (configMap === MESH_CONFIG) return true;
  // Those of revisions are called istio-REVISION.
  const entries = configMap.startsWith(`${MESH_CONFIG}-`) ? [...AUTHORITIES, ...MESH_CONFIG_ENTRIES] : AUTHORITIES;
  return isObject(data) && entries.some((entry) => Object.hasOwn(data, entry));
}

class Reading {
  readonly objects: DocumentObject[] = [];
  readonly findings: Finding[] = [];
  readonly others: OtherObject[] = [];
  ignored = 0;
  readonly #validate: Validate;
  readonly #options: ReadingOptions;

  constructor(validate: Validate, options: ReadingOptions) {
    this.#validate = validate;
    this.#options = options;
  }

  read(value: unknown, path: FieldPath, listOf?: { apiVersion: string; kind: string }): void {
    if (value === null && path.length === 0) return;
    if (path.length === 0 && this.#options.isPart) {
      const message = 'is a part of a kustomization, not an object, and is ignored; check what kustomize builds';
      this.findings.push({ severity: 'warning', path, message });
      return;
    }
    if (path.length === 0 && (isJsonPatch(value) || isMergePatch(value))) {
      const message = 'is a patch for another object, not an object, and is ignored; check the result';
      this.findings.push({ severity: 'warning', path, message });
      return;
    }
    if (path.length === 0 && isListOfAnotherTool(value)) {
      const message = 'is not a Kubernetes object (it is a list) and is ignored';
      this.findings.push({ severity: 'warning', path, message });
      return;
    }
    if (!isObject(value))
      return this.#refuse(path, 'is not a Kubernetes object; it needs apiVersion, kind and metadata');
    // Items of a typed list may omit what the list says.
    const { apiVersion = listOf?.apiVersion, kind: kindName = listOf?.kind } = value;
    if (apiVersion === undefined && kindName === undefined) {
      const message = 'is not a Kubernetes object (it has neither apiVersion nor kind) and is ignored';
      this.findings.push({ severity: 'warning', path, message });
      return;
    }
    if (isOfAnotherTool(value)) {
      const missing = kindName === undefined ? 'kind' : 'apiVersion';
      const message = `is not a Kubernetes object (it has neither ${missing} nor metadata) and is ignored`;
      this.findings.push({ severity: 'warning', path, message });
      return;
    }
    if (isKubeconfig(value)) {
      this.ignored++;
      return;
    }
    if (typeof apiVersion !== 'string' || typeof kindName !== 'string' || apiVersion === '' || kindName === '') {
      const field = typeof apiVersion !== 'string' || apiVersion === '' ? 'apiVersion' : 'kind';
      return this.#refuse([...path, field], value[field] === undefined ? 'is missing' : 'must be a string');
    }
    if (kindName.endsWith('List') && (Array.isArray(value['items']) || kindName === 'List'))
      return this.#readList(value, apiVersion, kindName.slice(0, -4), path);
    const kind = sourceKindOf(apiVersion, kindName);
    if (kind === undefined) this.#ignore(apiVersion, kindName, value, path);
    else this.#readObject(kind, value, path);
  }

  #readList(value: Json, apiVersion: string, kind: string, path: FieldPath): void {
    const items = value['items'] ?? [];
    if (!Array.isArray(items)) return this.#refuse([...path, 'items'], 'must be a list');
    for (const [index, item] of items.entries())
      this.read(item, [...path, 'items', index], kind === '' ? undefined : { apiVersion, kind });
  }

  #readObject(kind: Kind, value: Json, path: FieldPath): void {
    const apiVersion = kind.group === '' ? kind.version : `${kind.group}/${kind.version}`;
    const content = (kind.custom ? value : withoutNulls(value)) as Json;
    const { apiVersion: _, kind: __, metadata, ...rest } = content;
    const identity = identityOf(metadata, kind);
    if (kind.name === 'ConfigMap' && identity !== undefined && !isRead(identity.name, rest['data'])) {
      this.ignored++;
      if (this.#options.keepsOthers && hasName(value))
        this.others.push(otherObject(apiVersion, kind.kind, value, path));
      return;
    }
    if (kind.name === 'Secret' && identity !== undefined && isEncrypted(value)) {
      const key = keyOf({ ...identity, group: kind.group, kind: kind.kind });
      this.objects.push({ key, kind, ...identity, path, errors: [ENCRYPTED] });
      return;
    }
    const all = this.#validate({ apiVersion, kind: kind.kind, metadata, ...rest }).map(
      ({ field, message, severity }): Finding => ({ path: parsePath(field), message, severity }),
    );
    let isNamed = false;
    const findings = all.flatMap((finding): readonly Finding[] => {
      const template = finding.severity === 'error' ? templateIn(value, finding.path) : undefined;
      if (template === undefined) return [finding];
      // One is as good as all: the object has to be rendered.
      const named = isNamed ? [] : [{ ...finding, message: template }];
      isNamed = true;
      return named;
    });
    if (identity === undefined) {
      this.findings.push(...findings.map((finding) => ({ ...finding, path: [...path, ...finding.path] })));
      return;
    }
    const object = {
      apiVersion,
      kind: kind.kind,
      metadata: trimMetadata(identity, metadata as Json),
      ...rest,
    } as unknown as KubernetesObject;
    const usable = !findings.some(({ severity }) => severity === 'error');
    const key = keyOf({ ...identity, group: kind.group, kind: kind.kind });
    const kept = usable ? { object } : kind.failsClosed ? { failsClosed: object } : {};
    this.objects.push({ key, kind, ...identity, path, errors: findings, ...kept });
  }

  #ignore(apiVersion: string, kind: string, value: Json, path: FieldPath): void {
    const remark = remarkOn(apiVersion, kind, value);
    // In groups that are read, an unknown kind may be one that is only half typed.
    if (remark === undefined && !apiVersion.includes('/') && !hasName(value))
      return this.#refuse([...path, 'metadata', 'name'], 'is missing');
    if (remark?.severity === 'error') return this.#refuse([...path, remark.field], remark.message);
    this.ignored++;
    if (this.#options.keepsOthers && hasName(value)) this.others.push(otherObject(apiVersion, kind, value, path));
    if (remark === undefined) return;
    const { severity, field, message } = remark;
    this.findings.push({ severity, path: [...path, field], message, unread: `${apiVersion} ${kind}: ${message}` });
  }

  #refuse(path: FieldPath, message: string): void {
    this.findings.push({ severity: 'error', path, message });
  }
}

/**
 * Chart.yaml, which has no kind, what provisions Grafana, whose version is a number, or kustomization.yaml, which need
 * not name its version. An object may be half typed.
 */
function isOfAnotherTool({ apiVersion, kind, metadata, name, spec }: Json): boolean {
  if (metadata !== undefined) return false;
  if (kind === undefined)
    return typeof apiVersion === 'string'
      ? /^v\d+$/.test(apiVersion) && typeof name === 'string'
      : typeof apiVersion === 'number';
  if (apiVersion !== undefined) return false;
  // Values of a chart may have a kind, such as the one of its workload.
  const isRead = sourceKinds.some((each) => each.kind === kind);
  return kind === 'Kustomization' || kind === 'Component' || (!isRead && spec === undefined);
}

/** SOPS describes at the top how it has encrypted values. */
function isEncrypted({ sops, data, stringData }: Json): boolean {
  const values = [data, stringData].flatMap((entries) => (isObject(entries) ? Object.values(entries) : []));
  return isObject(sops) && values.some((value) => typeof value === 'string' && value.startsWith('ENC['));
}

/** Neither objects that somebody has made a list of, nor a patch that is half typed. */
function isListOfAnotherTool(value: unknown): boolean {
  const isOurs = (one: unknown) =>
    isObject(one) && ['apiVersion', 'kind', 'metadata', 'op'].some((field) => Object.hasOwn(one, field));
  return Array.isArray(value) && !value.some(isOurs);
}

/** Operations as Kustomize applies them (RFC 6902). */
function isJsonPatch(value: unknown): boolean {
  const isOperation = (one: unknown) =>
    isObject(one) && typeof one['op'] === 'string' && typeof one['path'] === 'string';
  return Array.isArray(value) && value.length > 0 && value.every(isOperation);
}

/** A directive of Kubernetes' strategic merge. */
function isMergePatch(value: unknown): boolean {
  return isObject(value) && typeof value['$patch'] === 'string';
}

/** It has the version of the core, and no name. */
function isKubeconfig({ apiVersion, kind, metadata, clusters }: Json): boolean {
  return apiVersion === 'v1' && kind === 'Config' && metadata === undefined && Array.isArray(clusters);
}

function hasName({ metadata }: Json): boolean {
  return isObject(metadata) && typeof metadata['name'] === 'string' && metadata['name'] !== '';
}

function otherObject(apiVersion: string, kind: string, value: Json, path: FieldPath): OtherObject {
  const metadata = value['metadata'] as Json;
  const identity = { name: String(metadata['name']), namespace: textOf(metadata['namespace']) || 'default' };
  const group = apiVersion.slice(0, Math.max(apiVersion.indexOf('/'), 0));
  const object = { ...value, apiVersion, kind, metadata: trimMetadata(identity, metadata) } as unknown;
  return { key: keyOf({ ...identity, group, kind }), path, object: object as KubernetesObject };
}

type Named = Pick<ObjectRef, 'group' | 'kind' | 'namespace' | 'name'>;

/** Identifies an object within the directory. */
export function keyOf({ group, kind, namespace, name }: Named): string {
  return `${group}/${kind}/${namespace}/${name}`;
}
