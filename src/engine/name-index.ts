import { isObject, textOf } from '../api/json.ts';
import type { SourceKindName } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import { wildcardsOf } from '../model/host.ts';
import { type Name, anyPort, hostName, namesOf, parseName, subsetName } from './object-names.ts';

/** Nearly always one: then it is not a set. */
type Ids = string | Set<string>;

export interface NamedObject {
  readonly kind: SourceKindName;
  readonly object: KubernetesObject & { readonly spec?: unknown };
}

/** Namespaces that see what an object offers; undefined: all. */
type Audience = ReadonlySet<string> | undefined;

/** What objects in one namespace find under a host. */
interface Found {
  /** Something else has its ports and subsets. */
  readonly isAlias: boolean;
  /** Of the objects that offer the host. */
  readonly namespaces: ReadonlySet<string>;
}

/** Namespaces of one object that are told apart: with more, all see it. */
const MOST_EXPORTS = 1_000;
/** Objects that offer one name, which anybody may claim: with more, it is there. */
const MOST_OFFERING = 1_000;

interface NameIndexOptions {
  readonly domainSuffix: string;
  /** Its DestinationRules are for everybody. */
  readonly rootNamespace: string;
}

/** What the objects of a mesh offer each other, and who needs what. By an id of kind and key. */
export class NameIndex {
  readonly #options: NameIndexOptions;
  readonly #objects = new Map<string, NamedObject>();
  /** Of those that not everybody sees: the list can be as long as the object, and is looked at for each name. */
  readonly #audiences = new Map<string, Audience>();
  /** By name. */
  readonly #offering = new Map<Name, Ids>();
  /** The same by `namespace name`, of those in the namespace that need it. */
  readonly #needing = new Map<string, Ids>();
  /** By `namespace name`, until something changes: an object may name thousands of subsets of one host. */
  readonly #found = new Map<string, Found>();

  constructor(options: NameIndexOptions) {
    this.#options = options;
  }

  get(id: string): NamedObject | undefined {
    return this.#objects.get(id);
  }

  set(id: string, next: NamedObject | undefined): void {
    const before = this.#objects.get(id);
    this.#found.clear();
    if (before !== undefined) this.#change(id, before, remove);
    this.#objects.delete(id);
    this.#audiences.delete(id);
    if (next === undefined) return;
    this.#objects.set(id, next);
    const audience = audienceOf(next);
    if (audience !== undefined) this.#audiences.set(id, audience);
    this.#change(id, next, add);
  }

  /** Whether objects in this namespace find it. In doubt, they do. */
  has(name: Name, namespace: string): boolean {
    const { kind, subject, part } = parseName(name);
    if (kind !== 'port' && kind !== 'subset') return this.#isOffered(name, namespace);
    const host = hostName(subject);
    if (this.#isCrowded(host)) return true;
    const { isAlias, namespaces } = this.#foundUnder(host, namespace);
    if (isAlias) return true;
    if (kind === 'port') return this.#isOffered(name, namespace) || this.#isOffered(anyPort(subject), namespace);
    const counts = (rule: NamedObject): boolean => {
      const from = namespaceOf(rule);
      return namespaces.size === 0 || [namespace, this.#options.rootNamespace].includes(from) || namespaces.has(from);
    };
    return [subject, ...wildcardsOf(subject)].some((each) =>
      this.#isOffered(subsetName(each, part), namespace, counts),
    );
  }

  #foundUnder(host: Name, namespace: string): Found {
    const key = `${namespace} ${host}`;
    let found = this.#found.get(key);
    if (found === undefined) {
      const objects = [...this.#offered(host, namespace)];
      found = { isAlias: objects.some(isAlias), namespaces: new Set(objects.map(namespaceOf)) };
      this.#found.set(key, found);
    }
    return found;
  }

  /** An object in the namespace that needs it. */
  needing(name: Name, namespace: string): NamedObject | undefined {
    const [id] = idsOf(this.#needing.get(`${namespace} ${name}`));
    return id === undefined ? undefined : this.#objects.get(id);
  }

  #isOffered(name: Name, namespace: string, counts: (by: NamedObject) => boolean = () => true): boolean {
    if (this.#isCrowded(name)) return true;
    for (const object of this.#offered(name, namespace)) if (counts(object)) return true;
    return false;
  }

  #isCrowded(name: Name): boolean {
    const ids = this.#offering.get(name);
    return ids instanceof Set && ids.size > MOST_OFFERING;
  }

  *#offered(name: Name, namespace: string): Generator<NamedObject> {
    for (const id of idsOf(this.#offering.get(name))) {
      const object = this.#objects.get(id);
      const audience = this.#audiences.get(id);
      if (object !== undefined && (audience === undefined || audience.has(namespace))) yield object;
    }
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

/** Without a word about it, everybody: what the mesh config says instead is not known here. */
function audienceOf({ kind, object }: NamedObject): Audience {
  const { metadata, spec } = object;
  const most = MOST_EXPORTS + 1;
  const said =
    kind === 'Service'
      ? textOf(metadata.annotations?.['networking.istio.io/exportTo'])
          .split(',', most)
          .map((each) => each.trim())
          .filter((each) => each !== '')
      : isObject(spec) && Array.isArray(spec['exportTo'])
        ? (spec['exportTo'] as readonly unknown[]).slice(0, most).map(textOf)
        : [];
  if (said.length === 0 || said.length === most || said.includes('*')) return undefined;
  return new Set(said.map((each) => (each === '.' ? (metadata.namespace ?? '') : each)));
}

function namespaceOf({ object }: NamedObject): string {
  return object.metadata.namespace ?? '';
}
