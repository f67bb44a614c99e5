import { errorOfStatus, errorOfTransport } from '../client/api-error.ts';
import type { KubeApi, Query } from '../client/client.ts';
import type { Clock } from '../../base/clock.ts';
import { isObject, type Json } from '../../api/json.ts';
import { LineSplitter } from './lines.ts';

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: Json }
  /** A line that is not an event. */
  | { readonly type: 'malformed'; readonly line: string };

export interface WatchOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly path: string;
  readonly query?: Query;
  /** Events after it are delivered. */
  readonly resourceVersion: string;
  /** Time after which the server ends the watch. */
  readonly timeoutSeconds: number;
  /** Milliseconds without a byte after which the connection counts as dead. Bookmarks come about every minute. */
  readonly idle: number;
  /** Maximum bytes of an event. */
  readonly longestEvent?: number | undefined;
  readonly signal: AbortSignal;
  /** Called when the server has accepted the watch. */
  readonly onOpen: () => void;
  /** Called for each event, in order. If it throws, the watch ends. */
  readonly onEvent: (event: WatchEvent) => void;
  /** Called when bytes arrive. */
  readonly onHeard: () => void;
}

/**
 * One watch request, until the server ends it, no byte arrives for the idle time, or the signal fires. Rejects with an
 * `ApiError` for everything else, including an event of type ERROR.
 */
export async function watch(options: WatchOptions): Promise<'ended' | 'silent' | 'aborted'> {
  const { api, clock, path, query, signal, idle, onEvent, onHeard, onOpen } = options;
  const silence = new AbortController();
  let heard = clock.now();
  const look = (): void => {
    const left = heard + idle - clock.now();
    if (left <= 0) silence.abort();
    else cancel = clock.after(left, look);
  };
  let cancel = clock.after(idle, look);
  try {
    const bytes = await api.stream(path, {
      query: {
        ...query,
        watch: 1,
        allowWatchBookmarks: 'true',
        resourceVersion: options.resourceVersion,
        timeoutSeconds: options.timeoutSeconds,
      },
      signal: AbortSignal.any([signal, silence.signal]),
    });
    onOpen();
    const splitter = new LineSplitter(options.longestEvent);
    for await (const chunk of bytes) {
      if (signal.aborted) return 'aborted';
      heard = clock.now();
      onHeard();
      for (const line of splitter.push(chunk)) onEvent(parseEvent(line));
    }
    return signal.aborted ? 'aborted' : silence.signal.aborted ? 'silent' : 'ended';
  } catch (error) {
    if (signal.aborted) return 'aborted';
    if (silence.signal.aborted) return 'silent';
    throw errorOfTransport(error);
  } finally {
    cancel();
  }
}

function parseEvent(line: string): WatchEvent {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    return { type: 'malformed', line };
  }
  if (!isObject(event)) return { type: 'malformed', line };
  const { type, object } = event;
  if (type === 'ERROR') throw errorOfStatus(object);
  const known = type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED' || type === 'BOOKMARK';
  return known && isObject(object) ? { type, object } : { type: 'malformed', line };
}
