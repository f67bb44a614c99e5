import type { ObjectSink } from '../api/source.ts';
import { CredentialStore } from '../credentials/credential-store.ts';
import { isInForceBy } from '../mesh/findings/conditions.ts';
import type { MeshOptions } from '../mesh/inputs.ts';
import { Discovery } from '../sources/discovery.ts';
import { EndpointHistory } from './endpoint-history.ts';
import type { EngineCore } from './core.ts';
import { Generations } from './generations.ts';
import { NamespaceFilter } from '../sources/namespace-filter.ts';
import { listenersOf } from './object-listeners.ts';
import { ObjectWriter } from './object-writer.ts';
import { PeerHistory } from './peer-history.ts';
import { type ObjectGeneration, ProgressOfObjects } from './progress.ts';
import { WaitingObjects } from './waiting-objects.ts';

export interface ObjectEntryOptions {
  readonly mesh: MeshOptions;
  /** In which this runs. */
  readonly namespace?: string | undefined;
  readonly revision?: string;
  /** Objects arrive one by one: a change waits for those that belong to it. */
  readonly arrivesPiecemeal?: boolean;
  /** What proxies may reject goes to one proxy of a build first, and what they reject is taken back; absent: true. */
  readonly canaries?: boolean;
}

export interface ObjectEntry {
  readonly credentials: CredentialStore;
  readonly progress: ProgressOfObjects;
  readonly generations: Generations;
  readonly writer: ObjectWriter;
  /** Where those of the own cluster go. */
  readonly objects: NamespaceFilter;
  /** Where those of another cluster go. */
  clusterSink(id: string): NamespaceFilter;
  /** Calls back when discovery selectors select namespaces of a cluster from now on, or no longer. */
  onSelection(observer: (cluster: string, namespaces: readonly string[]) => void): void;
}

/** The way of objects into the graph: the filter, what waits, what remembers, and the inputs. */
export function objectEntry(core: EngineCore, isServing: () => boolean, options: ObjectEntryOptions): ObjectEntry {
  const { mesh, committer, clock, signal } = core;
  const { inputs } = mesh;
  const { revision, namespace, mesh: meshOptions } = options;
  const shared = { inputs, write: committer.write.bind(committer), clock, isServing, signal };
  const credentials = new CredentialStore({ ...shared, write: committer.into(inputs.credentials) });
  const peers = new PeerHistory(shared);
  const { progress, generations } = generationsOf(core, options.canaries ?? true);
  const endpoints = new EndpointHistory(shared);
  const waiting = options.arrivesPiecemeal ? new WaitingObjects({ ...meshOptions, ...shared }) : undefined;
  const writer = new ObjectWriter({
    ...{ ...shared, source: meshOptions.clusterId, revision, waiting, endpoints },
    listeners: listenersOf(peers, generations, endpoints, credentials),
  });
  // Credentials and configuration are those of the own cluster.
  const writerOf = (source: string): ObjectSink =>
    new ObjectWriter({ ...shared, source, isRemote: true, revision, waiting, listeners: [] });
  const discovery = new Discovery();
  let selection: ((cluster: string, namespaces: readonly string[]) => void) | undefined;
  return {
    ...{ credentials, progress, generations, writer },
    objects: new NamespaceFilter({
      discovery,
      sink: writer,
      own: { rootNamespace: meshOptions.rootNamespace, namespace, revision },
      changed: (namespaces) => selection?.(meshOptions.clusterId, namespaces),
    }),
    clusterSink: (id) =>
      new NamespaceFilter({
        ...{ discovery, sink: writerOf(id) },
        changed: (namespaces) => selection?.(id, namespaces),
      }),
    onSelection(observer) {
      selection = observer;
    },
  };
}

function generationsOf(
  { mesh, committer, clock, signal }: EngineCore,
  canaries: boolean,
): Pick<ObjectEntry, 'progress' | 'generations'> {
  const { graph, inputs } = mesh;
  const isInForce = (key: string, object: ObjectGeneration): boolean => isInForceBy(mesh.verdicts.get(key), object);
  const progress = new ProgressOfObjects({ inputs, clock, isInForce });
  const generations = new Generations({
    inputs,
    progress,
    write: (write) => committer.write(write),
    isInForce,
    canaries,
    isLibrary({ stream }) {
      const proxy = mesh.proxies.get(stream);
      return proxy !== undefined && 'scope' in proxy && proxy.scope.traits.family === 'grpc';
    },
    clock,
    signal,
  });
  progress.onChange((keys) => graph.contain('generations', () => generations.progressed(keys)));
  return { progress, generations };
}
