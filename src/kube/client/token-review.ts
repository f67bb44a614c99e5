import { isObject } from '../../api/json.ts';
import type { KubeApi } from './client.ts';
import { collectionPath } from './paths.ts';

/** What the API server says about a token: whose it is, if it is one of a service account. */
export type ReviewedToken =
  | { readonly kind: 'valid'; readonly namespace: string; readonly serviceAccount: string }
  | { readonly kind: 'invalid' };

/** Proxies' tokens are issued for this audience: that of Istio's agents. */
const AUDIENCE = 'istio-ca';
/** Milliseconds; an agent waits for the answer. */
const PATIENCE = 10_000;

/** Characters: longer ones are cut, and then not those of an account. */
const LONGEST_USERNAME = 512;

const type = { group: 'authentication.k8s.io', version: 'v1', plural: 'tokenreviews' };

/** Rejects with an `ApiError` if the API server does not answer. */
export async function reviewToken(api: KubeApi, token: string, signal: AbortSignal): Promise<ReviewedToken> {
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec: { token, audiences: [AUDIENCE] },
  };
  const answer = await api.post(collectionPath(type), body, {
    signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]),
  });
  const status = isObject(answer) && isObject(answer['status']) ? answer['status'] : {};
  const user = isObject(status['user']) ? status['user'] : {};
  // A server that does not know audiences leaves them out of its answer.
  const audiences = texts(status['audiences']);
  if (status['authenticated'] !== true || !audiences.includes(AUDIENCE)) return { kind: 'invalid' };
  return accountOf(String(user['username'] ?? ''), texts(user['groups']));
}

/** Names as Kubernetes allows them: they become part of SPIFFE IDs, whoever runs the API server. */
const USERNAME = new RegExp(
  '^system:serviceaccount:' +
    '(?<namespace>[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?):' +
    '(?<serviceAccount>(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*)$',
);

function accountOf(username: string, groups: readonly string[]): ReviewedToken {
  const { namespace = '', serviceAccount = '' } = USERNAME.exec(username.slice(0, LONGEST_USERNAME))?.groups ?? {};
  if (namespace === '' || !groups.includes('system:serviceaccounts')) return { kind: 'invalid' };
  return { kind: 'valid', namespace, serviceAccount };
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
