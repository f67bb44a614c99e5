import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import type { GatewayModel, GatewayServer } from '../../model/gateway.ts';
import { type HostSet, haveCommon, hostSet, overlaps } from '../../model/host-set.ts';

/** The hosts of a Gateway's servers. */
export interface GatewayHosts {
  readonly all: Hosts;
  /** Of the servers for each kind of routes. Undefined without such servers. `tls`: servers that forward by server name. */
  readonly taking: Readonly<Record<RouteKind, Hosts | undefined>>;
}

/** By the namespace whose routes may use them; `*`: any. */
export type Hosts = ReadonlyMap<string, HostSet>;

/** For requests; for connections, by server name; for all other connections. */
export type RouteKind = 'http' | 'tls' | 'tcp';

const taking: Readonly<Record<RouteKind, readonly GatewayServer['serves']['kind'][]>> = {
  http: ['http', 'https'],
  tls: ['passthrough'],
  tcp: ['tcp', 'tls'],
};

/** By object key. Few changes to a Gateway change its hosts, and all its routes look at these. */
export function declareGatewayHosts(graph: Graph, models: Collection<GatewayModel>): Collection<GatewayHosts> {
  return graph.derive('hosts of gateways', models, (key, { servers }, _, emit: Emit<GatewayHosts>) => {
    const of = (routes: RouteKind): Hosts | undefined => {
      const some = servers.filter(({ serves }) => taking[routes].includes(serves.kind));
      return some.length === 0 ? undefined : hostsOf(some);
    };
    emit(key, { all: hostsOf(servers), taking: { http: of('http'), tls: of('tls'), tcp: of('tcp') } });
  });
}

function hostsOf(servers: readonly GatewayServer[]): Hosts {
  const byNamespace = Map.groupBy(
    servers.flatMap(({ hosts }) => hosts),
    ({ namespace }) => namespace,
  );
  return new Map([...byNamespace].map(([namespace, hosts]) => [namespace, hostSet(hosts.map(({ host }) => host))]));
}

/** Whether the servers take something for a host of an object with routes. */
export function accepts(hosts: Hosts, { namespace }: { readonly namespace: string }, host: string): boolean {
  return ['*', namespace].some((from) => {
    const set = hosts.get(from);
    return set !== undefined && overlaps(set, host);
  });
}

/** The same for any of its hosts, in as many steps as the fewer of the two have. */
export function acceptsSome(hosts: Hosts, of: { readonly namespace: string }, own: HostSet): boolean {
  return ['*', of.namespace].some((from) => {
    const set = hosts.get(from);
    return set !== undefined && haveCommon(set, own);
  });
}
