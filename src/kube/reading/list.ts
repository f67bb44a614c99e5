import { setImmediate } from 'node:timers/promises';
import { ApiError, isExpired } from '../client/api-error.ts';
import { TOO_LARGE } from '../client/body.ts';
import type { KubeApi, Query } from '../client/client.ts';
import { isObject, type Json } from '../../api/json.ts';

export interface ListOptions {
  readonly api: KubeApi;
  readonly path: string;
  readonly query?: Query;
  readonly pageSize: number;
  readonly signal: AbortSignal;
  /** Called for each item; pages are not kept. */
  readonly onItem: (item: unknown) => void;
  /** The list starts over: discard the items so far. */
  readonly onRestart: () => void;
  /** A page was too large to be read; the list continues with pages of this size. */
  readonly onSmaller: (pageSize: number) => void;
}

/** Others get a turn after so many. */
const ITEMS_AT_ONCE = 1_000;

/** Per list. Millions of objects take fewer. */
const MOST_PAGES = 10_000;

/**
 * Reads a collection in pages, all of one revision, and returns its resourceVersion. If the revision expires between
 * pages, the list is read again in one piece, so that it completes however slow it is. A page that is too large is read
 * again as two, and so on, down to one object. A list that loops or never ends is an error.
 */
export async function list(options: ListOptions): Promise<string> {
  const { api, path, query, pageSize, signal, onItem } = options;
  let limit: number | undefined = pageSize;
  let token: string | undefined;
  let pages = 0;
  /** That of a page before, which moves on at powers of two: tokens may be long, and a round of them comes back to it. */
  let mark: string | undefined;
  for (;;) {
    let page: unknown;
    try {
      page = await api.get(path, { query: { ...query, limit, continue: token }, signal });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.reason === TOO_LARGE) {
        if (limit === undefined || limit <= 1) throw tooLarge(path, limit, error);
        limit = Math.floor(limit / 2);
        options.onSmaller(limit);
        continue;
      }
      if (token === undefined || !isExpired(error)) throw error;
      limit = token = mark = undefined;
      pages = 0;
      options.onRestart();
      continue;
    }
    const metadata = isObject(page) && isObject(page['metadata']) ? page['metadata'] : {};
    const items = isObject(page) ? (page['items'] ?? []) : undefined;
    const version = metadata['resourceVersion'];
    if (!Array.isArray(items) || typeof version !== 'string' || version === '')
      throw new ApiError(`response to GET ${path} is not a list`, { code: 200, reason: 'NotAList', retryable: true });
    // Items of built-in kinds do not carry their own kind.
    const { apiVersion, kind } = page as Json;
    const type = { apiVersion, kind: typeof kind === 'string' ? kind.replace(/List$/, '') : kind };
    for (const [i, item] of items.entries()) {
      onItem(isObject(item) && item['kind'] === undefined ? { ...type, ...item } : item);
      // The server may ignore the limit.
      if (i % ITEMS_AT_ONCE !== ITEMS_AT_ONCE - 1) continue;
      await setImmediate();
      signal.throwIfAborted();
    }
    token = typeof metadata['continue'] === 'string' ? metadata['continue'] : '';
    if (token === '') return version;
    if (token === mark || pages === MOST_PAGES)
      throw new ApiError(`GET ${path}: the list does not end`, { code: 200, reason: 'EndlessList', retryable: true });
    if ((pages & (pages - 1)) === 0) mark = token;
    pages++;
  }
}

function tooLarge(path: string, limit: number | undefined, cause: ApiError): ApiError {
  const piece = limit === undefined ? 'the list in one piece' : `a page of ${limit}`;
  return new ApiError(`GET ${path}, ${piece}: ${cause.message}`, {
    code: cause.code,
    reason: cause.reason,
    retryable: true,
    cause,
  });
}
