import { isObject } from '../../api/json.ts';
import { ApiError } from './api-error.ts';
import type { KubeApi } from './client.ts';
import { collectionPath, objectPath } from './paths.ts';

/** A Secret as it was read. */
export interface StoredSecret {
  readonly entries: Readonly<Record<string, string>>;
  readonly metadata: {
    readonly resourceVersion: string;
    /** Somebody else's, as that of the chart. */
    readonly labels?: unknown;
    readonly annotations?: unknown;
  };
}

const type = { group: '', version: 'v1', plural: 'secrets' };

/** Undefined if there is none. Rejects with an `ApiError`. */
export async function getSecret(
  api: KubeApi,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<StoredSecret | undefined> {
  try {
    return read(await api.get(objectPath(type, namespace, name), { signal }));
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

/**
 * False if another writer was faster. A Secret that does not exist is created, if that is allowed; in a cluster, the
 * chart makes it.
 */
export async function putSecret(
  api: KubeApi,
  namespace: string,
  name: string,
  content: {
    readonly type: string;
    readonly entries: Readonly<Record<string, string>>;
    /** What is replaced, or undefined if it is created. */
    readonly former: Pick<StoredSecret, 'metadata'> | undefined;
  },
  signal: AbortSignal,
): Promise<boolean> {
  const { entries, former } = content;
  const body = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...former?.metadata, name, namespace },
    type: content.type,
    data: Object.fromEntries(
      Object.entries(entries).map(([key, text]) => [key, Buffer.from(text, 'utf8').toString('base64')]),
    ),
  };
  try {
    if (former === undefined) await api.post(collectionPath(type, namespace), body, { signal });
    else await api.put(objectPath(type, namespace, name), body, { signal });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === 409) return false;
    if (error instanceof ApiError && error.code === 403 && former === undefined)
      throw new Error(
        `Secret ${namespace}/${name} does not exist, and may not be created. Run helm upgrade, which makes it empty, or ` +
          `kubectl --namespace ${namespace} create secret generic ${name} --type ${content.type}`,
        { cause: error },
      );
    throw error;
  }
}

/** As the chart makes those that the control plane fills. */
export function isEmpty({ entries }: StoredSecret): boolean {
  return Object.keys(entries).length === 0;
}

function read(answer: unknown): StoredSecret {
  const { data, metadata } = isObject(answer) ? answer : {};
  const entries = isObject(data) ? data : {};
  const of = isObject(metadata) ? metadata : {};
  return {
    entries: Object.fromEntries(
      Object.entries(entries).map(([key, value]) => [key, Buffer.from(String(value), 'base64').toString('utf8')]),
    ),
    metadata: {
      resourceVersion: String(of['resourceVersion'] ?? ''),
      ...(of['labels'] !== undefined && { labels: of['labels'] }),
      ...(of['annotations'] !== undefined && { annotations: of['annotations'] }),
    },
  };
}
