import type { Secret } from '../api/core.ts';
import { isObject, type Json, textOf } from '../api/json.ts';
import type { KubernetesObject } from '../api/object.ts';
import { deepEqual } from '../cache/equal.ts';
import type { Clock } from '../base/clock.ts';
import type { Kubeconfigs, OwnerContent } from '../clusters/kubeconfigs.ts';
import type { Owner } from '../clusters/owner.ts';
import type { KubeApi } from '../kube/client/client.ts';
import { Informer } from '../kube/reading/informer.ts';
import type { Log } from '../kube/client/log.ts';
import type { Outages } from '../kube/client/outages.ts';
import type { KubeconfigSource } from './kubeconfig-source.ts';

export interface RemoteSecretsOptions {
  /** The own API server, where the Secrets are. */
  readonly api: KubeApi;
  readonly rootNamespace: string;
  readonly kubeconfigs: Kubeconfigs;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly outages: Outages;
  readonly signal: AbortSignal;
}

/** As `istioctl create-remote-secret` labels them. */
const LABEL = 'istio/multiCluster=true';

/** Kubeconfigs in Secrets of the root namespace: a key for each cluster. */
export function followRemoteSecrets(options: RemoteSecretsOptions): KubeconfigSource {
  const { kubeconfigs, rootNamespace, signal, ...shared } = options;
  const events = { add: 0, update: 0, delete: 0 };
  const denied = Promise.withResolvers<void>();
  const names = new Set<string>();
  const informer = new Informer({
    ...shared,
    name: 'Secrets of remote clusters',
    type: { group: '', version: 'v1', plural: 'secrets' },
    namespace: rootNamespace,
    query: { labelSelector: LABEL },
    confidential: true,
    shape: { trim, same: deepEqual },
    sink: {
      replace(objects) {
        const listed = new Set(objects.map(({ metadata: { name } }) => name));
        for (const name of listed) if (!names.has(name)) events.add++;
        for (const name of names) if (!listed.has(name)) events.delete++;
        names.clear();
        for (const name of listed) names.add(name);
        kubeconfigs.replace(objects.map(contentOf));
      },
      upsert(object) {
        const { name } = object.metadata;
        events[names.has(name) ? 'update' : 'add']++;
        names.add(name);
        kubeconfigs.put(contentOf(object));
      },
      delete(object) {
        events.delete++;
        names.delete(object.metadata.name);
        kubeconfigs.delete(ownerOf(object));
      },
      failed({ code }) {
        if (code === 403) denied.resolve();
      },
    },
  });
  return {
    // Whoever does not allow it wants no other clusters.
    known: Promise.race([informer.whenSynced, denied.promise]),
    ended: informer.run({ signal }),
    waitingFor() {
      const { synced, trouble } = informer.stats();
      if (synced || trouble?.startsWith('403') === true) return [];
      return [`Secrets of remote clusters${trouble === undefined ? '' : ` (${trouble})`}`];
    },
    events: () => events,
  };
}

function ownerOf({ metadata: { namespace = '', name, uid = '' } }: KubernetesObject): Owner {
  return { kind: 'Secret', namespace, name, uid };
}

function contentOf(object: KubernetesObject): OwnerContent {
  const { data = {} } = object as Secret;
  const ids = Object.keys(data).sort();
  return {
    owner: ownerOf(object),
    created: object.metadata.creationTimestamp ?? '',
    kubeconfigs: ids.map((id) => ({ id, text: data[id] ?? '', encoding: 'base64' })),
  };
}

function trim(raw: Json): KubernetesObject {
  const metadata = isObject(raw['metadata']) ? raw['metadata'] : {};
  const { namespace, name, uid, creationTimestamp } = metadata;
  const data = isObject(raw['data']) ? raw['data'] : {};
  const secret: Secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      ...{ namespace: textOf(namespace), name: textOf(name), uid: textOf(uid) },
      creationTimestamp: textOf(creationTimestamp),
    },
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, textOf(value)])),
  };
  return secret;
}
