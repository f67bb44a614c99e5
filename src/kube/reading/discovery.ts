import { withArticle } from '../../api/article.ts';
import { ApiError } from '../client/api-error.ts';
import type { KubeApi } from '../client/client.ts';
import { isObject } from '../../api/json.ts';
import type { ResourceType } from '../client/paths.ts';

/**
 * Whether the server knows the resource. A 404 alone proves nothing (a load balancer without a backend returns it too):
 * false means that the server listed its resources, and this one was missing. Rejects if this cannot be determined.
 */
export async function isInstalled(
  api: KubeApi,
  { group, version, plural }: ResourceType,
  options: { readonly signal: AbortSignal },
): Promise<boolean> {
  if (group === '') return true;
  try {
    const resources = entries(await api.get(`/apis/${group}/${version}`, options), 'APIResourceList', 'resources');
    return resources.some((resource) => resource === plural);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
  }
  // The version does not exist either. If the group list can be read, the server itself says so.
  entries(await api.get('/apis', options), 'APIGroupList', 'groups');
  return false;
}

/** The first of the versions in which the server knows the resource; undefined: in none. Rejects as {@link isInstalled}. */
export async function installedVersion(
  api: KubeApi,
  type: ResourceType,
  versions: readonly string[],
  options: { readonly signal: AbortSignal },
): Promise<string | undefined> {
  for (const version of versions) if (await isInstalled(api, { ...type, version }, options)) return version;
  return undefined;
}

/** Names of the entries in a discovery document. */
function entries(answer: unknown, kind: string, field: string): unknown[] {
  const list = isObject(answer) && answer['kind'] === kind ? answer[field] : undefined;
  if (!Array.isArray(list))
    throw new ApiError(`discovery is not ${withArticle(kind)}`, { code: 200, reason: 'NotDiscovery', retryable: true });
  return list.map((entry) => (isObject(entry) ? entry['name'] : undefined));
}
