import { isObject, textOf } from '../api/json.ts';
import type { SourceKindName } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import { wildcardsOf } from '../model/host.ts';
import { type Name, hostName, namesOf, parseName, subsetName } from './object-names.ts';

/** Nearly always one: then it is not a set. */
type Ids = string | Set<string>;

export interface NamedObject {
  readonly kind: SourceKindName;
  readonly object: KubernetesObject & { readonly spec?: unknown };
}

interface NameIndexOptions {
  readonly domainSuffix: string;
  /** Its DestinationRules are for everybody. */
  readonly rootNamespace: string;
}

/** What the objects of a mesh offer each other, and who needs what. By an id of kind and key. */
export class NameIndex {
  readonly #options: NameIndexOptions;
  readonly #objects = new Map<string, NamedObject>();
  /** By name. */
  readonly #offering = new Map<Name, Ids>();
  /** The same by `namespace name`, of those in the namespace that need it. */
  readonly #needing = new Map<string, Ids>();

  constructor(options: NameIndexOptions) {
    this.#options = options;
  }

  get(id: string): NamedObject | undefined {
    return this.#objects.get(id);
  }

  set(id: string, next: NamedObject | undefined): void {
    const before = this.#objects.get(id);
    if (before !== undefined) this.#change(id, before, remove);
    if (next === undefined) this.#objects.delete(id);
    else {
      this.#objects.set(id, next);
      this.#change(id, next, add);
    }
  }

  /** Whether objects in this namespace find it. In doubt, they do. */
  has(name: Name, namespace: string): boolean {
    const { kind, subject, part } = parseName(name);
    if (kind !== 'port' && kind !== 'subset') return this.#offered(name, namespace).length > 0;
    const hosts = this.#offered(hostName(subject), namespace);
    // What these lead to has ports and subsets of its own.
    if (hosts.some(isAlias)) return true;
    if (kind === 'port') return this.#offered(name, namespace).length > 0 || hosts.some(hasUnknownPorts);
    const from = new Set([namespace, this.#options.rootNamespace, ...hosts.map(namespaceOf)]);
    return [subject, ...wildcardsOf(subject)].some((host) =>
      this.#offered(subsetName(host, part), namespace).some(
        (rule) => hosts.length === 0 || from.has(namespaceOf(rule)),
      ),
    );
  }

  /** An object in the namespace that needs it. */
  needing(name: Name, namespace: string): NamedObject | undefined {
    const [id] = idsOf(this.#needing.get(`${namespace} ${name}`));
    return id === undefined ? undefined : this.#objects.get(id);
  }

  #offered(name: Name, namespace: string): readonly NamedObject[] {
    const found: NamedObject[] = [];
    for (const id of idsOf(this.#offering.get(name))) {
      const object = this.#objects.get(id);
      if (object !== undefined && isExportedTo(object, namespace)) found.push(object);
    }
    return found;
  }

  #change(id: string, { kind, object }: NamedObject, change: typeof add): void {
    const { offers, needs } = namesOf(kind, object, this.#options.domainSuffix);
    for (const name of offers) change(this.#offering, name, id);
    for (const name of needs) change(this.#needing, `${object.metadata.namespace ?? ''} ${name}`, id);
  }
}

function add(to: Map<string, Ids>, name: string, id: string): void {
  const ids = to.get(name);
  if (ids === undefined) to.set(name, id);
  else if (typeof ids !== 'string') ids.add(id);
  else if (ids !== id) to.set(name, new Set([ids, id]));
}

function remove(from: Map<string, Ids>, name: string, id: string): void {
  const ids = from.get(name);
  if (ids === undefined || ids === id) from.delete(name);
  else if (typeof ids !== 'string' && ids.delete(id) && ids.size === 0) from.delete(name);
}

function idsOf(ids: Ids | undefined): Iterable<string> {
  return ids === undefined ? [] : typeof ids === 'string' ? [ids] : ids;
}

function isAlias({ kind, object }: NamedObject): boolean {
  return kind === 'Service' && isObject(object.spec) && object.spec['type'] === 'ExternalName';
}

function hasUnknownPorts({ kind }: NamedObject): boolean {
  return kind === 'ServiceImport';
}

/** Without a word about it, to everybody: what the mesh config says instead is not known here. */
function isExportedTo({ kind, object }: NamedObject, namespace: string): boolean {
  const { metadata, spec } = object;
  const said =
    kind === 'Service'
      ? textOf(metadata.annotations?.['networking.istio.io/exportTo'])
          .split(',')
          .map((each) => each.trim())
          .filter((each) => each !== '')
      : isObject(spec) && Array.isArray(spec['exportTo'])
        ? (spec['exportTo'] as readonly unknown[])
        : [];
  if (said.length === 0 || said.includes('*') || said.includes(namespace)) return true;
  return said.includes('.') && metadata.namespace === namespace;
}

function namespaceOf({ object }: NamedObject): string {
  return object.metadata.namespace ?? '';
}
