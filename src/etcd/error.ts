import { type ServiceError, status } from '@grpc/grpc-js';

export type EtcdReason =
  /** The description of how to reach it makes no sense. */
  | 'Misconfigured'
  /** A file with a key or certificate cannot be used; it may come later. */
  | 'NoCredentials'
  /** There is no connection, or it broke, or etcd has no leader. */
  | 'Unavailable'
  /** No answer in time. */
  | 'Timeout'
  /** By etcd: the user that the client certificate names may not do this. */
  | 'PermissionDenied'
  /** There is no such lease. */
  | 'NotFound'
  /** The revision that was asked for is no longer kept. */
  | 'Compacted'
  /** A message is longer than any that is read. */
  | 'TooLarge'
  /** An answer is not what the protocol allows. */
  | 'Malformed'
  /** The answer is of another etcd than those before. */
  | 'OtherCluster'
  /** The answer is older than one before: the store was emptied, or restored. */
  | 'WentBack'
  /** Anything else that etcd says. */
  | 'Refused'
  /** A callback of ours threw: a bug. */
  | 'InternalError'
  /** By this side. */
  | 'Closed';

/** Why a request to etcd failed, or a connection ended. The message is one line for people. */
export class EtcdError extends Error {
  override readonly name = 'EtcdError';
  readonly reason: EtcdReason;

  constructor(reason: EtcdReason, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.reason = reason;
  }
}

const reasons: Readonly<Partial<Record<status, EtcdReason>>> = {
  [status.UNAVAILABLE]: 'Unavailable',
  [status.DEADLINE_EXCEEDED]: 'Timeout',
  [status.PERMISSION_DENIED]: 'PermissionDenied',
  [status.UNAUTHENTICATED]: 'PermissionDenied',
  [status.NOT_FOUND]: 'NotFound',
  [status.OUT_OF_RANGE]: 'Compacted',
};

export function errorOfCall(error: ServiceError): EtcdError {
  const { code, details } = error;
  // gRPC says it with the same code as etcd says that it is busy or full.
  const isTooLarge = code === status.RESOURCE_EXHAUSTED && /larger than/.test(details);
  return new EtcdError(isTooLarge ? 'TooLarge' : (reasons[code] ?? 'Refused'), printable(details), error);
}

/** Of anything that was thrown. */
export function errorOf(cause: unknown): EtcdError {
  if (cause instanceof EtcdError) return cause;
  return new EtcdError('InternalError', printable(cause instanceof Error ? cause.message : String(cause)), cause);
}

/** A text from a server, for a line of a log or a table, without what gRPC's Go library puts before some of them. */
export function printable(words: string): string {
  const bare = words.replace(/^rpc error: code = \w+ desc = /, '');
  const line = bare.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ').trim();
  return line.length > 300 ? `${line.slice(0, 300)}...` : line || 'no reason given';
}
