import { ApiError } from '../client/api-error.ts';

/** A sink that throws is a bug here, not a network error; objects that it did not take are delivered again. */
export function deliver(tell: () => void): void {
  try {
    tell();
  } catch (cause) {
    const message = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
    throw new ApiError(message, { code: 0, reason: 'SinkFailed', retryable: true, cause });
  }
}
