import { hostname } from 'node:os';
import type { Writable } from 'node:stream';
import { getHeapStatistics } from 'node:v8';
import { type AdsTimes, startEngine, type Engine } from './engine.ts';
import { kinds } from './api/kinds.ts';
import type { Problem } from './api/problem.ts';
import { createValidator } from './api/validate.ts';
import type { Program } from './cli/program.ts';
import type { Config } from './config.ts';
import { watchDirectory } from './directory/watch.ts';
import { createProtos } from './envoy/proto.ts';
import { KubeClient } from './kube/client.ts';
import { type Clock, systemClock } from './kube/clock.ts';
import { PooledKubeConfig } from './kube/credentials.ts';
import { readKubeConfig } from './kube/kube-config.ts';
import { LeaderElector } from './kube/lease.ts';
import { EventRecorder } from './kube/event-recorder.ts';
import { FairleadOperator } from './kube/operator.ts';
import { Outages } from './kube/outages.ts';
import { StatusWriter } from './kube/status-writer.ts';
import { checkFiles, translateFiles } from './offline.ts';
import { LogBudget } from './ops/log-budget.ts';
import type { ApiServerFigures } from './ops/metrics.ts';
import { createLogger, type Logger } from './ops/logger.ts';
import { createMetrics, type MetricSources } from './ops/metrics.ts';
import { type OpsServers, serveOps } from './ops/servers.ts';
import { logProblems, reportLog } from './problem-log.ts';
import { version } from './version.ts';

/** What the commands do. The only file that constructs things. */
export function createProgram(): Program {
  return { serve, check: checkFiles, translate: translateFiles };
}

/** Where objects come from, and its state. */
interface Source {
  /** Fulfilled when all that there is was delivered. */
  readonly ready: Promise<void>;
  /** What {@link ready} waits for, for people; empty when it is fulfilled. */
  readonly waitingFor: () => readonly string[];
  /** Fulfilled when nothing of it runs any more. */
  end(): Promise<void>;
  readonly figures?: () => ApiServerFigures;
  readonly status?: NonNullable<MetricSources['status']>;
  readonly leader?: () => boolean;
  readonly locate?: (problem: Problem) => string | undefined;
  readonly files?: NonNullable<MetricSources['files']>;
}

/** The program's surroundings, which tests replace. */
interface Surroundings {
  /** For all that has to do with the API server. */
  readonly clock?: Clock;
  /** Where the log goes. */
  readonly log?: Writable;
  /** Name of this replica among those that share a Lease. */
  readonly identity?: string;
  readonly adsTimes?: AdsTimes;
}

/** A program that serves. */
export interface Serving {
  readonly engine: Engine;
  readonly ports: { readonly grpc: number; readonly health: number; readonly monitoring: number };
  /** Fulfilled when the signal has fired and everything is closed. */
  readonly ended: Promise<void>;
}

async function serve(config: Config, signal: AbortSignal): Promise<void> {
  try {
    const { ended } = await startServing(config, signal);
    await ended;
  } catch (error) {
    // To be stopped before the start is complete is not a failure.
    if (!signal.aborted) throw error;
  }
}

