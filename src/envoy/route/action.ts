import type { BackendMirror, BackendTarget, ForwardToBackends, HeaderOperations } from '../../model/route.ts';
import type { HashKey } from '../../model/traffic-policy.ts';
import type { Traits } from '../../model/traits.ts';
import { duration } from '../duration.ts';
import { blackHoleCluster } from '../../model/cluster-names.ts';
import type {
  RouteAction,
  RouteAction_HashPolicy as HashPolicy,
  RouteAction_RequestMirrorPolicy as RequestMirrorPolicy,
} from '../gen/types.gen.ts';
import { regexMatcher } from '../regex.ts';
import { retryPolicy } from './retry.ts';
import { fractionalPercent } from './filters.ts';
import { headersOf, type HeaderLists } from './headers.ts';
import { wrapped } from '../encode/wrappers.ts';

const noTimeout = { timeout: duration(0), maxGrpcTimeout: duration(0) };

/** Envoy's own default is 15 s, so a route always sets a timeout. */
export function timeouts(ms: number | undefined): Pick<RouteAction, 'timeout' | 'maxGrpcTimeout'> {
  if (ms === undefined) return noTimeout;
  const timeout = duration(ms);
  return { timeout, maxGrpcTimeout: timeout };
}

/** Never the name of a cluster: what Istio writes for a backend that may not be used. */
const unknownService = 'UnknownService';

/** A target that does not exist becomes a cluster without endpoints, which answers for it, or no cluster at all. */
function clusterOf(target: BackendTarget, { invalidStatus }: Pick<ForwardToBackends, 'invalidStatus'>): string {
  if (target.kind === 'cluster') return target.cluster;
  return invalidStatus === undefined ? blackHoleCluster : unknownService;
}

/** The clusters that requests may go to. */
export function clustersOfAction(action: ForwardToBackends): readonly string[] {
  const targets = [...action.backends, ...action.mirrors].map(({ target }) => clusterOf(target, action));
  return targets.filter((name) => name !== unknownService);
}

/** @param headers of the rule. */
export function routeAction(
  action: ForwardToBackends,
  headers: HeaderOperations | undefined,
  traits: Traits,
): RouteAction {
  const { backends, mirrors, rewrite, timeout, retries, retriesStay, invalidStatus } = action;
  const authority = rewrite?.authority || headers?.authority;
  const shared: RouteAction = {
    ...timeouts(timeout),
    ...(rewrite?.uri === undefined ? {} : { prefixRewrite: rewrite.uri }),
    ...(rewrite?.regex === undefined
      ? {}
      : {
          regexRewrite: {
            pattern: regexMatcher(rewrite.regex.match, traits),
            substitution: rewrite.regex.rewrite,
          },
        }),
    ...(authority ? { hostRewriteLiteral: authority } : {}),
    requestMirrorPolicies: mirrors.map((mirror) => mirrorPolicy(mirror, clusterOf(mirror.target, action))),
    hashPolicy: backends.flatMap(({ hash }) => (hash === undefined ? [] : [hashPolicy(hash)])),
    retryPolicy: retryPolicy(retries, retriesStay),
    ...(invalidStatus === 500 && { clusterNotFoundResponseCode: 'INTERNAL_SERVER_ERROR' }),
  };
  const [only] = backends;
  if (only !== undefined && only.weight === undefined) {
    return {
      cluster: clusterOf(only.target, action),
      ...(only.headers?.authority ? { hostRewriteLiteral: only.headers.authority } : {}),
      ...shared,
    };
  }
  return {
    ...shared,
    weightedClusters: {
      clusters: backends.map((backend) => ({
        name: clusterOf(backend.target, action),
        weight: wrapped(backend.weight ?? 0),
        ...headersOf(backend.headers),
        ...(backend.headers?.authority ? { hostRewriteLiteral: backend.headers.authority } : {}),
      })),
    },
  };
}

/** Lists in place of the rule's own: its operations, followed by those of its only backend. */
export function backendHeaders({ backends }: ForwardToBackends, headers: HeaderOperations | undefined): HeaderLists {
  const [only] = backends;
  return only?.weight === undefined && only?.headers !== undefined ? headersOf(headers, only.headers) : {};
}

function hashPolicy(hash: HashKey): HashPolicy {
  switch (hash.kind) {
    case 'header':
      return { header: { headerName: hash.name } };
    case 'queryParameter':
      return { queryParameter: { name: hash.name } };
    case 'sourceIp':
      return { connectionProperties: { sourceIp: true } };
    case 'cookie':
      return {
        cookie: {
          name: hash.name,
          path: hash.path,
          ttl: hash.ttl === undefined ? undefined : duration(hash.ttl),
          attributes: hash.attributes,
        },
      };
  }
}

function mirrorPolicy({ percentage }: BackendMirror, cluster: string): RequestMirrorPolicy {
  return {
    cluster,
    runtimeFraction: {
      defaultValue:
        percentage === undefined
          ? { numerator: 100 }
          : percentage.whole
            ? { numerator: percentage.value }
            : fractionalPercent(percentage.value),
    },
    traceSampled: wrapped(false),
    disableShadowHostSuffixAppend: true,
  };
}
