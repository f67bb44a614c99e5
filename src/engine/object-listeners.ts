import type { ConfigMap, Secret } from '../api/core.ts';
import { type CustomKindName, type SourceKindName, kinds } from '../api/kinds.ts';
import { type KubernetesObject, parseObjectKey } from '../api/object.ts';
import type { CredentialStore } from '../credentials/credential-store.ts';
import { entriesOfConfigMap, entriesOfSecret } from '../credentials/entries.ts';
import { credentialKey, grantsIn } from '../model/credential.ts';
import type { EndpointHistory } from './endpoint-history.ts';
import type { Generations } from './generations.ts';
import type { PeerHistory } from './peer-history.ts';

/** Hears what has become of objects, before the graph does. */
export interface ObjectListener {
  readonly kinds: readonly SourceKindName[];
  /** Undefined: it is gone. */
  changed(kind: SourceKindName, key: string, object: KubernetesObject | undefined): void;
}

export function listenersOf(
  peers: PeerHistory,
  generations: Generations,
  endpoints: EndpointHistory,
  credentials: CredentialStore,
): readonly ObjectListener[] {
  return [
    { kinds: ['PeerAuthentication'], changed: (_, key, object) => peers.changed(key, object) },
    {
      kinds: kinds.flatMap(({ name, custom }) => (custom ? [name] : [])),
      changed: (kind, key, object) => generations.changed(kind as CustomKindName, key, object),
    },
    endpointListener(endpoints),
    credentialListener(credentials),
  ];
}

export function endpointListener(endpoints: EndpointHistory): ObjectListener {
  return {
    kinds: ['Pod', 'Service', 'EndpointSlice', 'Endpoints'],
    changed: (kind, key, object) => endpoints.changed(kind, key, object),
  };
}

/** What a source delivers of Secrets and ConfigMaps without being asked. */
export function credentialListener(credentials: CredentialStore): ObjectListener {
  return {
    kinds: ['Secret', 'ConfigMap'],
    changed(kind, key, object) {
      const { namespace = '', name } = object?.metadata ?? parseObjectKey(key);
      if (kind === 'Secret') {
        const entries = object && entriesOfSecret(object as Secret);
        credentials.found(credentialKey({ kind, namespace, name }), entries, grantsIn(object?.metadata.annotations));
      } else if (kind === 'ConfigMap') {
        const entries = object && entriesOfConfigMap(object as ConfigMap);
        credentials.found(credentialKey({ kind, namespace, name }), entries);
      }
    },
  };
}
