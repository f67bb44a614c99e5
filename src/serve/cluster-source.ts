import { parseNameKey } from '../api/keys.ts';
import { type KindName, kindsToRead } from '../api/kinds.ts';
import { meshConfigNames } from '../api/mesh-config-names.ts';
import { systemClock } from '../base/clock.ts';
import { heldReport, onHeld } from '../engine/held-endpoints.ts';
import { maySeeSecrets } from '../kube/client/access-review.ts';
import type { KubeClient } from '../kube/client/client.ts';
import { EventRecorder } from '../kube/writing/event-recorder.ts';
import type { GenerationsInForce } from '../kube/writing/generations-in-force.ts';
import { LeaderElector } from '../kube/writing/lease.ts';
import { FairleadOperator } from '../kube/reading/operator.ts';
import { Outages } from '../kube/client/outages.ts';
import { StatusWriter, type StatusWriterOptions } from '../kube/writing/status-writer.ts';
import { warnOfUnreadKinds } from '../kube/reading/unread-kinds.ts';
import { ClusterCredentials } from '../other-clusters/cluster-credentials.ts';
import { type ClusterMeshExport, exportToClusterMesh } from '../other-clusters/cluster-mesh-export.ts';
import { type OtherClusters, followOtherClusters } from '../other-clusters/other-clusters.ts';
import { stalled } from '../status/stalled.ts';
import type { ClusterContext } from './cluster-context.ts';
import { keepGenerations } from './cluster-generations.ts';
import { type ClusterRoots, keepRoots } from './cluster-roots.ts';
import { keepStatuses } from './cluster-statuses.ts';
import type { ObjectSource, ObjectSourceOptions } from './object-source.ts';
import { replicaName } from './replica-name.ts';
import { heapOf, kubeconfigFiles, meshConfigChoice } from './source-options.ts';

/** Reads objects from an API server, and writes what the mesh makes of them. */
export function startClusterSource(client: KubeClient, options: ObjectSourceOptions): ObjectSource {
  const { config, validate, surroundings, failed, signal } = options;
  const context = contextOf(client, options);
  const { identity } = context;
  const operator = operatorOf(client, context, options.failed, (...object) => statuses.observed(...object));
  const latest: StatusWriterOptions['latest'] = (kind, namespace, name) => operator.latest(kind, namespace, name);
  const { writer, events } = writersOf(context, latest);
  reportHeld(context, events);
  const credentials = ownCredentials(client, context);
  const roots = keepRoots(context, options.roots);
  const exported = exportedOf(context);
  const electors = electorsOf(context, (term, revision) => {
    writer.lead(term, revision);
    generations.lead(term, revision);
    if (revision !== '') return;
    roots.lead(term);
    exported?.lead(term);
  });
  const { podUid = process.env['POD_UID'] } = surroundings;
  const shared = { ...context, clusterId: config.mesh.clusterId, latest };
  const statuses = keepStatuses({ ...shared, writer, pod: podWith(identity, podUid) });
  const generations = keepGenerations({ ...shared, validate });
  const following = generations.follow();
  const others = othersOf(context, options, credentials, roots, events);
  let isRead = false;
  const ready = Promise.all([operator.whenReady(), others.ready]).then(async () => {
    await readGenerations(context, generations);
    isRead = true;
  });
  operator.start().catch(failed);
  const remarking = operator.whenReady().then(() => warnOfUnreadKinds(context));
  const telling = roots.configurations.map((configuration) => configuration.run({ signal }).catch(failed));
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
    ...reportsOf(exported, roots),
  };
}

function contextOf(
  client: KubeClient,
  { config, engine, log, surroundings, signal }: ObjectSourceOptions,
): ClusterContext {
  const { clock = systemClock, identity = replicaName() } = surroundings;
  const outages = new Outages({ log, clock, signal });
  return { config, engine, api: client, outages, identity, clock, random: Math.random, log, signal };
}

function operatorOf(
  client: KubeClient,
  { config, engine, ...shared }: ClusterContext,
  failed: ObjectSourceOptions['failed'],
  observed: (kind: KindName, namespace: string, name: string) => void,
): FairleadOperator {
  return new FairleadOperator({
    ...shared,
    client,
    sink: meshConfigChoice(config, engine),
    hold: () => engine.committer.hold(),
    rootNamespace: config.mesh.rootNamespace,
    meshConfigs: meshConfigNames(config.revision),
    kinds: kindsToRead(config.mesh),
    failed,
    observed,
  });
}

