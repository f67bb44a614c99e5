import { isObject } from '../api/json.ts';
import { ApiError } from './api-error.ts';
import type { KubeApi } from './client.ts';
import { collectionPath, objectPath } from './paths.ts';

/** A Secret as it was read. */
export interface StoredSecret {
  readonly entries: Readonly<Record<string, string>>;
  readonly resourceVersion: string;
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

/** False if another writer was faster. */
export async function putSecret(
  api: KubeApi,
  namespace: string,
  name: string,
  content: {
    readonly type: string;
    readonly entries: Readonly<Record<string, string>>;
    /** Of the Secret that is replaced; undefined: it is created. */
    readonly resourceVersion?: string | undefined;
  },
  signal: AbortSignal,
): Promise<boolean> {
  const { entries, resourceVersion } = content;
  const body = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, ...(resourceVersion !== undefined && { resourceVersion }) },
    type: content.type,
    data: Object.fromEntries(
      Object.entries(entries).map(([key, text]) => [key, Buffer.from(text, 'utf8').toString('base64')]),
    ),
  };
  try {
    if (resourceVersion === undefined) await api.post(collectionPath(type, namespace), body, { signal });
    else await api.put(objectPath(type, namespace, name), body, { signal });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === 409) return false;
    throw error;
  }
}

function read(answer: unknown): StoredSecret {
  const { data, metadata } = isObject(answer) ? answer : {};
  const entries = isObject(data) ? data : {};
  return {
    entries: Object.fromEntries(
      Object.entries(entries).map(([key, value]) => [key, Buffer.from(String(value), 'base64').toString('utf8')]),
    ),
    resourceVersion: isObject(metadata) ? String(metadata['resourceVersion'] ?? '') : '',
  };
}
