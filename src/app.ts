import type { Writable } from 'node:stream';
import { getHeapStatistics } from 'node:v8';
import { type AdsTimes, startEngine, type Engine } from './engine/engine.ts';
import { heldEndpoints } from './engine/held-endpoints.ts';
import { kinds } from './api/kinds.ts';
import type { TenantOf } from './ads/tenant.ts';
import type { Problem } from './api/problem.ts';
import type { Program } from './cli/program.ts';
import type { Config } from './config/config.ts';
import { type Clock, systemClock } from './clock.ts';
import { createDebugging } from './debug/debugging.ts';
import { triggerOf, withoutEndpoints } from './debug/figures.ts';
import { type SecureServing, secureServing } from './secure-serving.ts';
import { releaseEndpoints } from './endpoint-release.ts';
import { publishedRotation } from './published-rotation.ts';
import type { Amend } from './envoy/encode/encoder.ts';
import { type Protos, createProtos } from './envoy/encode/proto.ts';
import {
  type ObjectSource,
  type OpenSource,
  type SourceSurroundings,
  openSource,
  startSource,
} from './object-source.ts';
import { GatewayHosts } from './gateway-hosts/host-addresses.ts';
import { lookUpHost } from './gateway-hosts/look-up.ts';
import { explainAccess } from './explain-access.ts';
import { checkFiles, translateFiles } from './offline.ts';
import { AllowedAddresses } from './jwks/addresses.ts';
import { fetchText } from './jwks/fetch-text.ts';
import { KeySets } from './jwks/key-sets.ts';
import { LogBudget } from './ops/log-budget.ts';
import { createLogger, type Logger } from './ops/logger.ts';
import { createMetrics } from './ops/metrics.ts';
import type { DebugSources } from './ops/debug/pages.ts';
import { type OpsServers, serveOps } from './ops/servers.ts';
import { logProblems } from './engine/problem-log.ts';
import { recordServer } from './record.ts';
import { replayFile } from './replay.ts';
import { replicaName } from './replica-name.ts';
import { clustersOfReplicas, identitiesOfReplicas, statusOfReplicas } from './replica-status.ts';
import { version } from './version.ts';
import { type WebhookServing, startWebhooks } from './webhook-serving.ts';

/** What the commands do. */
export function createProgram(): Program {
  return {
    serve,
    check: checkFiles,
    translate: translateFiles,
    explainAccess,
    identity: publishedRotation,
    status: statusOfReplicas,
    clusters: clustersOfReplicas,
    identities: identitiesOfReplicas,
    record: recordServer,
    replay: replayFile,
    release: releaseEndpoints,
  };
}

/** The program's surroundings, which tests replace. */
interface Surroundings extends SourceSurroundings {
  /** Where the log goes. */
  readonly log?: Writable;
  readonly adsTimes?: AdsTimes;
  /** Changes finished messages. */
  readonly amend?: Amend;
  readonly tenantOf?: TenantOf;
}

/** A program that is serving. */
export interface Serving {
  readonly engine: Engine;
  readonly ports: {
    /** Absent without a plaintext port. */
    readonly grpc?: number;
    /** Absent without an authority. */
    readonly secure?: number;
    /** Absent without a cluster, or if nobody wants them. */
    readonly webhooks?: number;
    readonly health: number;
    readonly monitoring: number;
  };
  /** Resolves when the signal has fired and everything is closed. */
  readonly ended: Promise<void>;
}

async function serve(config: Config, signal: AbortSignal): Promise<void> {
  try {
    const { ended } = await startServing(config, signal);
    await ended;
  } catch (error) {
    // Being stopped during the start is not a failure.
    if (!signal.aborted) throw error;
  }
}

