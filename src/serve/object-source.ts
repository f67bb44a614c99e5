/**
 * Where objects come from: a directory (`directory-source.ts`), or everything that talks to an API server
 * (`cluster-source.ts`; `cluster-roots.ts`: where roots are written). The rest of the folder: what all replicas know, in
 * statuses (`cluster-statuses.ts`) and as generations that the cluster keeps (`cluster-generations.ts`); and the servers of
 * port 15012 (`secure-serving.ts`), of port 15017 (`webhook-serving.ts`) and of operators (`ops-serving.ts`).
 * For port 15012, `authority-keeper.ts` keeps the authority up to date and takes the steps of a rotation,
 * `authority-source.ts` says where its certificates come from, and `rotation-store.ts` where the state of a rotation is;
 * what namespaces publish before there is one: `kube/writing/published-roots.ts` (decision 0124).
 */
import type { Problem } from '../api/problem.ts';
import type { Validate } from '../api/validate.ts';
import type { Clock } from '../base/clock.ts';
import { version } from '../base/version.ts';
import type { Config, SourceConfig } from '../config/config.ts';
import type { ExportReport } from '../debug/cluster-report.ts';
import type { Engine } from '../engine/engine.ts';
import { KubeClient } from '../kube/client/client.ts';
import { PooledKubeConfig } from '../kube/client/credentials.ts';
import { readKubeConfig } from '../kube/client/kube-config.ts';
import type { Logger } from '../ops/logger.ts';
import type { ApiServerFigures, MetricSources } from '../ops/metric-sources.ts';
import type { OtherClusters } from '../other-clusters/other-clusters.ts';

/** Where objects come from, and its state. */
export interface ObjectSource {
  /** Resolves when everything there is has been delivered. */
  readonly ready: Promise<void>;
  /** What {@link ready} is waiting for, for people; empty once it has resolved. */
  readonly waitingFor: () => readonly string[];
  /** Resolves when nothing of it is running any more. */
  end(): Promise<void>;
  readonly figures?: () => ApiServerFigures;
  readonly status?: NonNullable<MetricSources['status']>;
  readonly leader?: () => boolean;
  readonly otherClusters: Pick<
    OtherClusters,
    'reports' | 'identitiesOf' | 'syncTimeouts' | 'events' | 'tokens' | 'readNamespace'
  >;
  readonly clusterMeshExport?: () => ExportReport;
  readonly locate?: (problem: Problem) => string | undefined;
  readonly files?: NonNullable<MetricSources['files']>;
  readonly webhookConfigurations?: NonNullable<MetricSources['webhookConfigurations']>;
}

/** The authorities that peers in the mesh trust. */
export interface Roots {
  /** PEM; empty until there is an authority. */
  readonly pem: string;
  /** What people should know about them, for an annotation. */
  readonly rotation: string;
  /** Called when either has changed. */
  onChange(changed: () => void): void;
  /** `count`: in how many namespaces these roots are missing; undefined if another replica writes them. */
  countMissingBy(count: (roots: string) => number | undefined): void;
}

/** What tests replace. */
export interface SourceSurroundings {
  /** For everything that involves the API server. */
  readonly clock?: Clock;
  /** Name of this replica among those that share a Lease. */
  readonly identity?: string;
  /** Of the Pod with this name. */
  readonly podUid?: string;
  /** How large the heap of this process may become. */
  readonly heapBytes?: number;
}

/** A source that can be reached. */
export type OpenSource =
  | { readonly kind: 'directory'; readonly paths: readonly string[] }
  | { readonly kind: 'kubernetes'; readonly client: KubeClient };

/** Throws if a kubeconfig is not available. */
export function openSource(source: SourceConfig): OpenSource {
  if (source.kind === 'directory') return source;
  const { kubeconfig, context } = source;
  const config = new PooledKubeConfig(() => readKubeConfig({ path: kubeconfig, context }));
  return { kind: 'kubernetes', client: new KubeClient({ config, userAgent: `fairlead/${version}` }) };
}

export interface ObjectSourceOptions {
  readonly config: Config;
  readonly opened: OpenSource;
  readonly engine: Engine;
  readonly validate: Validate;
  readonly log: Logger;
  readonly surroundings: SourceSurroundings;
  /** Written into the namespaces of a cluster; absent without an authority. */
  readonly roots: Roots | undefined;
  /** Something has ended that goes on for as long as the program does. */
  readonly failed: (error: unknown) => void;
  readonly signal: AbortSignal;
}
