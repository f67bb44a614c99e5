import { FairSemaphore } from '../../base/fair-semaphore.ts';
import { BufferPool } from '../wire/buffer-pool.ts';
import type { Receiving } from './request-reader.ts';

/** Longer requests end their stream. */
export const MAX_REQUEST_BYTES = 16 * 1024 * 1024;
/**
 * The same for first requests: istiod's limit for any request. A sidecar that reconnects with the versions of 10,000
 * services sends 1.3 MB.
 */
const MAX_FIRST_REQUEST_BYTES = 4 * 1024 * 1024;
/**
 * Large requests that are being received, or that wait for their world: this much for those of the size that sidecars
 * of ten thousand services send, and the same again for longer ones. They are counted by their announced length; their
 * buffers are less than twice as long. Bytes.
 */
const RECEIVING_BYTES = 32 * 1024 * 1024;

/** What the streams of one server receive requests with. */
export function receiving(): Receiving {
  return {
    maxFirstLength: MAX_FIRST_REQUEST_BYTES,
    maxLength: MAX_REQUEST_BYTES,
    budget: { large: new FairSemaphore(RECEIVING_BYTES), huge: new FairSemaphore(RECEIVING_BYTES) },
    buffers: new BufferPool(2 * RECEIVING_BYTES),
  };
}
