/**
 * Where objects come from: a directory, or everything that talks to an API server. The rest of the folder: what all replicas
 * know, in statuses (`cluster-statuses.ts`) and as generations that the cluster keeps (`cluster-generations.ts`); and the
 * servers of port 15012 (`secure-serving.ts`), of port 15017 (`webhook-serving.ts`) and of operators (`ops-serving.ts`).
 * For port 15012, `authority-keeper.ts` keeps the authority up to date and takes the steps of a rotation,
 * `authority-source.ts` says where its certificates come from, and `rotation-store.ts` where the state of a rotation is;
 * what namespaces publish before there is one: `kube/published-roots.ts` (decision 0124).
 */
import { kindsToRead } from '../api/kinds.ts';
import type { Problem } from '../api/problem.ts';
import type { Validate } from '../api/validate.ts';
import type { Config, SourceConfig } from '../config/config.ts';
import { isDeepStrictEqual } from 'node:util';
import { getHeapStatistics } from 'node:v8';
import { allocateAll } from '../engine/address-allocator.ts';
import type { AllocatedAddress } from '../model/address-claim.ts';
import { ClusterCredentials } from '../other-clusters/cluster-credentials.ts';
import { watchDirectory } from '../directory/watch.ts';
import type { Engine } from '../engine/engine.ts';
import { MeshConfigChoice } from '../engine/mesh-config-choice.ts';
import { heldReport, onHeld } from '../engine/held-endpoints.ts';
import { maySeeSecrets } from '../kube/access-review.ts';
import { KubeClient } from '../kube/client.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { PooledKubeConfig } from '../kube/credentials.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import { readKubeConfig } from '../kube/kube-config.ts';
import { exportToClusterMesh } from '../other-clusters/cluster-mesh-export.ts';
import type { ExportReport } from '../debug/cluster-report.ts';
import { LeaderElector } from '../kube/lease.ts';
import { keepGenerations } from './cluster-generations.ts';
import { keepStatuses } from './cluster-statuses.ts';
import { FairleadOperator } from '../kube/operator.ts';
import { Outages } from '../kube/outages.ts';
import type { KubeconfigPlace } from '../other-clusters/remote-clusters.ts';
import { type OtherClusters, followOtherClusters } from '../other-clusters/other-clusters.ts';
import { RootDistribution } from '../other-clusters/root-distribution.ts';
import { RootCertificates } from '../kube/root-certificates.ts';
import { meshConfigNames } from '../api/mesh-config-names.ts';
import { replicaName } from './replica-name.ts';
import { stalled } from '../status/stalled.ts';
import { StatusWriter, type StatusWriterOptions } from '../kube/status-writer.ts';
import { warnOfUnreadKinds } from '../kube/unread-kinds.ts';
import type { Logger } from '../ops/logger.ts';
import type { ApiServerFigures, MetricSources } from '../ops/metric-sources.ts';
import { reportLog } from '../engine/problem-log.ts';
import { version } from '../base/version.ts';
import { webhookConfigurations } from './webhook-configurations.ts';

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

/** Rejects if a directory is not available. */
export async function startSource(options: ObjectSourceOptions): Promise<ObjectSource> {
  const { opened } = options;
  return opened.kind === 'directory' ? directorySource(opened.paths, options) : clusterSource(opened.client, options);
}

async function directorySource(
  paths: readonly string[],
  { config, engine, validate, log, surroundings, signal }: ObjectSourceOptions,
): Promise<ObjectSource> {
  const { clock = systemClock } = surroundings;
  const report = reportLog(log);
  const credentials = new ClusterCredentials(engine, clock);
  credentials.read({
    cluster: undefined,
    named: {
      want: (key) => {
        if (!engine.credentials.has(key)) engine.credentials.found(key, undefined);
      },
      unwant: () => undefined,
    },
    // Whoever writes the files decides which proxies there are.
    review: () => Promise.resolve(true),
    signal,
  });
  allocateForFiles(engine);
  const directory = await watchDirectory({
    paths,
    validate,
    sink: meshConfigChoice(config, engine),
    onReports: (_, appeared) => report(appeared),
    signal,
  });
  const others = followOtherClusters(config, engine, kubeconfigFiles(config), {
    ...{ credentials, log, clock, signal },
    heapBytes: heapOf(surroundings),
  });
  return {
    ready: others.ready,
    waitingFor: () => others.waitingFor(),
    async end() {
      await directory.ended;
      await others.end();
    },
    otherClusters: others,
    files: () => directory.reports(),
    locate: ({ object, field }) => {
      const place = directory.locate(object, field);
      return place && `${place.file}:${place.line}`;
    },
  };
}

