import { isIPv6 } from 'node:net';
import { compareAge } from '../model/age.ts';
import { canonicalCidr } from '../model/cidr.ts';
import { type Client, type DestinationTarget, type Targets, matchesSelector, targetIn } from '../model/client.ts';
import type { EndpointSummary } from '../model/endpoint.ts';
import { isServed } from '../model/dns-endpoints.ts';
import { type ConnectionRoutes, type L4Destination, type L4Match, routesOn } from '../model/l4-routes.ts';
import { contains } from '../model/remembered.ts';
import { isWildcard } from '../model/host.ts';
import type { L4Chain, L4Target } from '../model/listener.ts';
import type { ListenerSettings } from '../model/mesh-config.ts';
import {
  type MeshService,
  type ServicePort,
  aliasesFor,
  isTls,
  outboundCluster,
  portNumbered,
} from '../model/service.ts';
import { subsetOf } from '../model/policy-resolution.ts';
import type { DestinationRuleModel, TrafficPolicy } from '../model/traffic-policy.ts';
import { MESH_KEY, inOrderOfPrecedence } from '../model/route-binding.ts';
import { blackHoleCluster } from '../model/cluster-names.ts';
import { statName } from '../model/stat-name.ts';
import { domainsOf } from './domains.ts';

export interface ChainInput {
  readonly service: MeshService;
  /** Port of the listener. */
  readonly port: ServicePort;
  readonly client: Client;
  readonly summary: EndpointSummary;
  /** The routes that this client sees for the host. */
  readonly routes: readonly ConnectionRoutes[];
  /** Of what the routes on this port lead to. */
  readonly targets: Targets;
  readonly rule?: DestinationRuleModel | undefined;
  readonly settings: ListenerSettings;
  /** The service's ranges, if the listener's address does not identify the service. */
  readonly subnets: readonly string[];
  /** Other services may be at this address and port: only server names and ranges distinguish them. */
  readonly shared: boolean;
}

/** Where connections to a service go: by `tls` or `tcp` routes, then to the service itself. */
export function l4Chains(input: ChainInput): readonly L4Chain[] {
  const oldestFirst = [...input.routes].sort(compareAge);
  const all = inOrderOfPrecedence(oldestFirst, input.client.namespace, (routes) => routes);
  return isTls(input.port.protocol) ? tlsChains(input, all) : tcpChains(input, all);
}

/** What the routes on a port may lead to. */
export function l4Destinations(port: ServicePort, all: readonly ConnectionRoutes[]): readonly L4Destination[] {
  return all.flatMap(({ tcp, tls }) =>
    routesOn(port.number, isTls(port.protocol) ? tls : tcp).flatMap(({ route }) => route.destinations),
  );
}

function tlsChains(input: ChainInput, all: readonly ConnectionRoutes[]): L4Chain[] {
  const found = new Map<string, L4Chain>();
  let { subnets } = input;
  for (const routes of all)
    for (const { route, matches } of routesOn(input.port.number, routes.tls))
      for (const match of matches) {
        if (!holds(match, input)) continue;
        // In Istio, the ranges of one match also apply to later matches that name none. Existing meshes rely on that.
        if (match.destinationSubnets.length > 0 && input.port.number > 0) subnets = match.destinationSubnets;
        const key = `${match.sniHosts.join(',')}|${match.destinationSubnets.join(',')}`;
        if (found.has(key)) continue;
        const target = routeTarget(route.destinations, routes, input);
        found.set(key, { serverNames: match.sniHosts, subnets, target, route: { ref: routes.ref } });
      }
  return found.size > 0 ? [...found.values()] : [ownChain(input, serverNames(input))];
}

/** By the name that the client asks for, if nothing else tells services apart. */
function serverNames({ service, client, port, shared }: ChainInput): readonly string[] {
  if (!shared && !isDynamic(service)) return [];
  const aliases = aliasesFor(service, client.namespace).flatMap(({ host }) =>
    domainsOf({ client, host, service: { ...service, host, aliases: [], addresses: [] }, port: port.number }).filter(
      (domain) => !domain.endsWith('.') && !isWildcard(domain),
    ),
  );
  return [service.host, ...aliases];
}

function tcpChains(input: ChainInput, all: readonly ConnectionRoutes[]): L4Chain[] {
  const found: L4Chain[] = [];
  for (const routes of all)
    for (const { route, matches } of routesOn(input.port.number, routes.tcp)) {
      const holding = matches.filter((match) => holds(match, input));
      if (route.matches.length > 0 && holding.length === 0) continue;
      const target = routeTarget(route.destinations, routes, input);
      const chain = { serverNames: [], target, route: { ref: routes.ref } };
      // A match without a destination takes everything that is left. A unix socket has no destinations.
      const terminal =
        holding.length === 0 ||
        input.port.number === 0 ||
        holding.some(({ destinationSubnets }) => destinationSubnets.length === 0);
      if (terminal) return [...found, { ...chain, subnets: input.subnets }];
      found.push({ ...chain, subnets: holding.flatMap(({ destinationSubnets }) => destinationSubnets) });
    }
  const covered = found.some(({ subnets }) => input.subnets.length > 0 && sameRanges(subnets, input.subnets));
  return covered ? found : [...found, ownChain(input, [])];
}

