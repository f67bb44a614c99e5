import type { KubeApi } from '../client/client.ts';
import { collectionPath } from '../client/paths.ts';

const type = { group: 'networking.istio.io', version: 'v1', plural: 'gateways' };

/**
 * Asks the API server whether it would store an object that validation refuses: as Istio does, so that either control
 * plane refuses that of the other. Nothing is stored. Rejects with the `ApiError` of the refusal.
 */
export async function askForRefusal(
  api: KubeApi,
  namespace: string,
  revision: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const object = {
    apiVersion: 'networking.istio.io/v1',
    kind: 'Gateway',
    metadata: {
      name: 'invalid-gateway',
      namespace,
      annotations: { 'internal.istio.io/webhook-always-reject': 'true' },
      ...(revision !== undefined && { labels: { 'istio.io/rev': revision } }),
    },
    spec: {},
  };
  await api.post(collectionPath(type, namespace), object, { query: { dryRun: 'All' }, signal });
}
