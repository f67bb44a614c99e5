import type { Clock } from '../base/clock.ts';
import type { EtcdConnection } from './connection.ts';
import { EtcdError, printable } from './error.ts';
import type { KeyRange } from './keys.ts';
import { type Event, watchKeys, type WatchResponse } from './messages.ts';

export interface WatchOptions {
  readonly connection: EtcdConnection;
  readonly keys: KeyRange;
  /** The first revision of which events are wanted. */
  readonly from: bigint;
  /** etcd has begun to watch. Called once. */
  readonly onOpen: () => void;
  /**
   * In their order.
   * @param isWhole no more events of the last one's revision follow.
   */
  readonly onEvents: (events: readonly Event[], isWhole: boolean) => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Milliseconds for etcd to begin. */
const PATIENCE = 60_000;

/**
 * Watches until etcd ends it without giving a reason. Rejects with {@link EtcdError}: `Compacted` if events are no longer
 * kept that are wanted, `PermissionDenied` as etcd tells it here: begun and cancelled in one message.
 */
export async function watch(options: WatchOptions): Promise<void> {
  const { connection, keys, from, onOpen, onEvents, clock, signal } = options;
  const end = new AbortController();
  const abort = (): void => end.abort();
  signal.addEventListener('abort', abort, { once: true });
  let failure: EtcdError | undefined;
  let [isOpen, isCanceled] = [false, false];
  const cancel = clock.after(PATIENCE, () => {
    failure = new EtcdError('Timeout', `a watch has not begun within ${PATIENCE / 1_000} s`);
    end.abort();
  });
  const stream = connection.open(watchKeys, {
    signal: end.signal,
    onMessage(message) {
      cancel();
      if (message.canceled) {
        failure = whyCanceled(message);
        isCanceled = true;
        return end.abort();
      }
      if (message.created && !isOpen) {
        isOpen = true;
        onOpen();
      }
      if (message.events.length > 0) onEvents(message.events, !message.fragment);
    },
  });
  stream.send({
    create: {
      key: keys.key,
      ...(keys.end !== undefined && { rangeEnd: keys.end }),
      startRevision: from,
      fragment: true,
    },
  });
  try {
    await stream.ended;
  } catch (error) {
    if (signal.aborted || !end.signal.aborted) throw error;
    if (failure !== undefined) throw failure;
    if (!isCanceled) throw error;
  } finally {
    cancel();
    signal.removeEventListener('abort', abort);
  }
}

function whyCanceled({ compactRevision, cancelReason }: WatchResponse): EtcdError | undefined {
  if (compactRevision !== 0n)
    return new EtcdError('Compacted', `events are kept only from revision ${compactRevision} on`);
  if (cancelReason === '') return undefined;
  return new EtcdError(
    cancelReason.includes('permission denied') ? 'PermissionDenied' : 'Refused',
    printable(cancelReason),
  );
}
