/**
 * Why streams and connections that broke no rule of the protocol are refused or ended: the label `reason` of
 * the metric that counts them. docs/user-guide.md has the table of the limits.
 */
export const limits = [
  /** As many streams as this replica takes. */
  'streams',
  /** As many streams of one address. */
  'streams_of_address',
  /** As many connections, in all or of one address. */
  'connections',
  /** The system did not hand over a connection, for example for want of file descriptors. */
  'accept',
  /** The stream or its connection has reached its maximum age. */
  'age',
  /** The first request did not come. */
  'first_request_time',
  /** The proxy was assigned no configuration in time. */
  'world_time',
  /** A node with too long an id, too many extensions, and so on. */
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
  /** Client was told the stream ended but keeps it open. */
  'end_time',
] as const;

export type Limit = (typeof limits)[number];

/** Of a server; users may change them. */
export interface AdsLimits {
  /** Streams at one time, and twice as many connections. One address has half of them at most. */
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
