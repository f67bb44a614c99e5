import { quote } from '../api/quote.ts';
import type { DestinationTarget } from '../model/client.ts';
import type { HashKey } from '../model/traffic-policy.ts';
import type { Destination, ForwardAction, HttpRoute, Mirror } from '../model/virtual-service.ts';
import { duration } from './duration.ts';
import { blackHoleCluster } from './fixed-clusters.ts';
import type {
  RouteAction,
  RouteAction_HashPolicy as HashPolicy,
  RouteAction_RequestMirrorPolicy as RequestMirrorPolicy,
} from './gen/types.gen.ts';
import { regexMatcher } from './regex.ts';
import { retryPolicy } from './retry.ts';
import type { Found, RouteContext } from './route-context.ts';
import { fractionalPercent } from './route-filters.ts';
import { headersOf, type HeaderLists } from './route-headers.ts';
import { wrapped } from './values.ts';

const noTimeout = { timeout: duration(0), maxGrpcTimeout: duration(0) };

/** Envoy's own timeout is 15 s; a route always says otherwise. */
export function timeouts(ms: number | undefined): Pick<RouteAction, 'timeout' | 'maxGrpcTimeout'> {
  if (ms === undefined) return noTimeout;
  const timeout = duration(ms);
  return { timeout, maxGrpcTimeout: timeout };
}

export function hashPolicy(hash: HashKey): HashPolicy {
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

export interface Forwarded {
  readonly action: RouteAction;
  /** Replaces the route's own lists when its only destination has operations too. */
  readonly headers: HeaderLists;
  /** `host:port` of the only destination. */
  readonly operation?: string;
}

export function forward(route: HttpRoute, forwarding: ForwardAction, context: RouteContext, found: Found): Forwarded {
  const { rewrite, destinations } = forwarding;
  const authority = rewrite?.authority || route.headers?.authority;
  const retries = forwarding.retries ?? context.settings.defaultHttpRetryPolicy;
  const shared: RouteAction = {
    ...timeouts(forwarding.timeout),
    ...(rewrite?.uri === undefined ? {} : { prefixRewrite: rewrite.uri }),
    ...(rewrite?.regex === undefined
      ? {}
      : {
          regexRewrite: {
            pattern: regexMatcher(rewrite.regex.match, context.client.traits),
            substitution: rewrite.regex.rewrite,
          },
        }),
    ...(authority ? { hostRewriteLiteral: authority } : {}),
    requestMirrorPolicies: forwarding.mirrors?.map((mirror) => mirrorPolicy(mirror, route, context, found)),
  };

  const [only] = destinations;
  if (only !== undefined && destinations.length === 1) {
    const { target, cluster } = resolve(only, route, context, found);
    const hash = target.kind === 'cluster' ? target.hash : undefined;
    return {
      action: {
        cluster,
        ...(only.headers?.authority ? { hostRewriteLiteral: only.headers.authority } : {}),
        ...shared,
        ...(hash === undefined ? {} : { hashPolicy: [hashPolicy(hash)] }),
        retryPolicy: retryPolicy(retries, hash !== undefined),
      },
      headers: only.headers === undefined ? {} : headersOf(route.headers, only.headers),
      operation: operationOf(target.cluster),
    };
  }

  const resolved = destinations.map((destination) => ({
    destination,
    ...resolve(destination, route, context, found, destination.weight > 0),
  }));
  const weighted = resolved.filter(({ destination }) => destination.weight > 0);
  return {
    action: {
      ...shared,
      weightedClusters: {
        clusters: weighted.map(({ destination: { weight, headers }, cluster }) => ({
          name: cluster,
          weight: wrapped(weight),
          ...headersOf(headers),
          ...(headers?.authority ? { hostRewriteLiteral: headers.authority } : {}),
        })),
      },
      hashPolicy: weighted.flatMap(({ target }) =>
        target.kind === 'cluster' && target.hash !== undefined ? [hashPolicy(target.hash)] : [],
      ),
      retryPolicy: retryPolicy(retries, false),
    },
    headers: {},
  };
}

/** `outbound|80|v1|host` -> `host:80` */
function operationOf(cluster: string): string {
  const [, port = '', , host = ''] = cluster.split('|');
  return `${host}:${port}`;
}

function mirrorPolicy(mirror: Mirror, route: HttpRoute, context: RouteContext, found: Found): RequestMirrorPolicy {
  const { percentage } = mirror;
  return {
    cluster: resolve(mirror.destination, route, context, found).cluster,
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

/** What is missing is reported, and replaced by a cluster that answers for it. */
function resolve(
  destination: Destination,
  route: HttpRoute,
  { lookup, listenerPort }: RouteContext,
  found: Found,
  used = true,
): { target: DestinationTarget; cluster: string } {
  const target = lookup(destination, listenerPort);
  const cluster = target.kind === 'cluster' ? target.cluster : blackHoleCluster;
  if (used) found.cluster(cluster);
  if (target.kind === 'cluster') {
    if (target.hash !== undefined) for (const origin of target.rule?.origins ?? []) found.origins.add(origin);
    return { target, cluster };
  }
  if (target.what !== 'endpoints')
    found.problems.push({
      object: route.object,
      field: `${destination.field}.${target.what}`,
      reason: 'RefNotFound',
      message: explainMissing(target.what, target.cluster, destination),
    });
  return { target, cluster };
}

/** What the owner of a destination that leads nowhere is told. */
export function explainMissing(
  what: 'host' | 'port' | 'subset',
  cluster: string,
  { host, subset, port }: Destination,
): string {
  const until = 'Until then its requests are answered with 503.';
  switch (what) {
    case 'host':
      return `${quote(host)} does not exist or is not exported to the client; create or export it, or correct the name. ${until}`;
    case 'port':
      return port === undefined
        ? `${quote(host)} has no port ${portOf(cluster)}, the port the request arrived on; name a port that it has. ${until}`
        : `${quote(host)} has no port ${port}; name a port that it has. ${until}`;
    case 'subset':
      return `${quote(subset)} is not a subset of ${quote(host)}; define it in a DestinationRule for that host that the client sees. ${until}`;
  }
}

function portOf(cluster: string): string {
  return cluster.split('|')[1] ?? '';
}