function meshConfigChoice({ mesh: { rootNamespace }, revision }: Config, { objects: sink }: Engine): MeshConfigChoice {
  return new MeshConfigChoice({ sink, rootNamespace, revision });
}

function kubeconfigFiles({ remoteKubeconfigs: directory }: Config): KubeconfigPlace | undefined {
  return directory === undefined ? undefined : { kind: 'Files', directory };
}

const heapOf = ({ heapBytes = getHeapStatistics().heap_size_limit }: SourceSurroundings): number => heapBytes;

/** Files have no status to keep automatic addresses in: they follow from all of them together. */
function allocateForFiles({ mesh, committer }: Engine): void {
  let before: ReadonlyMap<string, readonly AllocatedAddress[]> = new Map();
  mesh.onAddressClaims(() => {
    const after = allocateAll(mesh.addressClaims.entries());
    for (const key of new Set([...before.keys(), ...after.keys()]))
      if (!isDeepStrictEqual(before.get(key), after.get(key)))
        committer.write(mesh.inputs.allocated.write(key, after.get(key)));
    before = after;
  });
}

function clusterSource(
  client: KubeClient,
  { config, engine, validate, log, surroundings, roots, failed, signal }: ObjectSourceOptions,
): ObjectSource {
  const { clock = systemClock, identity = replicaName(), podUid = process.env['POD_UID'] } = surroundings;
  const { clusterId, rootNamespace } = config.mesh;
  const outages = new Outages({ log, clock, signal });
  const shared = { api: client, clock, random: Math.random, log, outages };
  const operator = new FairleadOperator({
    client,
    sink: meshConfigChoice(config, engine),
    log,
    signal,
    clock,
    outages,
    hold: () => engine.committer.hold(),
    rootNamespace,
    meshConfigs: meshConfigNames(config.revision),
    kinds: kindsToRead(config.mesh),
    failed,
    observed: (kind, namespace, name) => statuses.observed(kind, namespace, name),
  });
  const latest: StatusWriterOptions['latest'] = (kind, namespace, name) => operator.latest(kind, namespace, name);
  const writer = new StatusWriter({
    ...shared,
    latest,
    types: ['Accepted', 'ResolvedRefs', 'Programmed', 'Stalled'],
    summary: stalled,
    onWritten: (status, before) => events.written(status, before),
  });
  const events = new EventRecorder({ ...shared, identity, signal });
  const { mesh } = engine;
  onHeld(mesh, (service) => {
    log.warn('Endpoints are held: they are missing from a list, and their Pods are ready', {
      service: `${service.namespace}/${service.name}`,
      endpoints: service.endpoints.length,
    });
    if (config.statusWrites) events.report(heldReport(service));
  });
  const credentials = new ClusterCredentials(engine, clock);
  credentials.join({
    ...{ ...shared, signal },
    review: (account) => maySeeSecrets(client, account, signal),
    toGrant: 'allow the control plane to list and watch it (credentials.namespaces in the chart)',
  });
  const rootCertificates =
    roots &&
    new RootCertificates({
      ...shared,
      roots: () => roots.pem,
      rotation: { namespace: rootNamespace, text: () => roots.rotation },
      namespaces: () => mesh.namespaces.of(clusterId).filter((name) => !engine.objects.leavesOut(name)),
      isWanted: (name) => mesh.namespaces.get(clusterId, name) !== undefined && !engine.objects.leavesOut(name),
    });
  const injectionWebhook = config.webhooks?.configurations.injection;
  const distribution =
    roots &&
    new RootDistribution({
      ...{ clusterId, rootNamespace, namespaces: mesh.namespaces },
      roots: () => roots.pem,
      ...(injectionWebhook !== undefined && { injectionWebhook }),
    });
  const namespacesChanged = (cluster: string, names: readonly string[]): void => {
    if (cluster === clusterId) rootCertificates?.changed(names);
    else distribution?.changed(cluster, names);
  };
  mesh.namespaces.onChange(namespacesChanged);
  engine.onSelection(namespacesChanged);
  const configurations = roots === undefined ? [] : webhookConfigurations(config, shared, roots);
  roots?.onChange(() => {
    rootCertificates?.changed();
    distribution?.changedAll();
    for (const configuration of configurations) configuration.changed();
  });
  if (config.statusWrites) roots?.countMissingBy((pem) => rootCertificates?.missing(pem));
  const { own, exportFile: file } = config.clusterMesh ?? {};
  const exported =
    own && file !== undefined
      ? exportToClusterMesh({ mesh, committer: engine.committer, own, file, clock, random: Math.random, log })
      : undefined;
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
        leaseDuration: config.lease.duration,
        identity,
        onElected: (term) => {
          writer.lead(term, revision);
          generations.lead(term, revision);
          if (revision !== '') return;
          void rootCertificates?.lead(term);
          distribution?.lead(term);
          exported?.lead(term);
        },
      }),
  );
  const statuses = keepStatuses({
    ...shared,
    engine,
    writer,
    pod: podWith(identity, podUid),
    clusterId,
    latest,
    signal,
  });
  const generations = keepGenerations({
    ...shared,
    engine,
    validate,
    clusterId,
    latest,
    signal,
  });
  const following = generations.follow();
  const report: EventRecorder['report'] = (about) => {
    if (config.statusWrites) events.report(about);
  };
  const kubeconfigs = kubeconfigFiles(config) ?? { kind: 'Secrets', api: client, outages, report };
  const others = followOtherClusters(config, engine, kubeconfigs, {
    ...{ credentials, log, clock, signal, ...(distribution && { distribution }) },
    heapBytes: heapOf(surroundings),
  });
  let isRead = false;
  const ready = Promise.all([operator.whenReady(), others.ready]).then(async () => {
    const trouble = await generations.read();
    if (trouble !== undefined && !signal.aborted)
      log.warn(
        'Generations that were in force before the restart are not known until the control plane can read generationsinforce.fairlead.dev',
        { trouble },
      );
    isRead = true;
  });
  operator.start().catch(failed);
  const remarking = operator.whenReady().then(() => warnOfUnreadKinds({ api: client, log, signal }));
  const telling = configurations.map((configuration) => configuration.run({ signal }).catch(failed));
  const electing = config.statusWrites ? electors.map((elector) => elector.run({ signal }).catch(failed)) : [];
  return {
    ready,
    waitingFor: () => [
      ...operator.waitingFor(),
      ...others.waitingFor(),
      ...(isRead || generations.isRead ? [] : ['GenerationInForce']),
    ],
    async end() {
      await Promise.all([...electing, ...telling]);
      if (operator.ready()) await remarking;
      await writer.idle();
      await statuses.idle();
      await following;
      await generations.idle();
      await events.idle();
      await exported?.idle();
      await others.end();
      await operator.shutdown();
    },
    figures: () => operator.stats(),
    status: () => writer.stats(),
    leader: () => electors.some((elector) => elector.isLeader()),
    otherClusters: others,
    ...(exported && { clusterMeshExport: () => exported.report() }),
    ...(configurations.length > 0 && {
      webhookConfigurations: () => configurations.map(({ name, isRight }) => [name, isRight] as const),
    }),
  };
}

function podWith(identity: string, uid: string | undefined) {
  const [namespace = '', name] = identity.split('/');
  return name === undefined || uid === undefined ? undefined : { namespace, name, uid };
}
