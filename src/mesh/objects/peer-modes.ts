import type { Emit, Graph, Reader } from '../../cache/graph.ts';
import type { Labels } from '../../model/labels.ts';
import { type MtlsMode, type PeerModes, peerModes } from '../../model/peer-authentication.ts';
import { type Settings, settingOf } from '../settings.ts';
import { type Policies, policiesFor } from './policies.ts';

/** What PeerAuthentications mean for namespaces and for what is in them. */
export interface PeerModesOf {
  /** For all workloads of a namespace that no narrower policy selects. */
  namespace(read: Reader, namespace: string): MtlsMode;
  workload(read: Reader, namespace: string, labels: Labels): PeerModes;
  /** Whether some workload, or port, of the namespace may accept mutual TLS. */
  acceptsMtls(read: Reader, namespace: string): boolean;
}

export function declarePeerModes(graph: Graph, { peers }: Policies, settings: Settings): PeerModesOf {
  // Kept apart from the policies: whether there are any rarely changes.
  const selective = graph.derive(
    'namespaces with selective peerAuthentications',
    graph.index('selective peerAuthentications', peers.models, (_, { namespace, target }) =>
      target.kind === 'labels' ? [namespace] : [],
    ),
    (key, members, _, emit: Emit<Selective>) =>
      emit(key, {
        acceptsMtls: members.some(({ value: { mode, ports } }) =>
          [mode, ...Object.values(ports)].some((one) => one === 'STRICT' || one === 'PERMISSIVE'),
        ),
      }),
  );
  const ofAll = (read: Reader, namespace: string) => policiesFor(read, peers, namespace, {})[0];
  const root = (read: Reader): string => settingOf(read, settings.visibility).rootNamespace;
  const wide = (read: Reader, namespace: string) => ({
    mesh: ofAll(read, root(read)),
    namespace: namespace === root(read) ? undefined : ofAll(read, namespace),
  });
  const selectiveIn = (read: Reader, namespace: string): Selective | undefined =>
    // A selector in the root namespace has no effect.
    namespace === root(read) ? undefined : read.get(selective, namespace);
  return {
    namespace: (read, namespace) => peerModes(wide(read, namespace)).mode,
    workload: (read, namespace, labels) =>
      peerModes({
        ...wide(read, namespace),
        workload:
          selectiveIn(read, namespace) &&
          policiesFor(read, peers, namespace, labels).find(({ target }) => target.kind === 'labels'),
      }),
    acceptsMtls: (read, namespace) =>
      peerModes(wide(read, namespace)).mode !== 'DISABLE' || selectiveIn(read, namespace)?.acceptsMtls === true,
  };
}

interface Selective {
  readonly acceptsMtls: boolean;
}
