export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
}

/** Path of a collection; without a namespace, it covers all namespaces. */
export function collectionPath({ group, version, plural }: ResourceType, namespace = ''): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  return namespace === '' ? `${root}/${plural}` : `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}`;
}

export function objectPath(type: ResourceType, namespace: string, name: string): string {
  return `${collectionPath(type, namespace)}/${encodeURIComponent(name)}`;
}
