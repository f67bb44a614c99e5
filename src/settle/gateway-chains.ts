import type { ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import { quote } from '../api/quote.ts';
import type { Targets } from '../model/client.ts';
import type { BoundServer, GatewayChain, MergedListener, ServerTls, SettledGatewayListener } from '../model/gateway.ts';
import type { ListenerSettings } from '../model/mesh-config.ts';
import type { Traits } from '../model/traits.ts';
import { type GatewayForward, type ServerRoute, forwardOf } from './gateway-forward.ts';

export interface GatewayListenerContext {
  readonly traits: Pick<Traits, 'agent'>;
  readonly settings: ListenerSettings;
  /** What takes the connections of servers; absent: nothing. */
  readonly forwards: ReadonlyMap<BoundServer, ServerForwards>;
}

export interface ServerForwards {
  /** See {@link routesOfServer}. */
  readonly routes: readonly ServerRoute[];
  /** Of what these lead to, from the server's port. */
  readonly targets: Targets;
}

/** The result for the servers of one router listener: which connections it takes, and where they go. */
export function settleGatewayListener(
  { name, address, port, servers }: MergedListener,
  context: GatewayListenerContext,
): { readonly listener: SettledGatewayListener; readonly problems: readonly Problem[] } {
  const chains = new Chains(context);
  for (const bound of servers) chains.addServer(bound);
  const { found, forwardsFor, problems } = chains;
  return { listener: { name, address, port, chains: found, forwardsFor }, problems };
}

type Content = Pick<GatewayChain, 'serves' | 'origins'>;

class Chains {
  readonly found: GatewayChain[] = [];
  readonly forwardsFor: ObjectRef[] = [];
  readonly problems: Problem[] = [];
  readonly #context: GatewayListenerContext;
  /** Envoy rejects a listener with two chains for one server name. */
  readonly #taken = new Set<string>();

  constructor(context: GatewayListenerContext) {
    this.#context = context;
  }

  addServer(bound: BoundServer): void {
    const { serves } = bound.server;
    switch (serves.kind) {
      case 'http':
        // One connection manager serves all HTTP servers.
        if (this.found.length === 0) this.#add(bound, [], httpContent(bound, ''));
        return;
      case 'https':
        this.#addTerminating(bound, serves.tls, () => httpContent(bound, bound.server.name));
        return;
      case 'tcp': {
        const content = this.#tcp(bound);
        if (content !== undefined) this.#add(bound, [], content);
        return;
      }
      case 'tls':
        this.#addTerminating(bound, serves.tls, () => this.#tcp(bound));
        return;
      case 'passthrough':
        this.#addPassthrough(bound);
        return;
      case 'autoPassthrough':
        this.forwardsFor.push(bound.ref);
        return;
    }
  }

  #addTerminating(bound: BoundServer, tls: ServerTls, content: () => Content | undefined): void {
    // The mesh's certificates come from Istio's agent.
    if (tls.certificates.kind === 'mesh' && !this.#context.traits.agent) {
      const field = tls.mode === 'ISTIO_MUTUAL' ? 'mode' : 'credentialName';
      const what = tls.mode === 'ISTIO_MUTUAL' ? tls.mode : 'builtin://';
      this.problems.push({
        object: bound.ref,
        field: `${bound.server.field}.tls.${field}`,
        reason: 'Ineffective',
        message: `${what} needs the certificates that Istio's agent obtains; a router without the agent leaves this server out. Use MUTUAL with your own certificates.`,
      });
      return;
    }
    const found = content();
    if (found !== undefined) this.#add(bound, serverNamesOf(bound), found, tls);
  }

  #addPassthrough(bound: BoundServer): void {
    for (const { forward, names } of this.#forwards(bound))
      for (const { field, serverNames } of names) {
        const clash = this.#add(bound, serverNames, l4Content(forward));
        if (clash !== undefined)
          this.problems.push({
            object: forward.ref,
            field,
            reason: 'Conflicted',
            message: `Server name ${quote(clash)} already has a route on port ${bound.server.port.number} of Gateway ${bound.gateway}, so this match is left out; remove the name from one of them.`,
          });
      }
  }

  /** Adds a chain, unless one of the names is taken: then returns that name. */
  #add(
    bound: BoundServer,
    serverNames: readonly string[],
    { serves, origins }: Content,
    tls?: ServerTls,
  ): string | undefined {
    const names = serverNames.length === 0 || serverNames.includes('*') ? ['*'] : serverNames;
    const clash = names.find((name) => this.#taken.has(name.toLowerCase()));
    if (clash !== undefined) return clash;
    for (const name of names) this.#taken.add(name.toLowerCase());
    this.found.push({ serverNames, ...(tls && { tls }), serves, origins: [bound.ref, ...origins] });
    return undefined;
  }

  #tcp(bound: BoundServer): Content | undefined {
    const [first] = this.#forwards(bound);
    return first && l4Content(first.forward);
  }

  #forwards(bound: BoundServer): readonly { readonly forward: GatewayForward; readonly names: ServerRoute['names'] }[] {
    const { forwards, settings } = this.#context;
    const { routes, targets } = forwards.get(bound) ?? { routes: [], targets: new Map() };
    return routes.map((route) => {
      const { forward, problems } = forwardOf(bound, route, targets, settings);
      this.problems.push(...problems);
      return { forward, names: route.names };
    });
  }
}

function httpContent({ server, routes }: BoundServer, statName: string): Content {
  const grpcWeb = server.port.protocol === 'GRPCWeb';
  return { serves: { kind: 'http', routes, statName, grpcWeb }, origins: [] };
}

function l4Content({ ref, target }: GatewayForward): Content {
  return { serves: { kind: 'l4', target }, origins: [ref, ...target.origins] };
}

/** Clients' server names are compared in lower case. */
function serverNamesOf({ server }: BoundServer): readonly string[] {
  return [...new Set(server.hosts.map(({ host }) => host.toLowerCase()))];
}