/** What writes the statuses of objects, and Events about them. */
function writersOf(context: ClusterContext, latest: StatusWriterOptions['latest']) {
  const events = new EventRecorder(context);
  const writer = new StatusWriter({
    ...context,
    latest,
    types: ['Accepted', 'ResolvedRefs', 'Programmed', 'Stalled'],
    summary: stalled,
    onWritten: (status, before) => events.written(status, before),
  });
  return { writer, events };
}

function reportHeld({ config, engine, log }: ClusterContext, events: EventRecorder): void {
  onHeld(engine.mesh, (service) => {
    log.warn('Endpoints are held: they are missing from a list, and their Pods are ready', {
      service: `${service.namespace}/${service.name}`,
      endpoints: service.endpoints.length,
    });
    if (config.statusWrites) events.report(heldReport(service));
  });
}

function ownCredentials(client: KubeClient, context: ClusterContext): ClusterCredentials {
  const { engine, clock, signal } = context;
  const credentials = new ClusterCredentials(engine, clock);
  credentials.join({
    ...context,
    review: (account) => maySeeSecrets(client, account, signal),
    toGrant: 'allow the control plane to list and watch it (credentials.namespaces in the chart)',
  });
  return credentials;
}

/** Undefined: nothing is told to the other clusters of a ClusterMesh. */
function exportedOf({ config, engine, clock, random, log }: ClusterContext): ClusterMeshExport | undefined {
  const { own, exportFile: file } = config.clusterMesh ?? {};
  if (own === undefined || file === undefined) return undefined;
  return exportToClusterMesh({ mesh: engine.mesh, committer: engine.committer, own, file, clock, random, log });
}

/** One leader for all replicas, and one for those of a revision, which answers for its objects. */
function electorsOf(
  context: ClusterContext,
  onElected: (term: AbortSignal, revision: string) => void,
): readonly LeaderElector[] {
  const { lease, revision: own } = context.config;
  const elections = [
    { revision: '', name: lease.name },
    ...(own === undefined ? [] : [{ revision: own, name: `${lease.name}-${own}` }]),
  ];
  return elections.map(
    ({ revision, name }) =>
      new LeaderElector({
        ...context,
        namespace: lease.namespace,
        name,
        leaseDuration: lease.duration,
        onElected: (term) => onElected(term, revision),
      }),
  );
}

function othersOf(
  { config, engine, api, outages, clock, log, signal }: ClusterContext,
  { surroundings }: ObjectSourceOptions,
  credentials: ClusterCredentials,
  { distribution }: ClusterRoots,
  events: EventRecorder,
): OtherClusters {
  const report: EventRecorder['report'] = (about) => {
    if (config.statusWrites) events.report(about);
  };
  const kubeconfigs = kubeconfigFiles(config) ?? { kind: 'Secrets', api, outages, report };
  return followOtherClusters(config, engine, kubeconfigs, {
    ...{ credentials, log, clock, signal, ...(distribution && { distribution }) },
    heapBytes: heapOf(surroundings),
  });
}

/** Never rejects. */
async function readGenerations({ log, signal }: ClusterContext, generations: GenerationsInForce): Promise<void> {
  const trouble = await generations.read();
  if (trouble !== undefined && !signal.aborted)
    log.warn(
      'Generations that were in force before the restart are not known until the control plane can read generationsinforce.fairlead.dev',
      { trouble },
    );
}

function reportsOf(
  exported: ClusterMeshExport | undefined,
  { configurations }: ClusterRoots,
): Pick<ObjectSource, 'clusterMeshExport' | 'webhookConfigurations'> {
  return {
    ...(exported && { clusterMeshExport: () => exported.report() }),
    ...(configurations.length > 0 && {
      webhookConfigurations: () => configurations.map(({ name, isRight }) => [name, isRight] as const),
    }),
  };
}

function podWith(identity: string, uid: string | undefined) {
  const { namespace, name } = parseNameKey(identity);
  return name === '' || uid === undefined ? undefined : { namespace, name, uid };
}
