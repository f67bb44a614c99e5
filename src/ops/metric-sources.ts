import type { Deliveries, ProblemFigure } from './istio-figures.ts';

/**
 * Where the values come from. All are read at each scrape; counters are totals since the start. Absent parts have no
 * metrics: a directory has no API server.
 */
export interface MetricSources {
  readonly version: string;
  readonly ready: () => boolean;
  readonly ads: () => AdsFigures;
  /** One entry per connected proxy and type of which it rejects the current version of a resource. */
  readonly rejected: () => Iterable<{ readonly shortName: string }>;
  /** Proxies that were not admitted, by the budget that was full. */
  readonly notAdmitted: () => Readonly<Record<string, number>>;
  /** Callers on the secure port that did not prove who they are, or are not who they say, by reason. */
  readonly unauthenticated?: () => Iterable<readonly [string, number]>;
  /** When the certificates expire that the authority signs with, or undefined if there is none yet. */
  readonly authority?: () => { readonly root: Date; readonly chain: Date } | undefined;
  readonly suppressedLines: () => number;
  /** Errors that nothing handled. */
  readonly unexpectedErrors: () => number;
  readonly commits: () => { readonly commits: number; readonly writes: number; readonly pending: number };
  /** Graph entries that keep an old value because their transform threw. */
  readonly graphFailures: () => number;
  readonly services: () => number;
  /** Endpoints that are served although a list of the API server no longer had them. */
  readonly heldEndpoints: () => number;
  /** By kind. */
  readonly objects: () => Readonly<Record<string, number>>;
  readonly problems: () => Iterable<ProblemFigure>;
  /** Changes delivered by the source, by kind. */
  readonly deliveries: () => Readonly<Record<string, Deliveries>>;
  /** Hosts without any endpoint: those whose endpoints are sent, and those that proxies resolve. */
  readonly withoutEndpoints: () => { readonly sent: number; readonly resolved: number };
  /** Listeners for which TCP services compete. */
  readonly listenerConflicts: () => number;
  readonly apiServer?: () => ApiServerFigures;
  readonly status?: () => {
    readonly writes: number;
    readonly conflicts: number;
    readonly failures: number;
    readonly pending: number;
  };
  readonly leader?: () => boolean;
  readonly otherClusters?: {
    /** `syncStatus`: in the words of Istio. */
    readonly reports: () => readonly { readonly id: string; readonly syncStatus: string; readonly phase: string }[];
    readonly syncTimeouts: () => number;
    /** Secrets or files that name clusters, by what happened to them. */
    readonly events: () => Readonly<Record<string, number>>;
  };
  /** What is told to the other clusters of a ClusterMesh. */
  readonly clusterMeshExport?: () => {
    /** `standby`: another replica tells them. */
    readonly phase: string;
    readonly endpoint?: string;
    readonly keys: number;
    readonly pending: number;
    readonly refusedInAll: number;
  };
  readonly files?: () => Iterable<{ readonly severity: string }>;
  readonly webhooks?: () => WebhookFigures;
  /** By configuration: whether the API server has been told the roots of this control plane. */
  readonly webhookConfigurations?: () => Iterable<readonly [string, boolean | undefined]>;
}

export interface WebhookFigures {
  /** Calls without a verdict, by reason. */
  readonly unanswered: Iterable<readonly [string, number]>;
  readonly validations: Iterable<{
    readonly group: string;
    readonly resource: string;
    readonly passed: number;
    readonly failed: number;
  }>;
  /** Admissions of Pods by how they ended. Absent without injection, like the next. */
  readonly injections?: { readonly injected: number; readonly untouched: number; readonly refused: number };
  /** Of the newest templates, which are not in use if there are any. */
  readonly templateProblems?: number;
}

export interface AdsFigures {
  readonly streams: number;
  readonly pendingStreams: number;
  readonly waitingForWorld: number;
  readonly waitingForPlace: number;
  readonly waitingForRoom: number;
  readonly waitingToBegin: number;
  readonly waitingForTurn: number;
  readonly resources: number;
  /** Bugs that ended a stream. */
  readonly failures: number;
  /** Streams on the slow path. */
  readonly indirect: number;
  /** By the type's short name. */
  readonly pushes: Readonly<Record<string, number>>;
  readonly bytes: Readonly<Record<string, number>>;
  readonly rejections: Readonly<Record<string, number>>;
  /** Requests that answer a response that is no longer the newest. */
  readonly expired: Readonly<Record<string, number>>;
  /** Waits for an acknowledgement that timed out. */
  readonly timeouts: number;
  /** Number of times that a response with clusters was unanswered for long. */
  readonly overdue: number;
  /** Streams and connections refused or ended because of a limit, by limit. */
  readonly limits: Readonly<Record<string, number>>;
  /** Streams that the server ended, by gRPC status. */
  readonly ended: Readonly<Record<string, number>>;
}

export interface ApiServerFigures {
  readonly relists: number;
  readonly malformedObjects: number;
  readonly stalenessSeconds: number;
  readonly kinds: Readonly<
    Record<
      string,
      {
        readonly synced: boolean;
        readonly installed: boolean;
        readonly doubted: number;
        readonly events: number;
        readonly errors: number;
      }
    >
  >;
}