/** Rejects when an address, a directory or a kubeconfig cannot be had. */
export async function startServing(
  config: Config,
  signal: AbortSignal,
  surroundings: Surroundings = {},
): Promise<Serving> {
  const log = new LogBudget(createLogger({ ...config.log, ...(surroundings.log && { stream: surroundings.log }) }), {
    now: () => performance.now(),
  });
  const end = new AbortController();
  // During the start there are no proxies to drain.
  const endAtOnce = (): void => end.abort();
  signal.addEventListener('abort', endAtOnce);
  if (signal.aborted) endAtOnce();
  try {
    const engine = await startEngine({
      mesh: { ...config.mesh, source: config.mesh.clusterId },
      ...(config.revision === undefined ? {} : { revision: config.revision }),
      protos: createProtos(),
      grpc: config.grpcAddress,
      batch: config.batch,
      limits: { maxStreams: config.streams.most, maxAgeMs: config.streams.maxAge },
      log,
      refused: ({ stream: _, ...refusal }) => log.warn('Proxy rejected resources', refusal),
      notAdmitted: ({ kind: _, ...refusal }) => log.warn('Proxy refused: limit on different proxies reached', refusal),
      heapBytes: getHeapStatistics().heap_size_limit,
      ...(surroundings.adsTimes && { adsTimes: surroundings.adsTimes }),
      signal: end.signal,
    });
    const source = await startSource(config, engine, log, surroundings, end.signal);
    logProblems(engine.mesh, log, { about: hasNoStatus(config), locate: source.locate });
    const { health, monitoring } = await startOps(config, engine, source, log, end.signal).catch(
      async (error: unknown) => {
        end.abort();
        await source.end();
        throw error;
      },
    );
    const ports = { grpc: engine.ads.port, health: health.port, monitoring: monitoring.port };
    log.info('Serving proxies as soon as the source is read', ports);
    signal.removeEventListener('abort', endAtOnce);
    const ended = run(engine, source, log, signal)
      .then(() => engine.drain(config.streams.shutdown))
      .finally(() => end.abort())
      .finally(() => Promise.all([source.end(), engine.ads.close()]));
    return { engine, ports, ended };
  } catch (error) {
    end.abort();
    throw error;
  }
}

/** Files have none, and neither have the kinds of Kubernetes itself. */
function hasNoStatus({ source, statusWrites }: Config): (problem: Problem) => boolean {
  const writes = source.kind === 'kubernetes' && statusWrites;
  return ({ object }) => !writes || kinds.find(({ kind }) => kind === object.kind)?.custom !== true;
}

/** Serves until the signal fires. */
async function run(engine: Engine, source: Source, log: Logger, signal: AbortSignal): Promise<void> {
  await Promise.race([source.ready, aborted(signal)]);
  if (!signal.aborted) {
    await Promise.race([engine.open(), aborted(signal)]);
  }
  if (!signal.aborted) {
    log.info('Ready', { services: engine.mesh.services.size });
  }
  await aborted(signal);
  log.info('Draining proxies before exit', { streams: engine.ads.counts().streams });
}

