/**
 * Why streams and connections that broke no rule of the protocol are refused or ended: the label `reason` of the metric
 * that counts them. The table of the limits: docs/guide/operations.md#what-clients-may-cost.
 */
export const limits = [
  /** This replica has its maximum number of streams. */
  'streams',
  /** One address has its maximum number of streams. */
  'streams_of_address',
  /** The maximum number of connections is reached, in total or for one address. */
  'connections',
  /** The system did not hand over a connection, for example because file descriptors ran out. */
  'accept',
  /** The stream or its connection has reached its maximum age. */
  'age',
  /** The first request did not come. */
  'first_request_time',
  /** The proxy was assigned no configuration in time. */
  'world_time',
  /** The node has too long an id, too many extensions, and so on. */
  'node_size',
  /** A message is too long. */
  'message_size',
  /** A message was not completed in time. */
  'message_time',
  /** No receive buffer became available in time. */
  'message_memory',
  /** A request asks for too much. */
  'request_size',
  /** The client stopped reading responses. */
  'write_time',
  /** The client was told that the stream had ended, but keeps it open. */
  'end_time',
] as const;

export type Limit = (typeof limits)[number];

/** Limits of a server; users may change them. */
export interface AdsLimits {
  /** Maximum number of streams; connections may be twice as many. One address may have at most half. */
  readonly maxStreams: number;
  /** Streams end at this age, a tenth more or less, in milliseconds: connections spread over replicas. */
  readonly maxAgeMs: number;
}

export const ADS_LIMITS: AdsLimits = { maxStreams: 10_000, maxAgeMs: 1_800_000 };

/** How often each limit was applied. */
export class LimitCounts {
  readonly #counts = Object.fromEntries(limits.map((limit) => [limit, 0])) as Record<Limit, number>;

  add(limit: Limit): void {
    this.#counts[limit]++;
  }

  all(): Readonly<Record<Limit, number>> {
    return { ...this.#counts };
  }
}
