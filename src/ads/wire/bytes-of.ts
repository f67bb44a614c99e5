import { Buffer } from 'node:buffer';
import { type Part, leavesOf } from '../store/resource.ts';

/** The bytes of a part, copied into one array. */
export function bytesOf(part: Part): Uint8Array {
  const bytes = Buffer.allocUnsafe(part.length);
  let at = 0;
  for (const leaf of leavesOf(part)) {
    bytes.set(leaf.bytes, at);
    at += leaf.length;
  }
  return bytes;
}
