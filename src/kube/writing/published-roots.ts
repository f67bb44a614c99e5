import { isObject } from '../../api/json.ts';
import type { KubeApi } from '../client/client.ts';
import { list } from '../reading/list.ts';
import { collectionPath } from '../client/paths.ts';
import { CONFIG_MAPS, KEY, NAME } from './root-certificates.ts';

/** What Pods of a namespace were told to trust. */
export interface PublishedRoots {
  readonly namespace: string;
  /** As somebody has written it: perhaps not PEM. */
  readonly pem: string;
}

export interface Published {
  /** In the root namespace, where tenants cannot write. */
  readonly own?: PublishedRoots;
  /** Each different one of other namespaces, with the first that has it; empty if there is `own`, which decides. */
  readonly others: readonly PublishedRoots[];
}

const PAGE = 500;
/** Different ones that are kept: tenants may write what they like. */
const MOST = 16;
/** Characters, far more than a bundle has. */
const LONGEST = 256 * 1024;

/** The roots in the ConfigMaps `istio-ca-root-cert`. Rejects with an `ApiError`. */
export async function publishedRoots(api: KubeApi, rootNamespace: string, signal: AbortSignal): Promise<Published> {
  const others = new Map<string, PublishedRoots>();
  let own: PublishedRoots | undefined;
  await list({
    api,
    path: collectionPath(CONFIG_MAPS),
    query: { fieldSelector: `metadata.name=${NAME}` },
    pageSize: PAGE,
    signal,
    onItem(item) {
      const roots = rootsIn(item);
      if (roots === undefined) return;
      if (roots.namespace === rootNamespace) own = roots;
      else if (!others.has(roots.pem) && others.size < MOST) others.set(roots.pem, roots);
    },
    onRestart() {
      others.clear();
      own = undefined;
    },
    onSmaller: () => undefined,
  });
  return own === undefined ? { others: [...others.values()] } : { own, others: [] };
}

function rootsIn(item: unknown): PublishedRoots | undefined {
  const { metadata, data } = isObject(item) ? item : {};
  const namespace = isObject(metadata) ? metadata['namespace'] : undefined;
  const pem = isObject(data) ? data[KEY] : undefined;
  return typeof namespace === 'string' && typeof pem === 'string' && pem !== '' && pem.length <= LONGEST
    ? { namespace, pem }
    : undefined;
}
