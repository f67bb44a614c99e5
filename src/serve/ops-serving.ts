import type { Config } from '../config/config.ts';
import { triggerOf, withoutEndpoints } from '../debug/figures.ts';
import type { Engine } from '../engine/engine.ts';
import { heldEndpoints } from '../engine/held-endpoints.ts';
import type { ObjectSource } from './object-source.ts';
import type { DebugSources } from '../ops/debug/pages.ts';
import type { LogBudget } from '../ops/log-budget.ts';
import type { LevelledLogger } from '../ops/logger.ts';
import { createMetrics } from '../ops/metrics.ts';
import { type OpsServers, serveOps } from '../ops/servers.ts';
import type { SecureServing } from './secure-serving.ts';
import { version } from '../base/version.ts';
import type { WebhookServing } from './webhook-serving.ts';

export interface OpsServingOptions {
  readonly config: Config;
  readonly engine: Engine;
  readonly source: ObjectSource;
  /** Absent without an authority. */
  readonly secure: SecureServing | undefined;
  /** Absent without a cluster, or if nobody wants them. */
  readonly webhooks: WebhookServing | undefined;
  readonly debug: DebugSources;
  /** How many errors nothing handled. */
  readonly unexpectedErrors: () => number;
  /** How many lines of the log were dropped. */
  readonly suppressedLines: () => number;
  readonly logger: LevelledLogger;
  readonly log: LogBudget;
  readonly signal: AbortSignal;
}

/** Health, metrics and debug pages. Rejects with a ListenError if it cannot listen on an address. */
export function startOps(options: OpsServingOptions): Promise<OpsServers> {
  const { config, engine, source, secure, webhooks, debug, logger, log, signal } = options;
  const { mesh, committer, ads } = engine;
  const waitingFor = (): readonly string[] => {
    if (engine.draining()) return ['shutdown'];
    const first = engine.ready() ? [] : [...source.waitingFor(), 'the first commit'];
    return [...first, ...(secure?.waitingFor() ?? [])];
  };
  const metrics = createMetrics({
    version,
    ready: () => waitingFor().length === 0,
    ads: () => ads.counts(),
    rejected: () => ads.streams().flatMap(({ types }) => types.filter(({ rejected }) => rejected.length > 0)),
    notAdmitted: () => engine.admission.refusals,
    ...(secure && {
      unauthenticated: () => [...secure.refusals(), ['identity', engine.admission.denied] as const],
      authority: secure.expiry,
    }),
    suppressedLines: options.suppressedLines,
    unexpectedErrors: options.unexpectedErrors,
    commits: () => committer.stats,
    graphFailures: () => mesh.graph.failures.size,
    services: () => mesh.services.size,
    heldEndpoints: () => heldEndpoints(mesh).length,
    objects: () => Object.fromEntries(Object.entries(mesh.inputs.objects).map(([kind, input]) => [kind, input.size])),
    problems: debug.problems,
    deliveries: () => engine.writer.deliveries,
    withoutEndpoints: () => withoutEndpoints(mesh),
    listenerConflicts: () => mesh.problems.listenerConflicts.size,
    ...(source.figures && { apiServer: source.figures }),
    ...(source.status && { status: source.status }),
    ...(source.leader && { leader: source.leader }),
    otherClusters: source.otherClusters,
    ...(source.clusterMeshExport && { clusterMeshExport: source.clusterMeshExport }),
    ...(source.files && { files: source.files }),
    ...(webhooks && { webhooks: webhooks.figures }),
    ...(source.webhookConfigurations && { webhookConfigurations: source.webhookConfigurations }),
  });
  webhooks?.onInjected((ms) => metrics.admitted(ms / 1000));
  engine.onConverged((ms) => metrics.converged(ms / 1000));
  ads.measure({ sent: metrics.sent, taken: (ms) => metrics.taken(ms / 1000) });
  mesh.graph.observe(
    ({ writes }) => metrics.triggered(new Set(writes.map(({ input }) => triggerOf(input.name)))),
    'metrics',
  );
  committer.onCommit(({ delay, work }) => metrics.committed(delay / 1000, work / 1000));
  return serveOps({
    healthAddress: config.healthAddress,
    monitoringAddress: config.monitoringAddress,
    waitingFor,
    debug,
    metrics: metrics.route,
    version,
    logger,
    log,
    signal,
  });
}
