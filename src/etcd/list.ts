import type { EtcdConnection } from './connection.ts';
import { EtcdError } from './error.ts';
import { after, type KeyRange } from './keys.ts';
import { type KeyValue, range, type RangeResponse } from './messages.ts';

export interface ListOptions {
  readonly connection: EtcdConnection;
  readonly keys: KeyRange;
  /** Keys in one answer, at most. */
  readonly pageSize: number;
  /** False: no more are wanted. */
  readonly onEntry: (entry: KeyValue) => boolean;
  /** A key whose value is longer than any message that is read. False: no more are wanted. */
  readonly onTooLarge: (key: string) => boolean;
  readonly signal: AbortSignal;
}

export interface Listed {
  /** Of the store in which all of it was so. */
  readonly revision: bigint;
  /** How many keys there are, as the server says. */
  readonly count: number;
}

/**
 * Lists keys in their order, as one revision of the store has them, page by page. A page that is too long is asked for
 * again in smaller ones. Rejects with {@link EtcdError}; `Compacted` if it takes so long that the revision is gone.
 */
export async function list(options: ListOptions): Promise<Listed> {
  const { keys, pageSize, onEntry, onTooLarge } = options;
  let [size, largest] = [pageSize, pageSize];
  let from = keys.key;
  let listed: Listed | undefined;
  for (;;) {
    let page: RangeResponse;
    let take = onEntry;
    try {
      page = await pageOf(options, { from, size, at: listed?.revision });
      size = Math.min(2 * size, largest);
    } catch (error) {
      if (!(error instanceof EtcdError) || error.reason !== 'TooLarge') throw error;
      if (size > 1) {
        size = largest = Math.floor(size / 2);
        continue;
      }
      page = await pageOf(options, { from, size: 1, at: listed?.revision, keysOnly: true });
      take = ({ key }) => onTooLarge(key);
      largest = pageSize;
    }
    listed ??= { revision: page.header?.revision ?? 0n, count: Number(page.count) };
    for (const entry of page.kvs) {
      if (entry.key < from) throw new EtcdError('Malformed', 'keys of a list are not in order');
      if (!take(entry)) return listed;
      from = after(entry.key);
    }
    if (!page.more) return listed;
    if (page.kvs.length === 0) throw new EtcdError('Malformed', 'a page of a list is empty, and there are more');
  }
}

interface Page {
  readonly from: string;
  readonly size: number;
  readonly at: bigint | undefined;
  readonly keysOnly?: true;
}

function pageOf(
  { connection, keys: { end }, signal }: ListOptions,
  { from, size, at, keysOnly }: Page,
): Promise<RangeResponse> {
  const request = {
    ...{ key: from, limit: BigInt(size), serializable: true },
    ...(end !== undefined && { rangeEnd: end }),
    ...(at !== undefined && { revision: at }),
    ...(keysOnly && { keysOnly }),
  };
  return connection.call(range, request, { signal });
}
