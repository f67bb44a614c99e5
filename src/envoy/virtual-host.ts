import { distinctRefs, type ObjectRef } from '../api/object.ts';
import type { OutboundPolicy, RouteSettings } from '../model/mesh-config.ts';
import { hashKeyOf } from '../model/policy-resolution.ts';
import { outboundCluster, type MeshService } from '../model/service.ts';
import type { DestinationRuleModel } from '../model/traffic-policy.ts';
import { blackHoleCluster, passthroughCluster } from './fixed-clusters.ts';
import type { Route, VirtualHost } from './gen/types.gen.ts';
import { retryPolicy } from './retry.ts';
import { hashPolicy, timeouts } from './route-action.ts';
import { anyRequest } from './route-match.ts';
import { type RoutePiece, joinPieces, reachedPieces } from './route-pieces.ts';
import { bracketed } from './virtual-host-domains.ts';

export interface VirtualHostInput {
  /** The service of the host; absent for a host that only a VirtualService names. */
  readonly service?: MeshService;
  readonly host: string;
  /** Port of the service. */
  readonly port: number;
  /** Of the VirtualService, in order. */
  readonly routes?: readonly RoutePiece[];
  /** The rule of the service itself. */
  readonly rule?: DestinationRuleModel;
  /** False: the service has no cluster. */
  readonly served?: boolean;
  readonly settings: RouteSettings;
  readonly domains: readonly string[];
  /** The table is of this service alone: every request is for it. */
  readonly sniffed?: boolean;
}

export interface BuiltVirtualHost {
  /** Undefined when there is nothing to serve: no domain is left, or no route holds. */
  readonly virtualHost: VirtualHost | undefined;
  /** Encoded routes, which it has in place of its own. */
  readonly routes: readonly Uint8Array[];
  /** Names of the clusters that its routes name. Sorted, distinct. */
  readonly clusters: readonly string[];
  readonly origins: readonly ObjectRef[];
}

/** The virtual host of one host on a sidecar's port. */
export function buildVirtualHost(input: VirtualHostInput): BuiltVirtualHost {
  const domains = input.sniffed ? ['*'] : input.domains;
  const found = routesOf(input);
  if (found === undefined || domains.length === 0) {
    return { virtualHost: undefined, routes: [], clusters: [], origins: [] };
  }
  const { own, encoded, clusters, origins } = found;
  return {
    virtualHost: {
      name: `${bracketed(input.host)}:${input.port}`,
      domains,
      ...(own && { routes: [own] }),
      includeRequestAttemptCount: true,
    },
    routes: encoded,
    clusters,
    origins: distinctRefs([...namedBy(input.service), ...origins]),
  };
}

/** The objects that give a service its names. */
function namedBy(service: MeshService | undefined): readonly ObjectRef[] {
  return service === undefined ? [] : [service, ...service.aliases].flatMap(({ origins }) => origins);
}

interface FoundRoutes {
  readonly own?: Route;
  readonly encoded: readonly Uint8Array[];
  readonly clusters: readonly string[];
  readonly origins: readonly ObjectRef[];
}

/** The VirtualService's routes; where none of them holds for this client, the service is served as without it. */
function routesOf(input: VirtualHostInput): FoundRoutes | undefined {
  const pieces = reachedPieces(input.routes ?? []);
  const encoded = pieces.flatMap(({ routes, catchAll }) => [routes, catchAll]).filter(({ length }) => length > 0);
  if (encoded.length > 0) return { encoded, ...joinPieces(pieces) };
  return input.service === undefined ? undefined : defaultRoute(input.service, input);
}

function defaultRoute(service: MeshService, { port, rule, served = true, settings }: VirtualHostInput): FoundRoutes {
  const cluster = served ? outboundCluster(port, '', service.host) : blackHoleCluster;
  const hash = hashKeyOf(rule, '', port);
  const own: Route = {
    name: 'default',
    match: anyRequest,
    route: {
      cluster,
      ...timeouts(undefined),
      // Unlike in a VirtualService's routes, a hash does not keep retries from other endpoints.
      retryPolicy: retryPolicy(settings.defaultHttpRetryPolicy, false),
      ...(hash === undefined ? {} : { hashPolicy: [hashPolicy(hash)] }),
    },
    decorator: { operation: `${service.host}:${port}/*` },
  };
  return { own, encoded: [], clusters: [cluster], origins: hash === undefined ? [] : (rule?.origins ?? []) };
}

/** For requests whose host is not known: the last virtual host of every table. */
export function catchAllVirtualHost(
  policy: OutboundPolicy,
  egressProxyCluster?: string,
): Pick<BuiltVirtualHost, 'clusters'> & { readonly virtualHost: VirtualHost } {
  const [name, clusters] =
    policy === 'ALLOW_ANY' ? ['allow_any', [egressProxyCluster ?? passthroughCluster]] : ['block_all', []];
  const [cluster] = clusters;
  const route: Route =
    cluster === undefined ? { directResponse: { status: 502 } } : { route: { cluster, ...timeouts(undefined) } };
  return {
    virtualHost: {
      name,
      domains: ['*'],
      routes: [{ name, match: anyRequest, ...route }],
      includeRequestAttemptCount: true,
    },
    clusters,
  };
}
