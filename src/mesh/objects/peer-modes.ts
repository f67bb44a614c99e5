import { type KubernetesObject, parseObjectKey, sourceOfKey } from '../../api/object.ts';
import type { PeerAuthentication } from '../../api/gen/peer-authentication.gen.ts';
import type { Collection, Emit, Graph, Index, Input, Reader } from '../../cache/graph.ts';
import type { Labels } from '../../model/labels.ts';
import {
  type MtlsMode,
  type PeerAuthenticationModel,
  type PeerAuthentications,
  type PeerModes,
  acceptingAll,
  peerModes,
} from '../../model/peer-authentication.ts';
import { reconcilePeerAuthentication } from '../../reconcilers/security/peer-authentication.ts';
import type { FormerObject, Inputs } from '../inputs.ts';
import { type Settings, settingOf } from '../settings.ts';
import { type Policies, indexBySelector, policiesFor } from './policies.ts';

/** What PeerAuthentications mean for namespaces and for what is in them. */
export interface PeerModesOf extends Modes {
  /** What a server accepts: while a mode changes, both kinds of connections for as long as clients may use them. */
  ofServer(read: Reader, namespace: string, labels: Labels): PeerModes;
  /** What clients go by: while a mode changes, the former one until servers accept what the new one asks for. */
  ofClients(read: Reader, namespace: string, labels: Labels): PeerModes;
  /** Former versions that servers go by, too. */
  readonly former: readonly Collection<PeerAuthenticationModel>[];
}

interface Modes {
  /** For all workloads of a namespace that no narrower policy selects. */
  namespace(read: Reader, namespace: string): MtlsMode;
  workload(read: Reader, namespace: string, labels: Labels): PeerModes;
  /** The policies from which these follow. */
  policies(read: Reader, namespace: string, labels: Labels): PeerAuthentications;
  /** Whether some workload, or port, of the namespace may accept mutual TLS. */
  acceptsMtls(read: Reader, namespace: string): boolean;
}

export function declarePeerModes(graph: Graph, inputs: Inputs, { peers }: Policies, settings: Settings): PeerModesOf {
  const now = declareModes(graph, 'peerAuthentications', [peers.models], peers.bySelector, settings);
  const formerOf = (whom: 'clients' | 'servers', former: Input<FormerObject>) => {
    const name = `former peerAuthentications of ${whom}`;
    const models = declareFormer(graph, name, inputs.objects.PeerAuthentication, peers.models, former);
    return { models, modes: declareModes(graph, name, models, indexBySelector(graph, name, models), settings) };
  };
  const { modes: atClients } = formerOf('clients', inputs.formerPeersOfClients);
  const { modes: atServers, models: former } = formerOf('servers', inputs.formerPeersOfServers);
  // Where nothing changes, the former policies are not looked at.
  const changing = graph.derive(
    'namespaces with changing peerAuthentications',
    graph.index('changing peerAuthentications', inputs.formerPeersOfServers, (key) => [parseObjectKey(key).namespace]),
    (key, _, __, emit: Emit<true>) => emit(key, true),
  );
  const isChanging = (read: Reader, namespace: string): boolean =>
    [namespace, settingOf(read, settings.visibility).rootNamespace].some((one) => read.get(changing, one) === true);
  return {
    namespace: (read, namespace) => now.namespace(read, namespace),
    workload: (read, namespace, labels) => now.workload(read, namespace, labels),
    policies: (read, namespace, labels) => now.policies(read, namespace, labels),
    ofServer(read, namespace, labels) {
      const newest = now.workload(read, namespace, labels);
      if (!isChanging(read, namespace)) return newest;
      return acceptingAll(newest, [
        atClients.workload(read, namespace, labels),
        atServers.workload(read, namespace, labels),
      ]);
    },
    ofClients: (read, namespace, labels) =>
      (isChanging(read, namespace) ? atClients : now).workload(read, namespace, labels),
    acceptsMtls: (read, namespace) =>
      now.acceptsMtls(read, namespace) ||
      (isChanging(read, namespace) &&
        (atClients.acceptsMtls(read, namespace) || atServers.acceptsMtls(read, namespace))),
    former,
  };
}

/** All policies as they were: those that exist, then those that no longer do. */
function declareFormer(
  graph: Graph,
  name: string,
  objects: Input<KubernetesObject>,
  models: Collection<PeerAuthenticationModel>,
  former: Input<FormerObject>,
): readonly Collection<PeerAuthenticationModel>[] {
  const read = (key: string, object: KubernetesObject): PeerAuthenticationModel =>
    reconcilePeerAuthentication(object as PeerAuthentication, sourceOfKey(key)).model;
  return [
    graph.derive(name, models, (key, model, reader, emit: Emit<PeerAuthenticationModel>) => {
      const version = reader.get(former, key);
      if (version === undefined) emit(`${key}#former`, model);
      else if (version.object !== undefined) emit(`${key}#former`, read(key, version.object));
    }),
    graph.derive(`${name}, deleted`, former, (key, { object }, reader, emit: Emit<PeerAuthenticationModel>) => {
      if (object !== undefined && reader.get(objects, key) === undefined) emit(`${key}#former`, read(key, object));
    }),
  ];
}

function declareModes(
  graph: Graph,
  name: string,
  models: readonly Collection<PeerAuthenticationModel>[],
  bySelector: Index<PeerAuthenticationModel>,
  settings: Settings,
): Modes {
  // Kept apart from the policies: whether there are any rarely changes.
  const selective = graph.derive(
    `namespaces with selective ${name}`,
    graph.index(`selective ${name}`, models, (_, { namespace, target }) =>
      target.kind === 'labels' ? [namespace] : [],
    ),
    (key, members, _, emit: Emit<Selective>) =>
      emit(key, {
        acceptsMtls: members.some(({ value: { mode, ports } }) =>
          [mode, ...Object.values(ports)].some((one) => one === 'STRICT' || one === 'PERMISSIVE'),
        ),
      }),
  );
  const ofAll = (read: Reader, namespace: string) => policiesFor(read, { bySelector }, namespace, {})[0];
  const root = (read: Reader): string => settingOf(read, settings.visibility).rootNamespace;
  const wide = (read: Reader, namespace: string) => ({
    mesh: ofAll(read, root(read)),
    namespace: namespace === root(read) ? undefined : ofAll(read, namespace),
  });
  const selectiveIn = (read: Reader, namespace: string): Selective | undefined =>
    // A selector in the root namespace has no effect.
    namespace === root(read) ? undefined : read.get(selective, namespace);
  const policiesOf = (read: Reader, namespace: string, labels: Labels): PeerAuthentications => ({
    ...wide(read, namespace),
    workload:
      selectiveIn(read, namespace) &&
      policiesFor(read, { bySelector }, namespace, labels).find(({ target }) => target.kind === 'labels'),
  });
  return {
    namespace: (read, namespace) => peerModes(wide(read, namespace)).mode,
    workload: (read, namespace, labels) => peerModes(policiesOf(read, namespace, labels)),
    policies: policiesOf,
    acceptsMtls: (read, namespace) =>
      peerModes(wide(read, namespace)).mode !== 'DISABLE' || selectiveIn(read, namespace)?.acceptsMtls === true,
  };
}

interface Selective {
  readonly acceptsMtls: boolean;
}
