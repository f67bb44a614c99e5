import { type Kind, type KindName, kinds } from '../../api/kinds.ts';
import { isObject } from '../../api/json.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { ApiError } from '../client/api-error.ts';
import type { KubeApi } from '../client/client.ts';
import { isInstalled } from './discovery.ts';
import { Interner } from './interner.ts';
import { list } from './list.ts';
import { collectionPath } from '../client/paths.ts';
import { shapeOf } from './trim.ts';

const PAGE = 500;

/** All objects of some kinds, as they are now. A kind that is not installed has none. Rejects with an `ApiError`. */
export async function readOnce(
  api: KubeApi,
  names: readonly KindName[],
  rootNamespace: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<KindName, readonly KubernetesObject[]>> {
  const read = await Promise.all(
    kinds
      .filter(({ name }) => names.includes(name))
      .map(async (kind) => [kind.name, await readKind(api, kind, rootNamespace, signal)] as const),
  );
  return new Map(read);
}

async function readKind(
  api: KubeApi,
  kind: Kind<KindName>,
  rootNamespace: string,
  signal: AbortSignal,
): Promise<readonly KubernetesObject[]> {
  const { trim } = shapeOf(kind, new Interner());
  let found: KubernetesObject[] = [];
  try {
    await list({
      api,
      path: collectionPath(kind, kind.name === 'ConfigMap' ? rootNamespace : ''),
      ...(kind.name === 'ConfigMap' && { query: { fieldSelector: 'metadata.name=istio' } }),
      pageSize: PAGE,
      signal,
      onItem: (item) => {
        if (isObject(item) && isObject(item['metadata'])) found.push(trim(item));
      },
      onRestart: () => {
        found = [];
      },
      onSmaller: () => undefined,
    });
  } catch (error) {
    if (error instanceof ApiError && error.code === 404 && !(await isInstalled(api, kind, { signal }))) return [];
    throw error;
  }
  return found;
}
