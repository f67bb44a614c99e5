import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
/** Collects garbage now. */
export const collect = runInNewContext('gc') as () => void;

/** Bytes that are in use, without garbage: how much there is of that depends on the machine. */
export function bytesInUse(of: 'heapUsed' | 'arrayBuffers'): number {
  collect();
  return process.memoryUsage()[of];
}
