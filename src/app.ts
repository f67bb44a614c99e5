import type { Writable } from 'node:stream';
import { getHeapStatistics } from 'node:v8';
import { type AdsTimes, startEngine, type Engine, type EngineOptions } from './engine/engine.ts';
import { followWanted } from './engine/wanted.ts';
import { kinds } from './api/kinds.ts';
import type { TenantOf } from './ads/tenant.ts';
import type { Problem } from './api/problem.ts';
import { type Validate, createValidator } from './api/validate.ts';
import type { Program } from './cli/program.ts';
import type { Config } from './config/config.ts';
import { type Clock, aborted, systemClock } from './base/clock.ts';
import { closed } from './serve/closing.ts';
import { type ErrorSource, containErrors } from './base/contained-errors.ts';
import { createDebugging } from './debug/debugging.ts';
import { type SecureServing, secureServing } from './serve/secure-serving.ts';
import { releaseEndpoints } from './commands/endpoint-release.ts';
import { publishedRotation } from './commands/published-rotation.ts';
import type { Amend } from './envoy/encode/encoder.ts';
import { type Protos, createProtos } from './envoy/encode/proto.ts';
import { type ObjectSource, type OpenSource, type SourceSurroundings, openSource } from './serve/object-source.ts';
import { startSource } from './serve/start-source.ts';
import { GatewayHosts } from './gateway-hosts/host-addresses.ts';
import { lookUpHost } from './gateway-hosts/look-up.ts';
import { explainAccess } from './commands/explain-access.ts';
import { checkFiles, translateFiles } from './commands/offline.ts';
import { AllowedAddresses } from './jwks/addresses.ts';
import { fetchText } from './jwks/fetch-text.ts';
import { KeySets } from './jwks/key-sets.ts';
import { AUDIT_RATE, LogBudget } from './ops/log-budget.ts';
import { createLogger, type Logger } from './ops/logger.ts';
import { startOps } from './serve/ops-serving.ts';
import { logProblems } from './engine/problem-log.ts';
import { recordServer } from './commands/record.ts';
import { replayFile } from './commands/replay.ts';
import { namespaceOf, replicaName } from './serve/replica-name.ts';
import { clustersOfReplicas, identitiesOfReplicas, statusOfReplicas } from './commands/replica-status.ts';
import { type WebhookServing, type WebhookServingOptions, startWebhooks } from './serve/webhook-serving.ts';

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
  /** What takes a while to make, and is the same for all programs of a process. */
  readonly protos?: Protos;
  readonly validate?: Validate;
  /** Where errors are seen that nothing handles, once proxies are served; absent: they end the process. */
  readonly errors?: ErrorSource;
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
  /** Resolves when the signal has fired and everything is closed; rejects if it ended for a reason of its own. */
  readonly ended: Promise<void>;
}