function sameRanges(a: readonly string[], b: readonly string[]): boolean {
  const text = (ranges: readonly string[]): string => ranges.map(canonicalCidr).sort().join();
  return text(a) === text(b);
}

/** Whether a match for the port can apply, as far as that is known before there is a connection. */
function holds(match: L4Match, { client }: ChainInput): boolean {
  return (
    (match.parents.length === 0 || contains(match.parents, MESH_KEY)) &&
    (match.sourceNamespace === '' || match.sourceNamespace === client.namespace) &&
    matchesSelector(client, match.sourceLabels)
  );
}

/** A chain to the service itself. */
function ownChain(input: ChainInput, names: readonly string[]): L4Chain {
  const { service, port, rule, settings } = input;
  const [only] = service.ports;
  // A unix socket has no port: the target is clear only for a service with exactly one.
  const number = port.number === 0 && service.ports.length === 1 && only !== undefined ? only.number : port.number;
  const exists = portNumbered(service.ports, number) !== undefined;
  const cluster =
    exists && isServed(service, number, {}, input.summary)
      ? outboundCluster(number, '', service.host)
      : blackHoleCluster;
  const pattern = settings.outboundClusterStatName;
  return {
    serverNames: names,
    subnets: input.subnets,
    target: {
      clusters: [{ name: cluster, weight: 0 }],
      weighted: false,
      statPrefix:
        pattern === '' || cluster === blackHoleCluster
          ? cluster
          : statName(pattern, { service, port: { number, name: '' } }),
      protocol: port.protocol,
      ...policyOf(rule, ''),
      ...(isDynamic(service) ? { dynamicHost: service.host, dynamicPort: port.number } : {}),
      origins: [...service.origins, ...(rule?.origins ?? [])],
    },
  };
}

function isDynamic(service: MeshService): boolean {
  return service.resolution === 'DynamicDNS' && isWildcard(service.host);
}

/** Where the destinations of a `tcp` or `tls` route lead. A missing destination keeps its weight, and leads nowhere. */
export function routeTarget(
  destinations: readonly L4Destination[],
  { name, namespace }: Pick<ConnectionRoutes, 'name' | 'namespace'>,
  { port, settings, targets: table }: Pick<ChainInput, 'port' | 'targets' | 'settings'>,
): L4Target {
  const targets = destinations.map((destination) => ({ destination, target: targetIn(table, destination) }));
  const [first] = targets;
  if (first === undefined) return blackHole(port);
  const rule = first.target.kind === 'cluster' ? first.target.rule : undefined;
  const origins = [...(rule?.origins ?? [])];
  if (targets.length > 1) {
    const clusters = targets
      .filter(({ destination }) => destination.weight > 0)
      .map(({ destination, target }) => ({ name: clusterOf(target), weight: destination.weight }));
    if (clusters.length === 0) return blackHole(port);
    const statPrefix = `${name}.${namespace}`;
    return { clusters, weighted: true, statPrefix, protocol: port.protocol, ...policyOf(rule, ''), origins };
  }
  const { destination, target } = first;
  const cluster = clusterOf(target);
  const pattern = settings.outboundClusterStatName;
  const statPrefix =
    pattern === '' || target.kind === 'missing'
      ? cluster
      : statName(pattern, { service: target.service, port, subset: destination.subset });
  return {
    clusters: [{ name: cluster, weight: 0 }],
    weighted: false,
    statPrefix,
    protocol: port.protocol,
    ...policyOf(rule, destination.subset),
    origins,
  };
}

function clusterOf(target: DestinationTarget): string {
  return target.kind === 'cluster' ? target.cluster : blackHoleCluster;
}

function blackHole(port: ServicePort): L4Target {
  return {
    clusters: [{ name: blackHoleCluster, weight: 0 }],
    weighted: false,
    statPrefix: blackHoleCluster,
    protocol: port.protocol,
    hashSourceIp: false,
    origins: [],
  };
}

/** What a rule changes about the client's connections. Settings for single ports do not apply to these. */
export function policyOf(
  rule: DestinationRuleModel | undefined,
  subsetName: string,
): Pick<L4Target, 'idleTimeout' | 'maxConnectionDuration' | 'hashSourceIp' | 'tunnel'> {
  const top: TrafficPolicy = rule?.policy ?? {};
  const subset = subsetOf(rule, subsetName)?.policy;
  const { idleTimeout, maxConnectionDuration } = top.connectionPool?.tcp ?? {};
  const tunnel = subsetName === '' ? top.tunnel : subset?.tunnel;
  const balancer = subset?.loadBalancer ?? top.loadBalancer;
  return {
    ...(idleTimeout === undefined ? {} : { idleTimeout }),
    ...(maxConnectionDuration === undefined ? {} : { maxConnectionDuration }),
    hashSourceIp: balancer?.consistentHash?.key?.kind === 'sourceIp',
    ...(tunnel === undefined
      ? {}
      : {
          tunnel: {
            hostname: `${isIPv6(tunnel.targetHost) ? `[${tunnel.targetHost}]` : tunnel.targetHost}:${tunnel.targetPort}`,
            usePost: tunnel.protocol === 'POST',
          },
        }),
  };
}
