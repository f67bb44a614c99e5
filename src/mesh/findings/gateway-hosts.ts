import { objectKey, parseObjectKey } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import { quote } from '../../api/quote.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { GatewayModel, GatewayServer } from '../../model/gateway.ts';
import { type HostSet, hostSet, overlaps } from '../../model/host-set.ts';
import { type VirtualServiceModel, meshGateway } from '../../model/virtual-service.ts';

/** The hosts of a Gateway's servers. */
export interface GatewayHosts {
  readonly all: Hosts;
  /** Of the servers that take each kind of routes; undefined: there are none. `tls`: those that forward by server name. */
  readonly taking: Readonly<Record<RouteKind, Hosts | undefined>>;
}

/** By the namespace whose VirtualServices may use them; `*`: any. */
export type Hosts = ReadonlyMap<string, HostSet>;

/** The lists of routes that a VirtualService has. */
export type RouteKind = 'http' | 'tls' | 'tcp';

const taking: Readonly<Record<RouteKind, readonly GatewayServer['serves']['kind'][]>> = {
  http: ['http', 'https'],
  tls: ['passthrough'],
  tcp: ['tcp', 'tls'],
};

/** By object key. Few changes to a Gateway change its hosts, and all its VirtualServices look at these. */
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

/**
 * Hosts and server names of a VirtualService that its Gateways do not have, so that it is never served by them. Nothing
 * is said about Gateways that do not exist or are invalid, or about what the mesh's sidecars serve.
 */
export function* outsideGateways(
  key: string,
  model: VirtualServiceModel,
  read: Reader,
  gatewayHosts: Collection<GatewayHosts>,
): Iterable<Problem> {
  const known = new Map(model.gateways.map((gateway) => [gateway, hostsOfGateway(key, gateway, read, gatewayHosts)]));
  const isOutside = (host: string, hosts: Hosts): boolean => !accepts(hosts, model, host);
  const report = (field: string, what: string, gateway: string): Problem => ({
    object: model.ref,
    field,
    reason: 'Ineffective',
    message: `No server of Gateway ${gateway} accepts ${what} from namespace ${model.namespace}, so it is never served there; add the host to the Gateway, or correct the name.`,
  });

  let serving = 0;
  for (const [i, gateway] of model.gateways.entries()) {
    const hosts = known.get(gateway)?.all;
    if (hosts === undefined || model.hosts.some((host) => !isOutside(host, hosts))) serving++;
    else yield report(`spec.gateways[${i}]`, listOf(model.hosts), gateway);
  }
  if (serving === 0) return;
  /** The Gateways, if all of them are known. */
  const gatewaysOf = (names: readonly string[]): readonly [string, GatewayHosts][] =>
    names.every((name) => known.get(name) !== undefined) ? names.map((name) => [name, known.get(name)!]) : [];
  const all = gatewaysOf(model.gateways);
  if (all.length > 0)
    for (const host of model.hosts)
      if (all.every(([, { all: hosts }]) => isOutside(host, hosts)))
        yield report('spec.hosts', quote(host), listed(all));
  for (const { field, matches } of model.tls)
    for (const [i, { gateways, sniHosts }] of matches.entries()) {
      const forwarding = gatewaysOf(gateways.length > 0 ? gateways : model.gateways).filter(
        ([, { taking }]) => taking.tls !== undefined,
      );
      if (forwarding.length === 0) continue;
      for (const name of sniHosts)
        if (forwarding.every(([, { taking }]) => isOutside(name, taking.tls!)))
          yield report(`${field}.match[${i}].sniHosts`, `server name ${quote(name)}`, listed(forwarding));
    }
}

/**
 * What a Gateway that a VirtualService names accepts; undefined for the mesh, and for one that is not there or invalid.
 *
 * @param key of the VirtualService.
 */
export function hostsOfGateway(
  key: string,
  gateway: string,
  read: Reader,
  gatewayHosts: Collection<GatewayHosts>,
): GatewayHosts | undefined {
  if (gateway === meshGateway) return undefined;
  const [namespace = '', name = ''] = gateway.split('/');
  return read.get(gatewayHosts, objectKey(parseObjectKey(key).source, namespace, name));
}

/** Whether the servers take something for a host of the VirtualService. */
export function accepts(hosts: Hosts, { namespace }: Pick<VirtualServiceModel, 'namespace'>, host: string): boolean {
  return ['*', namespace].some((from) => {
    const set = hosts.get(from);
    return set !== undefined && overlaps(set, host);
  });
}

const listed = (gateways: readonly [string, GatewayHosts][]): string => gateways.map(([name]) => name).join(' or ');

function listOf([first = '', ...others]: readonly string[]): string {
  return others.length === 0 ? quote(first) : `${quote(first)} or any other host of this VirtualService`;
}
