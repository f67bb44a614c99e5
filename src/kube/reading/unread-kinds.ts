import { isObject } from '../../api/json.ts';
import { unreadResources, type UnreadResource } from '../../api/unread-kinds.ts';
import { ApiError } from '../client/api-error.ts';
import type { KubeApi } from '../client/client.ts';
import type { Log } from '../client/log.ts';
import { collectionPath } from '../client/paths.ts';

export interface UnreadKindsOptions {
  readonly api: KubeApi;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Warns of each Istio kind that has objects but is not read: their owners expect it to be in force. Never rejects. */
export async function warnOfUnreadKinds({ api, log, signal }: UnreadKindsOptions): Promise<void> {
  for (const resource of unreadResources) {
    const { group, kind, consequence } = resource;
    try {
      const objects = await countOf(resource, api, signal);
      if (objects > 0) log.warn('Objects of a kind that Fairlead does not read', { kind, group, objects, consequence });
    } catch (err) {
      if (signal.aborted) return;
      log.info('Cannot look for objects of a kind that Fairlead does not read', { kind, group, err });
    }
  }
}

/** Number of objects; 0 if the kind is not installed. */
async function countOf(
  { group, plural, versions }: UnreadResource,
  api: KubeApi,
  signal: AbortSignal,
): Promise<number> {
  for (const version of versions) {
    try {
      const page = await api.get(collectionPath({ group, version, plural }), { query: { limit: 1 }, signal });
      const { items, metadata } = isObject(page) ? page : {};
      const more = isObject(metadata) ? metadata['remainingItemCount'] : undefined;
      return (Array.isArray(items) ? items.length : 0) + (typeof more === 'number' ? more : 0);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 404) throw error;
    }
  }
  return 0;
}
