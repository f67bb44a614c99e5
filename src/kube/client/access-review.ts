import { isObject } from '../../api/json.ts';
import type { KubeApi } from './client.ts';
import { collectionPath } from './paths.ts';

const type = { group: 'authorization.k8s.io', version: 'v1', plural: 'subjectaccessreviews' };
/** Milliseconds. */
const PATIENCE = 10_000;

/**
 * Whether a service account may list the Secrets of its namespace, as in Istio. Rejects with an `ApiError` if the API
 * server does not answer.
 */
export async function maySeeSecrets(
  api: KubeApi,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<boolean> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user: `system:serviceaccount:${namespace}:${name}`,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
      resourceAttributes: { namespace, verb: 'list', resource: 'secrets' },
    },
  };
  const answer = await api.post(collectionPath(type), body, {
    signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]),
  });
  return isObject(answer) && isObject(answer['status']) && answer['status']['allowed'] === true;
}
