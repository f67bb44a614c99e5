import { parseNameKey } from '../../api/keys.ts';
import { objectKey, parseObjectKey } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import { quote } from '../../api/quote.ts';
import type { Collection, Reader } from '../../cache/graph.ts';
import { hostSet } from '../../model/host-set.ts';
import { type VirtualServiceModel, meshGateway, nameOfKey } from '../../model/virtual-service.ts';
import { type GatewayHosts, type Hosts, accepts, acceptsSome } from '../findings/gateway-hosts.ts';

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
  const places = placesOfGateways(model);
  const known = new Map([...places.keys()].map((name) => [name, hostsOfGateway(key, name, read, gatewayHosts)]));
  const own = hostSet(model.hosts);
  const isOutside = (host: string, { hosts }: Servers): boolean => !hosts.some((some) => accepts(some, model, host));
  const report = (field: string, what: string, gateway: string): Problem => ({
    object: model.ref,
    field,
    reason: 'Ineffective',
    message: `No server of Gateway ${gateway} accepts ${what} from namespace ${model.namespace}, so it is never served there; add the host to the Gateway, or correct the name.`,
  });

  let serving = 0;
  for (const [gateway, i] of places) {
    const hosts = known.get(gateway)?.all;
    if (hosts === undefined || acceptsSome(hosts, model, own)) serving++;
    else yield report(`spec.gateways[${i}]`, listOf(model.hosts), gateway);
  }
  if (serving === 0) return;
  /** The Gateways, if all of them are known. */
  const gatewaysOf = (names: Iterable<string>): readonly [string, GatewayHosts][] => {
    const found = [...new Set(names)].map((name) => [name, known.get(name)] as const);
    return found.every((each): each is [string, GatewayHosts] => each[1] !== undefined) ? found : [];
  };
  const forwarding = (gateways: readonly [string, GatewayHosts][], names: number): Servers | undefined =>
    serversOf(
      gateways.flatMap(([name, { taking }]) => (taking.tls === undefined ? [] : [[name, taking.tls] as const])),
      names,
    );
  const all = gatewaysOf(places.keys());
  const servers = serversOf(
    all.map(([name, { all: hosts }]) => [name, hosts]),
    model.hosts.length,
  );
  if (servers !== undefined)
    for (const host of model.hosts)
      if (isOutside(host, servers)) yield report('spec.hosts', quote(host), servers.listed);
  const forwardingOfAll = forwarding(all, Infinity);
  for (const { field, matches } of model.tls)
    for (const [i, { parents, sniHosts }] of matches.entries()) {
      const found =
        parents.length > 0 ? forwarding(gatewaysOf(parents.map(nameOfKey)), sniHosts.length) : forwardingOfAll;
      if (found === undefined) continue;
      for (const name of sniHosts)
        if (isOutside(name, found))
          yield report(`${field}.match[${i}].sniHosts`, `server name ${quote(name)}`, found.listed);
    }
}

/** Several Gateways together. */
interface Servers {
  readonly hosts: readonly Hosts[];
  /** For people. */
  readonly listed: string;
}

/** @param names how many are compared with them: if that is many, they are compared with all hosts at once. */
function serversOf(gateways: readonly (readonly [string, Hosts])[], names: number): Servers | undefined {
  const [first, ...others] = gateways;
  if (first === undefined) return undefined;
  if (others.length === 0) return { hosts: [first[1]], listed: first[0] };
  const named = gateways.slice(0, MOST_NAMED).map(([name]) => name);
  const more = gateways.length > MOST_NAMED ? [`${gateways.length - MOST_NAMED} others`] : [];
  const single = gateways.map(([, hosts]) => hosts);
  let size = 0;
  for (const hosts of single) for (const set of hosts.values()) size += set.hosts.size;
  return {
    hosts: names * gateways.length < size ? single : [joined(single)],
    listed: [...named, ...more].join(' or '),
  };
}

function joined(all: readonly Hosts[]): Hosts {
  const sets = Map.groupBy(
    all.flatMap((hosts) => [...hosts]),
    ([namespace]) => namespace,
  );
  return new Map(
    Array.from(sets, ([namespace, some]) => [namespace, hostSet(some.flatMap(([, set]) => [...set.hosts]))]),
  );
}

/** Gateways in a message. */
const MOST_NAMED = 5;

/** The Gateways that a VirtualService names, each with the place in its list where it is first. */
export function placesOfGateways({ gateways }: Pick<VirtualServiceModel, 'gateways'>): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const [i, gateway] of gateways.entries()) if (!places.has(gateway)) places.set(gateway, i);
  return places;
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
  const { namespace, name } = parseNameKey(gateway);
  return read.get(gatewayHosts, objectKey(parseObjectKey(key).source, namespace, name));
}

function listOf([first = '', ...others]: readonly string[]): string {
  return others.length === 0 ? quote(first) : `${quote(first)} or any other host of this VirtualService`;
}
