import { bool, bytes, choice, type Decoded, int64, key, many, message, one, text, uint64 } from './codec.ts';
import type { Message } from './codec.ts';

/**
 * The part of etcd's v3 API that Fairlead uses. Source: etcd's published API, packages `etcdserverpb` and `mvccpb`; field
 * names and meanings are theirs.
 */

export const responseHeader = message({ clusterId: uint64(1), memberId: uint64(2), revision: int64(3) });
export type ResponseHeader = Decoded<typeof responseHeader>;

const header = one(1, responseHeader);

export const keyValue = message({
  key: key(1),
  /** The revision that wrote it last. */
  modRevision: int64(3),
  /** How often it was written since it was created; 0: it does not exist. */
  version: int64(4),
  value: bytes(5),
  /** 0: none. */
  lease: int64(6),
});
export type KeyValue = Decoded<typeof keyValue>;

const rangeRequest = message({
  key: key(1),
  /** Exclusive; absent: `key` alone. */
  rangeEnd: key(2),
  limit: int64(3),
  /** Of the store; absent: the newest. */
  revision: int64(4),
  /** Answered by the member alone. */
  serializable: bool(7),
  keysOnly: bool(8),
});
const rangeResponse = message({ header, kvs: many(2, keyValue), more: bool(3), count: int64(4) });
export type RangeResponse = Decoded<typeof rangeResponse>;

const putRequest = message({ key: key(1), value: bytes(2), lease: int64(3) });
const putResponse = message({ header });

const deleteRangeRequest = message({ key: key(1), rangeEnd: key(2) });
const deleteRangeResponse = message({ header, deleted: int64(2) });

const watchCreateRequest = message({
  key: key(1),
  rangeEnd: key(2),
  startRevision: int64(3),
  /** Long responses may be divided. */
  fragment: bool(8),
});
const watchRequest = message({ create: one(1, watchCreateRequest) });

/** The type of an {@link Event}; else it is a put. */
export const DELETE = 1;
const event = message({ type: choice(1), kv: one(2, keyValue) });
export type Event = Decoded<typeof event>;

export const watchResponse = message({
  header,
  created: bool(3),
  canceled: bool(4),
  /** If not 0, the history that was asked for is gone: this is the oldest revision that can be. */
  compactRevision: int64(5),
  cancelReason: text(6),
  /** The next response belongs to it. */
  fragment: bool(7),
  events: many(11, event),
});
export type WatchResponse = Decoded<typeof watchResponse>;

const leaseGrantRequest = message({
  /** Seconds. */
  ttl: int64(1),
  id: int64(2),
});
const leaseGrantResponse = message({ header, id: int64(2), ttl: int64(3), error: text(4) });

const leaseKeepAliveRequest = message({ id: int64(1) });
/** `ttl` 0: there is no such lease any more. */
const leaseKeepAliveResponse = message({ header, id: int64(2), ttl: int64(3) });

/** What every response has. */
export interface WithHeader {
  readonly header: ResponseHeader | undefined;
}

/** A procedure of etcd. */
export interface Procedure<Request, Response extends WithHeader> {
  readonly path: string;
  readonly request: Message<unknown, Request>;
  readonly response: Message<Response, never>;
  /** Fails if etcd has no leader, instead of waiting in vain. */
  readonly requiresLeader?: true;
}

export const range = { path: '/etcdserverpb.KV/Range', request: rangeRequest, response: rangeResponse };
export const put = { path: '/etcdserverpb.KV/Put', request: putRequest, response: putResponse };
export const deleteRange = {
  path: '/etcdserverpb.KV/DeleteRange',
  request: deleteRangeRequest,
  response: deleteRangeResponse,
};
export const watchKeys = {
  path: '/etcdserverpb.Watch/Watch',
  request: watchRequest,
  response: watchResponse,
  requiresLeader: true,
} as const;
export const leaseGrant = {
  path: '/etcdserverpb.Lease/LeaseGrant',
  request: leaseGrantRequest,
  response: leaseGrantResponse,
};
export const leaseKeepAlive = {
  path: '/etcdserverpb.Lease/LeaseKeepAlive',
  request: leaseKeepAliveRequest,
  response: leaseKeepAliveResponse,
};
