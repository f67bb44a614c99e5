import { HeapShare } from '../heap-share.ts';
import type { Subscription } from './subscription.ts';

/** Share of the heap for what all clients reject. */
const SHARE = 1 / 8;
/** What is remembered of a rejected name: measured. */
const NAME_BYTES = 1_000;
/** And what it takes each further time that the name has changed: measured. */
const AGAIN_BYTES = 150;

/** For {@link RejectedRoom}. */
export function shareForRejected(most?: number): HeapShare {
  const what = 'what this client rejects';
  return most === undefined ? HeapShare.of(SHARE, what) : new HeapShare(most, what);
}

/** What one stream takes of the memory for rejections. A client may reject each of the 65,536 names that it may ask for. */
export class RejectedRoom {
  readonly #share: HeapShare;
  readonly #address: string;
  #bytes = 0;

  constructor(share: HeapShare, address: string) {
    this.#share = share;
    this.#address = address;
  }

  get isUsed(): boolean {
    return this.#bytes > 0;
  }

  /** Throws if there is no room for what is rejected now. */
  charge(subscriptions: readonly (Subscription | undefined)[]): void {
    let bytes = 0;
    for (const subscription of subscriptions) if (subscription !== undefined) bytes += bytesFor(subscription);
    if (bytes === this.#bytes) return;
    if (bytes > this.#bytes) this.#share.take(this.#address, bytes - this.#bytes);
    else this.#share.give(this.#address, this.#bytes - bytes);
    this.#bytes = bytes;
  }

  close(): void {
    this.#share.give(this.#address, this.#bytes);
    this.#bytes = 0;
  }
}

function bytesFor({ ledger, awaited, inFlight }: Subscription): number {
  const names = ledger.rejections?.size ?? 0;
  return names * NAME_BYTES + Math.max(0, awaited.rejectedNames(inFlight) - names) * AGAIN_BYTES;
}