async function serve(config: Config, signal: AbortSignal): Promise<void> {
  try {
    const { ended } = await startServing(config, signal, { errors: process });
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
  const logger = createLogger({ ...config.log, ...(surroundings.log && { stream: surroundings.log }) });
  const now = (): number => performance.now();
  const log = new LogBudget(logger, { now });
  const audit = new LogBudget(logger, { rate: AUDIT_RATE, now });
  const end = new AbortController();
  /** What makes the process end, in order. */
  const failure = new AbortController();
  let unexpectedErrors = 0;
  const fail = (error: unknown, message: string, reason: string): void => {
    log.error(message, { err: error });
    failure.abort(new Error(`${reason}: proxies keep what they have until another replica serves them`));
  };
  // There are no proxies to drain during the start.
  const endAtOnce = (): void => end.abort();
  signal.addEventListener('abort', endAtOnce);
  if (signal.aborted) endAtOnce();
  try {
    const { clock = systemClock, identity = replicaName() } = surroundings;
    const opened = openSource(config.source);
    const secure =
      config.secure && secureServing(config, config.secure, opened, { log, audit }, clock, identity, end.signal);
    const { protos = createProtos(), validate = createValidator() } = surroundings;
    const debugging = createDebugging({ protos, mesh: config.mesh, identity, clock });
    const engine = await startEngine({
      ...engineSettings(config, surroundings, log),
      namespace: namespaceOf(identity),
      protos,
      ...(secure && { secure: secure.port }),
      questions: debugging.questions,
      clock,
      broken: (error) => fail(error, 'The graph failed; please report it', 'the graph failed'),
      signal: end.signal,
    });
    const shared = { config, opened, engine, validate, log, signal: end.signal };
    const webhooks = await serveWebhooks({ ...shared, protos, secure, clock });
    secure?.start(engine);
    fetchKeySets(engine, new AllowedAddresses(config.jwksAllowedNetworks), clock, end.signal);
    followGatewayHosts(engine, clock, end.signal);
    const source = await startSource({
      ...shared,
      surroundings: { ...surroundings, clock, identity },
      roots: secure?.roots,
      failed: (error) => {
        if (!end.signal.aborted)
          fail(error, 'What talks to the API server has ended; please report it', 'objects are not followed any more');
      },
    });
    secure?.accept(source.otherClusters.tokens);
    webhooks?.accept(source.otherClusters);
    logProblems(engine.mesh, log, { about: hasNoStatus(config), locate: source.locate });
    const { health, monitoring } = await startOps({
      ...shared,
      ...{ source, secure, webhooks, logger },
      debug: debugging.start(engine, source),
      unexpectedErrors: () => unexpectedErrors,
      suppressedLines: () => log.suppressed + audit.suppressed,
    }).catch(async (error: unknown) => {
      end.abort();
      await source.end();
      throw error;
    });
    const ports = portsOf(engine, webhooks, health.port, monitoring.port);
    log.info('Serving proxies once the source is read', ports);
    signal.removeEventListener('abort', endAtOnce);
    if (surroundings.errors !== undefined)
      containErrors(surroundings.errors, {
        clock: systemClock,
        log: (message, fields) => log.error(message, fields),
        count: () => void unexpectedErrors++,
        giveUp: (reason) => failure.abort(new Error(reason)),
        signal: end.signal,
      });
    const ended = run(engine, source, log, AbortSignal.any([signal, failure.signal]))
      .then(() => engine.drain(config.streams.shutdown))
      .finally(() => end.abort())
      .finally(() => closed({ source: source.end(), proxies: engine.ads.close() }, { clock: systemClock, log }))
      .then(() => failure.signal.throwIfAborted());
    return { engine, ports, ended };
  } catch (error) {
    end.abort();
    throw error;
  }
}

function engineSettings(
  { mesh, clusterMesh, revision, grpcAddress, batch, source, streams, canaries }: Config,
  { adsTimes, amend, tenantOf }: Surroundings,
  log: LogBudget,
): Omit<EngineOptions, 'protos' | 'signal'> {
  return {
    mesh: { ...mesh, ...(clusterMesh?.exportFile !== undefined && { clusterMeshExport: true }) },
    ...(revision === undefined ? {} : { revision }),
    ...(grpcAddress && { plaintext: grpcAddress }),
    batch,
    arrivesPiecemeal: source.kind === 'kubernetes',
    limits: { maxStreams: streams.most, maxAgeMs: streams.maxAge },
    log,
    rejected: ({ stream: _, ...rejection }) => log.warn('Proxy rejected resources', rejection),
    notAdmitted: ({ kind: _, ...refusal }) => log.warn('Proxy refused: limit on different proxies reached', refusal),
    heapBytes: getHeapStatistics().heap_size_limit,
    ...(adsTimes && { adsTimes }),
    ...(amend && { amend }),
    canaries,
    ...(tenantOf && { tenantOf }),
  };
}

function portsOf(
  { ads: { port: grpc, securePort: secure } }: Engine,
  webhooks: WebhookServing | undefined,
  health: number,
  monitoring: number,
): Serving['ports'] {
  return {
    ...(grpc !== undefined && { grpc }),
    ...(secure !== undefined && { secure }),
    ...(webhooks !== undefined && { webhooks: webhooks.port }),
    health,
    monitoring,
  };
}

interface WebhookParts extends Omit<WebhookServingOptions, 'webhooks' | 'client'> {
  readonly opened: OpenSource;
  readonly secure: SecureServing | undefined;
}

/** Where the API server asks, with the certificate of the secure port. */
async function serveWebhooks({ opened, secure, ...rest }: WebhookParts): Promise<WebhookServing | undefined> {
  const { webhooks } = rest.config;
  if (webhooks === undefined || secure === undefined || opened.kind !== 'kubernetes') return undefined;
  const serving = await startWebhooks({ ...rest, webhooks, client: opened.client });
  secure.onCertificate((certificate) => serving.present(certificate));
  return serving;
}

/** Keeps the public keys that RequestAuthentications refer to in the graph. */
function fetchKeySets({ mesh, committer }: Engine, allowed: AllowedAddresses, clock: Clock, signal: AbortSignal): void {
  const keySets = new KeySets({
    fetchText: (url, options) => fetchText(url, { ...options, allowed }),
    write: committer.into(mesh.inputs.keySets),
    clock,
    random: Math.random,
    signal,
  });
  followWanted(mesh.graph, mesh.wanted.keySets, keySets);
}

/** Keeps what the names of gateways between networks resolve to in the graph. */
function followGatewayHosts({ mesh, committer }: Engine, clock: Clock, signal: AbortSignal): void {
  const hosts = new GatewayHosts({
    lookUp: lookUpHost,
    write: committer.into(mesh.inputs.gatewayAddresses),
    clock,
    random: Math.random,
    signal,
  });
  followWanted(mesh.graph, mesh.wanted.gatewayHosts, hosts);
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