async function startSource(
  config: Config,
  engine: Engine,
  log: Logger,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<Source> {
  return config.source.kind === 'directory'
    ? directorySource(config.source.paths, engine, log, signal)
    : clusterSource(config, config.source, engine, log, surroundings, signal);
}

async function directorySource(
  paths: readonly string[],
  engine: Engine,
  log: Logger,
  signal: AbortSignal,
): Promise<Source> {
  const report = reportLog(log);
  const directory = await watchDirectory({
    paths,
    validate: createValidator(),
    sink: engine.objects,
    onReports: (_, appeared) => report(appeared),
    signal,
  });
  return {
    ready: Promise.resolve(),
    waitingFor: () => [],
    end: () => directory.ended,
    files: () => directory.reports(),
    locate: ({ object, field }) => {
      const place = directory.locate(object, field);
      return place && `${place.file}:${place.line}`;
    },
  };
}

function clusterSource(
  config: Config,
  access: { readonly kubeconfig?: string; readonly context?: string },
  engine: Engine,
  log: Logger,
  { clock = systemClock, identity = podOf(process.env) ?? `${hostname()}-${process.pid}` }: Surroundings,
  signal: AbortSignal,
): Source {
  const kubeConfig = new PooledKubeConfig(() => readKubeConfig({ path: access.kubeconfig, context: access.context }));
  const client = new KubeClient({ config: kubeConfig, userAgent: `fairlead/${version}` });
  const outages = new Outages({ log, clock, signal });
  const shared = { api: client, clock, random: Math.random, log, outages };
  const operator = new FairleadOperator({
    client,
    sink: engine.objects,
    log,
    signal,
    clock,
    outages,
    hold: () => engine.committer.hold(),
    rootNamespace: config.mesh.rootNamespace,
    observed: (kind, namespace, name) => writer.observed(kind, namespace, name),
  });
  const writer = new StatusWriter({
    ...shared,
    latest: (kind, namespace, name) => operator.latest(kind, namespace, name),
    types: ['Accepted', 'ResolvedRefs'],
    onWritten: (status, before) => events.written(status, before),
  });
  const events = new EventRecorder({ ...shared, identity, signal });
  const electors = [
    { revision: '', name: config.lease.name },
    ...(config.revision === undefined
      ? []
      : [{ revision: config.revision, name: `${config.lease.name}-${config.revision}` }]),
  ].map(
    ({ revision, name }) =>
      new LeaderElector({
        ...shared,
        namespace: config.lease.namespace,
        name,
        identity,
        onElected: (term) => writer.lead(term, revision),
      }),
  );
  engine.mesh.onConditions((key, verdict) => {
    if (verdict === undefined) writer.forget(key);
    else writer.set(key, verdict);
  });
  operator.start().catch((err: unknown) => log.error('The operator ended', { err }));
  const electing = config.statusWrites ? electors.map((elector) => elector.run({ signal })) : [];
  return {
    ready: operator.whenReady(),
    waitingFor: () => operator.waitingFor(),
    async end() {
      await Promise.all(electing);
      await writer.idle();
      await events.idle();
      await operator.shutdown();
    },
    figures: () => operator.stats(),
    status: () => writer.stats(),
    leader: () => electors.some((elector) => elector.isLeader()),
  };
}

/** `namespace/name` of the Pod that this runs in, as the chart says it. */
function podOf({ POD_NAMESPACE: namespace, POD_NAME: name }: NodeJS.ProcessEnv): string | undefined {
  return namespace === undefined || name === undefined ? undefined : `${namespace}/${name}`;
}

function startOps(
  config: Config,
  engine: Engine,
  source: Source,
  log: LogBudget,
  signal: AbortSignal,
): Promise<OpsServers> {
  const { mesh, committer, ads } = engine;
  const problems = (): Problem[] => [...mesh.problems.byObject.entries()].flatMap(([, found]) => found);
  const metrics = createMetrics({
    version,
    ready: engine.ready,
    ads: () => ads.counts(),
    refused: () => ads.streams().flatMap(({ types }) => types.filter(({ refused }) => refused.length > 0)),
    notAdmitted: () => engine.admission.refusals,
    suppressedLines: () => log.suppressed,
    commits: () => committer.stats,
    graphFailures: () => mesh.graph.failures.size,
    services: () => mesh.services.size,
    objects: () => Object.fromEntries(Object.entries(mesh.inputs.objects).map(([kind, input]) => [kind, input.size])),
    problems,
    ...(source.figures && { apiServer: source.figures }),
    ...(source.status && { status: source.status }),
    ...(source.leader && { leader: source.leader }),
    ...(source.files && { files: source.files }),
  });
  engine.onConverged((ms) => metrics.converged(ms / 1000));
  committer.onCommit(({ delay, work }) => metrics.committed(delay / 1000, work / 1000));
  return serveOps({
    healthAddress: config.healthAddress,
    monitoringAddress: config.monitoringAddress,
    waitingFor: () => {
      if (engine.draining()) return ['shutdown'];
      return engine.ready() ? [] : [...source.waitingFor(), 'the first commit'];
    },
    debug: {
      proxies: () =>
        ads.streams().flatMap((stream) => {
          const proxy = mesh.inputs.proxies.get(stream.stream);
          return proxy === undefined ? [] : [{ ...stream, metadata: proxy.metadata, locality: proxy.locality }];
        }),
      objects: () =>
        Object.values(mesh.inputs.objects).flatMap((input) => [...input.entries()].map(([, object]) => object)),
      problems,
      ...(source.locate && { locate: source.locate }),
    },
    metrics: metrics.route,
    version,
    log,
    signal,
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
