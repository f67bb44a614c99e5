/**
 * Whether a client may have rejected something for a reason of its own: something is wrong where it runs, and others may
 * well take the same.
 */
export function isLocalReason(message: string): boolean {
  return LOCAL.some((text) => message.includes(text));
}

/** Clients of a build that reject the same for such a reason: from this many on, it is not their own. */
export const LEAST_LOCAL = 2;

/** In Envoy's words. */
const LOCAL = [
  // `cannot bind '127.0.0.1:80': Address already in use`, and what else the system says to it
  'cannot bind',
  'Address already in use',
  'Permission denied',
  'Too many open files',
  // of a file that a cluster, a listener or a Secret names
  'Invalid path: ',
  'unable to read file',
  'No such file or directory',
  'file not found',
] as const;
