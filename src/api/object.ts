/** The metadata fields that Fairlead reads; sources drop the others (managedFields, last-applied, ...). */
export interface ObjectMeta {
  readonly name: string;
  /** Empty for cluster-scoped kinds. */
  readonly namespace?: string;
  readonly uid?: string;
  /** A JSON integer; absent for kinds without generations. */
  readonly generation?: number;
  readonly resourceVersion?: string;
  /** RFC 3339. Decides which of two conflicting objects is older; absent counts as oldest. */
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly { readonly kind: string; readonly name: string; readonly controller?: boolean }[];
}

const ownPrefixes: readonly string[] = ['istio.io', 'fairlead.dev'];
/** Of Cilium's ClusterMesh. */
const clusterMeshPrefixes: readonly string[] = ['service.cilium.io', 'clustermesh.cilium.io', 'io.cilium'];

/**
 * The annotations that sources keep: Istio's, our own, and ClusterMesh's. Others are not read, often large, and change
 * often.
 */
export function isMeshAnnotation(key: string): boolean {
  const slash = key.indexOf('/');
  const prefix = key.slice(0, Math.max(0, slash));
  return ownPrefixes.includes(prefix) || prefix.endsWith('.istio.io') || clusterMeshPrefixes.includes(prefix);
}

/** Any Kubernetes object as plain JSON. The kind's own interface types everything except `metadata`. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

/** Identifies the object, and its source, that something is about. */
export interface ObjectRef {
  /** The cluster id, or the name of the directory source. */
  readonly source: string;
  /** API group; empty for the core group. */
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
  readonly generation?: number;
}

/** The key of an object within the collection of its kind. */
export function objectKey(source: string, namespace: string, name: string): string {
  return `${source}/${namespace}/${name}`;
}

/** Parts of a key made by {@link objectKey}. */
export function parseObjectKey(key: string): { source: string; namespace: string; name: string } {
  const [source = '', namespace = '', name = ''] = key.split('/');
  return { source, namespace, name };
}

/** The source of the object with this key. */
export function sourceOfKey(key: string): string {
  return key.slice(0, key.indexOf('/'));
}

export function refOf(source: string, object: KubernetesObject): ObjectRef {
  const { name, namespace = '', uid, generation } = object.metadata;
  const slash = object.apiVersion.indexOf('/');
  return {
    source,
    group: slash < 0 ? '' : object.apiVersion.slice(0, slash),
    kind: object.kind,
    namespace,
    name,
    ...(uid === undefined ? {} : { uid }),
    ...(generation === undefined ? {} : { generation }),
  };
}

/** For values that stay equal while the object changes. */
export function withoutGeneration({ source, group, kind, namespace, name }: ObjectRef): ObjectRef {
  return { source, group, kind, namespace, name };
}

/** Whether two refs name the same object. They may be different values, of different generations. */
export function sameObject(a: ObjectRef, b: ObjectRef): boolean {
  return (
    a.name === b.name &&
    a.namespace === b.namespace &&
    a.kind === b.kind &&
    a.group === b.group &&
    a.source === b.source
  );
}

/** Each object once: values made from one object at different times may each have a ref. */
export function distinctRefs(refs: Iterable<ObjectRef>): readonly ObjectRef[] {
  const found = new Set(refs);
  if (found.size < 2) return [...found];
  const distinct = new Map<string, ObjectRef>();
  for (const ref of found) {
    const key = `${ref.source}/${ref.group}/${printRef(ref)}`;
    if (!distinct.has(key)) distinct.set(key, ref);
  }
  return [...distinct.values()];
}

/** `kind/namespace/name`, as logs and messages print it. */
export function printRef(ref: Pick<ObjectRef, 'kind' | 'namespace' | 'name'>): string {
  return ref.namespace === '' ? `${ref.kind}/${ref.name}` : `${ref.kind}/${ref.namespace}/${ref.name}`;
}

/** The control plane revision that an object is meant for (label `istio.io/rev`); empty if it names none. */
export function revisionOf({ metadata }: KubernetesObject): string {
  return metadata.labels?.['istio.io/rev'] ?? '';
}