/** Rejects if an address, a directory or a kubeconfig is not available. */
export async function startServing(
  config: Config,
  signal: AbortSignal,
  surroundings: Surroundings = {},
): Promise<Serving> {
  const log = new LogBudget(createLogger({ ...config.log, ...(surroundings.log && { stream: surroundings.log }) }), {
    now: () => performance.now(),
  });
  const end = new AbortController();
  // There are no proxies to drain during the start.
  const endAtOnce = (): void => end.abort();
  signal.addEventListener('abort', endAtOnce);
  if (signal.aborted) endAtOnce();
  try {
    const { clock = systemClock, identity = replicaName() } = surroundings;
    const opened = openSource(config.source);
    const secure = config.secure && secureServing(config, config.secure, opened, log, clock, identity, end.signal);
    const protos = createProtos();
    const debugging = createDebugging({ protos, mesh: config.mesh, identity, clock });
    const engine = await startEngine({
      mesh: { ...config.mesh, ...(config.clusterMesh?.exportFile !== undefined && { clusterMeshExport: true }) },
      namespace: identity.includes('/') ? identity.slice(0, identity.indexOf('/')) : undefined,
      ...(config.revision === undefined ? {} : { revision: config.revision }),
      protos,
      ...(config.grpcAddress && { plaintext: config.grpcAddress }),
      ...(secure && { secure: secure.port }),
      questions: debugging.questions,
      batch: config.batch,
      limits: { maxStreams: config.streams.most, maxAgeMs: config.streams.maxAge },
      log,
      refused: ({ stream: _, ...refusal }) => log.warn('Proxy rejected resources', refusal),
      notAdmitted: ({ kind: _, ...refusal }) => log.warn('Proxy refused: limit on different proxies reached', refusal),
      heapBytes: getHeapStatistics().heap_size_limit,
      clock,
      ...(surroundings.adsTimes && { adsTimes: surroundings.adsTimes }),
      ...(surroundings.amend && { amend: surroundings.amend }),
      canaries: config.canaries,
      ...(surroundings.tenantOf && { tenantOf: surroundings.tenantOf }),
      signal: end.signal,
    });
    const webhooks = await serveWebhooks(config, opened, engine, protos, secure, log, clock, end.signal);
    secure?.start(engine);
    fetchKeySets(engine, new AllowedAddresses(config.jwksAllowedNetworks), clock, end.signal);
    followGatewayHosts(engine, clock, end.signal);
    const source = await startSource(
      config,
      opened,
      engine,
      log,
      { ...surroundings, clock, identity },
      secure?.roots,
      end.signal,
    );
    logProblems(engine.mesh, log, { about: hasNoStatus(config), locate: source.locate });
    const { health, monitoring } = await startOps(
      config,
      engine,
      source,
      { secure, webhooks },
      debugging.start(engine, source),
      log,
      end.signal,
    ).catch(async (error: unknown) => {
      end.abort();
      await source.end();
      throw error;
    });
    const { port: grpc, securePort } = engine.ads;
    const ports = {
      ...(grpc !== undefined && { grpc }),
      ...(securePort !== undefined && { secure: securePort }),
      ...(webhooks !== undefined && { webhooks: webhooks.port }),
      health: health.port,
      monitoring: monitoring.port,
    };
    log.info('Serving proxies once the source is read', ports);
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

/** Where the API server asks, with the certificate of the secure port. */
async function serveWebhooks(
  config: Config,
  opened: OpenSource,
  engine: Engine,
  protos: Protos,
  secure: SecureServing | undefined,
  log: LogBudget,
  clock: Clock,
  signal: AbortSignal,
): Promise<WebhookServing | undefined> {
  const { webhooks } = config;
  if (webhooks === undefined || secure === undefined || opened.kind !== 'kubernetes') return undefined;
  const { client } = opened;
  const serving = await startWebhooks({ config, webhooks, client, engine, protos, log, clock, signal });
  secure.onCertificate((certificate) => serving.present(certificate));
  return serving;
}

/** Keeps the public keys that RequestAuthentications refer to in the graph. */
function fetchKeySets({ mesh, committer }: Engine, allowed: AllowedAddresses, clock: Clock, signal: AbortSignal): void {
  const keySets = new KeySets({
    fetchText: (url, options) => fetchText(url, { ...options, allowed }),
    write: (key, found) => committer.write(mesh.inputs.keySets.write(key, found)),
    clock,
    random: Math.random,
    signal,
  });
  mesh.onWantedKeySets((key, wanted) => {
    if (wanted === undefined) keySets.unwant(key);
    else keySets.want(key, wanted.source, wanted.namespace);
  });
}

/** Keeps what the names of gateways between networks resolve to in the graph. */
function followGatewayHosts({ mesh, committer }: Engine, clock: Clock, signal: AbortSignal): void {
  const hosts = new GatewayHosts({
    lookUp: lookUpHost,
    write: (host, found) => committer.write(mesh.inputs.gatewayAddresses.write(host, found)),
    clock,
    random: Math.random,
    signal,
  });
  mesh.onWantedGatewayHosts((host, isWanted) => {
    if (isWanted) hosts.want(host);
    else hosts.unwant(host);
  });
}

/** Files have no status, neither have Kubernetes' own kinds, and in other clusters none is written. */
function hasNoStatus({ source, statusWrites, mesh }: Config): (problem: Problem) => boolean {
  const writes = source.kind === 'kubernetes' && statusWrites;
  return ({ object }) =>
    !writes ||
    object.source !== mesh.clusterId ||
    kinds.find(({ group, kind }) => group === object.group && kind === object.kind)?.custom !== true;
}

/** Serves until the signal fires. */
async function run(engine: Engine, source: ObjectSource, log: Logger, signal: AbortSignal): Promise<void> {
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

function startOps(
  config: Config,
  engine: Engine,
  source: ObjectSource,
  { secure, webhooks }: { readonly secure: SecureServing | undefined; readonly webhooks: WebhookServing | undefined },
  debug: DebugSources,
  log: LogBudget,
  signal: AbortSignal,
): Promise<OpsServers> {
  const { mesh, committer, ads } = engine;
  const metrics = createMetrics({
    version,
    ready: engine.ready,
    ads: () => ads.counts(),
    refused: () => ads.streams().flatMap(({ types }) => types.filter(({ refused }) => refused.length > 0)),
    notAdmitted: () => engine.admission.refusals,
    ...(secure && {
      unauthenticated: () => [...secure.refusals(), ['identity', engine.admission.denied] as const],
      authority: secure.expiry,
    }),
    suppressedLines: () => log.suppressed,
    commits: () => committer.stats,
    graphFailures: () => mesh.graph.failures.size,
    services: () => mesh.services.size,
    heldEndpoints: () => heldEndpoints(mesh).length,
    objects: () => Object.fromEntries(Object.entries(mesh.inputs.objects).map(([kind, input]) => [kind, input.size])),
    problems: debug.problems,
    deliveries: () => engine.writer.deliveries,
    withoutEndpoints: () => withoutEndpoints(mesh),
    listenerConflicts: () => mesh.listenerConflicts.size,
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
    waitingFor: () => {
      if (engine.draining()) return ['shutdown'];
      const asked = webhooks?.waitingFor() ?? [];
      return engine.ready() ? asked : [...source.waitingFor(), 'the first commit', ...asked];
    },
    debug,
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
