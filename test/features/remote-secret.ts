import type { Json } from '../../src/api/json.ts';
import type { KubernetesObject } from '../../src/api/object.ts';

export function kubeconfigFor(url: string, user: object = { token: 't' }, cluster = 'c'): string {
  return JSON.stringify({
    clusters: [{ name: cluster, cluster: { server: url } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster, user: 'u' } }],
    'current-context': 'x',
  });
}

/** As `istioctl create-remote-secret` writes it. */
export function remoteSecret(
  entries: Readonly<Record<string, string>>,
): KubernetesObject & Json & { readonly metadata: Json } {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'istio-system', name: 'remote', labels: { 'istio/multiCluster': 'true' } },
    data: Object.fromEntries(Object.entries(entries).map(([id, text]) => [id, Buffer.from(text).toString('base64')])),
  };
}
