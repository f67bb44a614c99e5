import { bool, bytes, choice, int64, key, many, message, one, text, uint64 } from '../codec.ts';
import { deleteRange, put, range, responseHeader } from '../messages.ts';

/** Procedures of etcd's v3 API that only tests call. */

const header = one(1, responseHeader);

/** What a {@link compare} looks at. */
export const VERSION = 0;
export const LEASE = 4;
/** How it compares. */
export const EQUAL = 0;

const compare = message({
  result: choice(1),
  target: choice(2),
  key: key(3),
  version: int64(4),
  value: bytes(7),
  lease: int64(8),
});
/** One of these. */
const requestOp = message({
  range: one(1, range.request),
  put: one(2, put.request),
  deleteRange: one(3, deleteRange.request),
});
const responseOp = message({
  range: one(1, range.response),
  put: one(2, put.response),
  deleteRange: one(3, deleteRange.response),
});
/** `success` is done if all of `compare` holds, else `failure`. */
const txnRequest = message({ compare: many(1, compare), success: many(2, requestOp), failure: many(3, requestOp) });
const txnResponse = message({ header, succeeded: bool(2), responses: many(3, responseOp) });

export const txn = { path: '/etcdserverpb.KV/Txn', request: txnRequest, response: txnResponse };

const leaseRevokeRequest = message({ id: int64(1) });
const leaseRevokeResponse = message({ header });
export const leaseRevoke = {
  path: '/etcdserverpb.Lease/LeaseRevoke',
  request: leaseRevokeRequest,
  response: leaseRevokeResponse,
};

const statusRequest = message({});
const statusResponse = message({ header, version: text(2), dbSize: int64(3), leader: uint64(4) });

export const status = {
  path: '/etcdserverpb.Maintenance/Status',
  request: statusRequest,
  response: statusResponse,
};
