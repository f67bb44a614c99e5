import { distinctRefs, type ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { DestinationLookup } from '../model/client.ts';
import type { BoundServer, MergedListener, ServerTls } from '../model/gateway.ts';
import type { ListenerSettings } from '../model/mesh-config.ts';
import type { Traits } from '../model/traits.ts';
import type { VirtualServiceModel } from '../model/virtual-service.ts';
import { listenerAccessLogs } from './access-log.ts';
import { downstreamTls } from './downstream-tls.ts';
import { listenerFilters } from './filters.ts';
import { type GatewayForward, passthroughRoutes, tcpRoute } from './gateway-forward.ts';
import type { Filter, FilterChain, Listener, TransportSocket } from './gen/types.gen.ts';
import { httpConnectionManager } from './http-connection-manager.ts';
import { listenerAddress, realListener } from './listener.ts';
import { type FilterContext, l4Filters } from './outbound-filters.ts';
import { CONNECT_TIMEOUT } from './outbound-listener.ts';

export interface GatewayListenerInput {
  readonly listener: MergedListener;
  readonly traits: Traits;
  readonly settings: ListenerSettings;
  /** The VirtualServices of a Gateway (`namespace/name`) that the router sees, in order of precedence. */
  readonly virtualServices: (gateway: string) => readonly VirtualServiceModel[];
  readonly lookup: DestinationLookup;
}

export interface BuiltGatewayListener {
  /** Undefined when no server has anything to serve: a TCP server without a route, for instance. */
  readonly listener: Listener | undefined;
  /** Names of the clusters that the listener itself refers to. */
  readonly clusters: readonly string[];
  readonly problems: readonly Problem[];
  readonly origins: readonly ObjectRef[];
}

/** One listener of a router. */
export function buildGatewayListener(input: GatewayListenerInput): BuiltGatewayListener {
  const { listener: merged, traits, settings } = input;
  const chains = new Chains({ traits, settings }, input);
  for (const bound of merged.servers) chains.addServer(bound);
  const { found, problems } = chains;
  const references = {
    clusters: [...new Set(found.flatMap(({ clusters }) => clusters))].sort(),
    problems,
    origins: distinctRefs(found.flatMap(({ origins }) => origins)),
  };
  if (found.length === 0) return { listener: undefined, ...references };
  const logs = listenerAccessLogs(settings);
  const looksIntoTls = found.some(({ serverNames, socket }) => serverNames.length > 0 || socket !== undefined);
  const inspectors = [
    // What it reads comes before TLS.
    ...(settings.gatewayTopology.proxyProtocol ? [listenerFilters.proxyProtocol] : []),
    ...(looksIntoTls ? [listenerFilters.tlsInspector] : []),
  ];
  return {
    listener: {
      name: merged.name,
      address: listenerAddress(merged.address, merged.port),
      trafficDirection: 'OUTBOUND',
      ...realListener,
      ...(traits.outboundExactBalance ? { connectionBalanceConfig: { exactBalance: {} } } : {}),
      ...(inspectors.length === 0 ? {} : { listenerFilters: inspectors }),
      filterChains: found.map(printChain),
      ...(logs.length === 0 ? {} : { accessLog: logs }),
    },
    ...references,
  };
}

interface Chain {
  /** Empty or with `*`: any. */
  readonly serverNames: readonly string[];
  readonly socket: TransportSocket | undefined;
  readonly filters: readonly Filter[];
  readonly clusters: readonly string[];
  readonly origins: readonly ObjectRef[];
}

function printChain({ serverNames, socket, filters }: Chain): FilterChain {
  const any = serverNames.length === 0 || serverNames.includes('*');
  return {
    ...(any ? {} : { filterChainMatch: { serverNames: [...serverNames].sort() } }),
    filters,
    ...(socket === undefined ? {} : { transportSocket: socket }),
    transportSocketConnectTimeout: CONNECT_TIMEOUT,
  };
}

/** The filter chains of a listener. */
class Chains {
  readonly found: Chain[] = [];
  readonly problems: Problem[] = [];
  readonly context: FilterContext;
  private readonly input: GatewayListenerInput;
  /** Envoy refuses a listener with two chains for one server name. */
  private readonly taken = new Set<string>();

  constructor(context: FilterContext, input: GatewayListenerInput) {
    this.context = context;
    this.input = input;
  }

  addServer(bound: BoundServer): void {
    const { serves } = bound.server;
    switch (serves.kind) {
      case 'http':
        // One connection manager serves all of them.
        if (this.found.length === 0) this.addChain(bound, [], undefined, this.http(bound, ''));
        return;
      case 'https':
        this.addTerminating(bound, serves.tls, () => this.http(bound, bound.server.name));
        return;
      case 'tcp': {
        const filters = this.tcp(bound);
        if (filters !== undefined) this.addChain(bound, [], undefined, filters);
        return;
      }
      case 'tls':
        this.addTerminating(bound, serves.tls, () => this.tcp(bound));
        return;
      case 'passthrough':
        this.addPassthrough(bound);
        return;
      case 'autoPassthrough':
        return;
    }
  }

  private addTerminating(bound: BoundServer, tls: ServerTls, content: () => Content | undefined): void {
    const socket = downstreamTls({ ...this.context, tls });
    if (socket === undefined) {
      this.problems.push({
        object: bound.ref,
        field: `${bound.server.field}.tls.mode`,
        reason: 'Ineffective',
        message: `${tls.mode} needs the certificates that Istio's agent gets; a router without the agent leaves this server out. Use MUTUAL with certificates of its own.`,
      });
      return;
    }
    const found = content();
    if (found !== undefined) this.addChain(bound, serverNamesOf(bound), socket, found);
  }

  private addPassthrough(bound: BoundServer): void {
    const { routes, problems } = passthroughRoutes(bound, this.forwarding(bound));
    this.problems.push(...problems);
    for (const { model, field, serverNames, target } of routes) {
      const clash = this.claim(serverNames);
      if (clash === undefined) this.push(bound, serverNames, undefined, this.forward(model, target));
      else
        this.problems.push({
          object: model.ref,
          field,
          reason: 'Conflicted',
          message: `Server name ${JSON.stringify(clash)} has a route on port ${bound.server.port.number} of Gateway ${bound.gateway} already, so this match is left out; remove the name from one of them.`,
        });
    }
  }

  private addChain(
    bound: BoundServer,
    serverNames: readonly string[],
    socket: TransportSocket | undefined,
    content: Content,
  ): void {
    if (this.claim(serverNames) === undefined) this.push(bound, serverNames, socket, content);
  }

  private push(
    bound: BoundServer,
    serverNames: readonly string[],
    socket: TransportSocket | undefined,
    { filters, clusters, origins }: Content,
  ): void {
    this.found.push({ serverNames, socket, filters, clusters, origins: [bound.ref, ...origins] });
  }

  /** Takes the names, unless one of them is taken. */
  private claim(serverNames: readonly string[]): string | undefined {
    const names = serverNames.length === 0 || serverNames.includes('*') ? ['*'] : serverNames;
    const clash = names.find((name) => this.taken.has(name.toLowerCase()));
    if (clash === undefined) for (const name of names) this.taken.add(name.toLowerCase());
    return clash;
  }

  private http({ server, routes }: BoundServer, statName: string): Content {
    const { traits, settings } = this.context;
    const manager = httpConnectionManager({
      direction: 'gateway',
      traits,
      settings,
      statPrefix: `outbound_${this.input.listener.name}`,
      ...(statName === '' ? {} : { statName }),
      routes,
      grpcWeb: server.port.protocol === 'GRPCWeb',
    });
    return { filters: [manager], clusters: [], origins: [] };
  }

  private tcp(bound: BoundServer): Content | undefined {
    const { route, problems } = tcpRoute(bound, this.forwarding(bound));
    this.problems.push(...problems);
    return route && this.forward(route.model, route.target);
  }

  private forwarding(bound: BoundServer): Parameters<typeof tcpRoute>[1] {
    const { virtualServices, lookup, settings } = this.input;
    return { virtualServices: virtualServices(bound.gateway), lookup, settings };
  }

  private forward(model: VirtualServiceModel, target: GatewayForward['target']): Content {
    return {
      filters: l4Filters(target, this.context),
      clusters: target.clusters.map(({ name }) => name),
      origins: [model.ref, ...target.origins],
    };
  }
}

type Content = Pick<Chain, 'filters' | 'clusters' | 'origins'>;

/** Clients' server names are compared in lower case. */
function serverNamesOf({ server }: BoundServer): readonly string[] {
  return [...new Set(server.hosts.map(({ host }) => host.toLowerCase()))];
}
