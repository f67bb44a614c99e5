import type { Questions } from '../ads/types.ts';
import { kinds } from '../api/kinds.ts';
import { type KubernetesObject, objectKey } from '../api/object.ts';
import type { Clock } from '../base/clock.ts';
import type { MeshSettings } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import { heldEndpoints } from '../engine/held-endpoints.ts';
import type { Protos } from '../envoy/encode/proto.ts';
import type { MeshService } from '../model/service.ts';
import type { ObjectSource } from '../serve/object-source.ts';
import { type DebugSources, debugPages } from '../ops/debug/pages.ts';
import type { ProxyState } from '../ops/debug/proxies.ts';
import { version } from '../base/version.ts';
import { ONE } from '../mesh/inputs.ts';
import type { ClusterReport } from './cluster-report.ts';
import { CommitLog } from './commits.ts';
import { configDumpJson } from './config-dump.ts';
import { multiclusterServices } from './multicluster-services.ts';
import { type QuestionSources, debugQuestions } from './questions.ts';
import { Recorder } from './recorder.ts';
import { endpointShards, registryEntry } from './registry.ts';
import { statusJson } from './status.ts';

export interface DebuggingOptions {
  readonly protos: Protos;
  readonly mesh: Pick<MeshSettings, 'rootNamespace' | 'clusterId' | 'domainSuffix'>;
  /** Name of this replica: `namespace/pod`, or any other text. */
  readonly identity: string;
  readonly clock: Clock;
}

/** What can be asked about this process: by HTTP, or over xDS as Istio's tools do. */
export interface Debugging {
  readonly questions: Questions;
  /** From now on, questions have answers. */
  start(engine: Engine, source: ObjectSource): DebugSources;
}

export function createDebugging(options: DebuggingOptions): Debugging {
  let sources: QuestionSources | undefined;
  return {
    questions: debugQuestions(() => {
      if (sources === undefined) throw new Error('a question came before the start');
      return sources;
    }),
    start(engine, source) {
      const { mesh: settings, clock } = options;
      const { mesh, committer } = engine;
      const commits = new CommitLog(mesh.members, () => clock.date());
      mesh.graph.observe((draft) => commits.published(draft, mesh.graph.revision), 'commit log');
      committer.onCommit(({ delay, work }) => commits.measured(delay, work));
      const { options: fixed } = mesh.inputs;
      // Before the first commit there is nothing to begin with.
      const touch = (): void => {
        const value = fixed.get(ONE);
        if (value !== undefined) committer.write(fixed.write(ONE, value));
      };
      const recorder = new Recorder({ mesh, touch, version, clock });
      const { protos, identity } = options;
      const { rootNamespace, clusterId } = settings;
      const replica = identity.slice(identity.lastIndexOf('/') + 1);
      const pages: DebugSources = {
        ...pageSources(options, engine, source),
        status: (proxy) => statusJson({ engine, replica, version, clock, held: () => heldEndpoints(mesh) }, proxy),
        commits: () => commits.newest,
        record: (ms) => recorder.record(ms),
      };
      const { proxies } = pages;
      const given = (stream: string) => engine.ads.given(stream);
      sources = { protos, rootNamespace, clusterId, replica, version, proxies, given, pages: debugPages(pages) };
      return pages;
    },
  };
}

function pageSources(
  { protos, mesh: { clusterId, domainSuffix }, clock }: DebuggingOptions,
  { mesh, ads, objects }: Engine,
  source: ObjectSource,
): Omit<DebugSources, 'status' | 'commits' | 'record'> {
  const services = function* (): Generator<MeshService> {
    for (const [, service] of mesh.services.entries()) yield service;
  };
  return {
    proxies: () => proxyStates({ mesh, ads }, clock),
    configDump: (stream, options) => configDumpJson(protos, ads.given(stream), options),
    *services() {
      for (const service of services()) yield registryEntry(service, clusterId, claimOf(service, mesh));
    },
    endpoints: () => endpointShards(services(), listsOf(mesh)),
    *objects() {
      for (const input of Object.values(mesh.inputs.objects)) for (const [, object] of input.entries()) yield object;
    },
    problems: () => [...mesh.problems.byObject.entries()].flatMap(([, found]) => found),
    held: () => heldEndpoints(mesh),
    clusters: () => clustersOf(clusterId, objects, source),
    identities: (address) => source.otherClusters.identitiesOf(address),
    networks: () => networksOf(mesh),
    multiclusterServices: () => multiclusterServices(mesh, domainSuffix),
    ...(source.locate && { locate: source.locate }),
  };
}

function clustersOf(
  id: string,
  objects: Engine['objects'],
  { waitingFor, otherClusters, clusterMeshExport }: ObjectSource,
): readonly ClusterReport[] {
  const phase = waitingFor().length === 0 ? 'synced' : 'syncing';
  const leftOut = objects.leftOut();
  const own: ClusterReport = {
    ...{ id, secretName: '', syncStatus: phase, kind: 'Kubernetes', phase },
    ...(leftOut && { leftOut }),
    ...(clusterMeshExport && { clusterMeshExport: clusterMeshExport() }),
  };
  return [own, ...otherClusters.reports()];
}

function* networksOf({ clusters: { networkGateways }, inputs }: Engine['mesh']): Generator<object> {
  for (const [network, { gateways, unresolved, ignored }] of networkGateways.entries())
    yield {
      network,
      gateways: gateways.map(({ address, port, cluster }) => ({ address, port, ...(cluster !== '' && { cluster }) })),
      unresolved: unresolved.map((host) => ({ host, problem: inputs.gatewayAddresses.get(host)?.problem })),
      ...(ignored > 0 && { ignored }),
    };
}

function proxyStates({ mesh, ads }: Pick<Engine, 'mesh' | 'ads'>, clock: Clock): ProxyState[] {
  const now = clock.date().getTime();
  return ads.streams().flatMap(({ openMs, types, ...stream }) => {
    const proxy = mesh.inputs.proxies.get(stream.stream);
    if (proxy === undefined) return [];
    const { metadata, locality, features = [] } = proxy;
    return [
      {
        ...stream,
        metadata,
        locality,
        features,
        connectedAt: new Date(now - openMs),
        types: types.map(({ sentMs, ...type }) => ({
          ...type,
          sentAt: sentMs === undefined ? undefined : new Date(now - sentMs),
        })),
      },
    ];
  });
}

function* listsOf({ endpoints }: Engine['mesh']) {
  for (const collection of endpoints.lists) for (const [, list] of collection.entries()) yield list;
}

/** The object that claims the host. */
function claimOf({ origins: [origin] }: MeshService, { inputs }: Engine['mesh']): KubernetesObject | undefined {
  if (origin === undefined) return undefined;
  const { source, group, kind, namespace, name } = origin;
  const known = kinds.find((each) => each.group === group && each.kind === kind);
  return known && inputs.objects[known.name].get(objectKey(source, namespace, name));
}
