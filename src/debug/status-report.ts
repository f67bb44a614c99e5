/** What one replica knows of who has what. Times: RFC 3339, by the clock of that replica. */
export interface StatusReport {
  /** Its name, and the version that it runs. */
  readonly replica: string;
  readonly version: string;
  /** When this was said. */
  readonly at: string;
  /** Absent: it does not serve proxies yet. */
  readonly servingSince?: string;
  /** What not every proxy that it concerns has acknowledged, also if it is deleted. */
  readonly objects: readonly ObjectReport[];
  /** Deleted objects of which it is not known any more whether proxies still have something. Absent: there are none. */
  readonly unfollowed?: number;
  readonly proxies: readonly ProxyReport[];
  /** Endpoints that are served although their source no longer has them. */
  readonly held: readonly HeldReport[];
}

export interface HeldReport {
  /** `namespace/name` */
  readonly service: string;
  readonly address: string;
  /** `namespace/name` */
  readonly pod: string;
  /** RFC 3339. */
  readonly since: string;
  readonly until: string;
}

export interface ObjectReport {
  /** `kind/namespace/name` */
  readonly object: string;
  /** The newest; of a deleted object, the last. */
  readonly generation: number;
  /** Proxies still have something of it. */
  readonly isDeleted: boolean;
  /** When this generation was published, or the deletion. */
  readonly since: string;
  readonly state: 'waiting' | 'rejected';
  /** The generation in force, if it is not this one. */
  readonly inForce?: number | 'nothing';
  /** Some of the proxies that have not acknowledged it; those that reject it are not among them. */
  readonly waiting: readonly WaitingReport[];
  readonly waitingCount: number;
  /**
   * Of some of the proxies that reject it, the first thing that each rejects. Once another generation is in force for
   * that, these are the proxies that did, connected or not.
   */
  readonly rejections: readonly RejectionReport[];
  readonly rejectingCount: number;
}

export interface WaitingReport {
  /** `pod.namespace`, or the id of the node. */
  readonly proxy: string;
  readonly stream: string;
  /** Since then it could have acknowledged it: it was published, or the proxy connected. */
  readonly since: string;
}

export interface RejectionReport {
  readonly proxy: string;
  readonly build: string;
  readonly typeUrl: string;
  readonly name: string;
  /** The proxy's own words. */
  readonly message: string;
}

export interface ProxyReport {
  /** `pod.namespace`, or the id of the node. */
  readonly proxy: string;
  readonly node: string;
  readonly stream: string;
  /** For example `envoy 1.40.0`; may be empty. */
  readonly build: string;
  readonly connectedSince: string;
  /** Everything that it is owed was sent and answered. */
  readonly synced: boolean;
  /** Since when at least, if it is known: it owes an answer, or an object waits for it. */
  readonly behindSince?: string;
  /** By short name: cds, eds, lds, rds. */
  readonly types: Readonly<Record<string, TypeReport>>;
  /** Some of the objects that wait for it or that it rejects. */
  readonly waitedForBy: readonly string[];
  readonly waitedForByCount: number;
}

export interface TypeReport {
  readonly synced: boolean;
  /** How many names it is owed and has not been sent. */
  readonly owed: number;
  /** When the oldest response was sent that it has not answered. */
  readonly unansweredSince?: string;
  /** Some of the names whose present version it rejects. */
  readonly rejected: readonly string[];
  readonly rejectedCount: number;
  /** What it said last, if it rejects something. */
  readonly error?: string;
  /** Some of the names in a response that has been unanswered for long. */
  readonly overdue: readonly string[];
}
