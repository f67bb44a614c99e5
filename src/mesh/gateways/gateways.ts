import { type ObjectRef, distinctRefs, sourceOfKey } from '../../api/object.ts';
import type { Gateway } from '../../api/gen/gateway.gen.ts';
import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { buildGatewayListener } from '../../envoy/listener/gateway-listener.ts';
import { closed, isTooLarge, noSecurity } from '../../envoy/security/authorization.ts';
import { type ServerForwards, settleGatewayListener } from '../../settle/gateway-chains.ts';
import { routesOfServer } from '../../settle/gateway-forward.ts';
import type { EncodedResource } from '../../ads/store/resource.ts';
import { fileSecretsOf } from '../../envoy/tls/file-secrets.ts';
import type { Secret } from '../../envoy/gen/types.gen.ts';
import { node, resource, sameResource } from '../../envoy/encode/resource.ts';
import { compareAge } from '../../model/age.ts';
import type { BoundServer, GatewayModel } from '../../model/gateway.ts';
import { type Source, wholeObjects } from '../../model/provenance.ts';
import type { ConnectionRoutes } from '../../model/l4-routes.ts';
import {
  type RouteBinding,
  gatewayPrecedence,
  gatewaysOf,
  isSeenFrom,
  parentKey,
  takeIn,
} from '../../model/route-binding.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import { type ReconciledGateway, reconcileGateway } from '../../reconcilers/gateway/gateway.ts';
import { mergeServers } from '../../settle/gateway-merge.ts';
import {
  type GatewayDeps,
  type RouterClass,
  type Routers,
  declareRouters,
  emitToRouters,
  viewOfRouter,
} from './routers.ts';
import { type SettleListener, accessOf } from './access.ts';
import { type AutoPassthroughDeps, type RouterListener, declareAutoPassthrough } from './auto-passthrough.ts';
import { type GatewaySet, declareGatewayRoutes } from './routes.ts';
import type { GatewayAccess } from '../../judge/gateway.ts';
import { connectionTargetsOf } from '../clients/destinations.ts';
import type { ServiceView } from '../clients/views.ts';
import type { SettleDeps } from '../resources/security-filters.ts';
import { type Member, type Members, sameMember } from '../resources/members.ts';
import { optionsOf } from '../inputs.ts';
import { declareRouterFindings } from './findings.ts';
import { declareSharedCertificates } from './shared-certificates.ts';
import { declareUnreachablePorts } from './unreachable-ports.ts';
import { credentialState } from '../resources/credentials.ts';
import { listenerSlot, patchingAt } from '../resources/patching.ts';
import { secretProviderOf, usableProvider } from '../resources/provider-service.ts';
import { type InForce, declareReconciled } from '../objects/in-force.ts';
import { settingOf } from '../settings.ts';

/** From Gateways, and the routes that name them, to the listeners and route tables of routers. */
export function declareGateways(
  graph: Graph,
  deps: AutoPassthroughDeps & SettleDeps,
): {
  readonly members: readonly Members[];
  /** What routers forward to by SNI. */
  readonly forwarded: Collection<ServiceView>;
  /** Lists that only some routers have, with their children. */
  readonly lists: readonly Collection<readonly string[]>[];
  readonly problems: readonly Collection<HasProblems>[];
  readonly parsed: Collection<ReconciledGateway & InForce>;
  readonly models: Collection<GatewayModel>;
  readonly routers: Collection<RouterClass>;
  /** What decides about requests to a connected router; undefined for other proxies. */
  readonly accessOf: (stream: string, read: Reader) => GatewayAccess | undefined;
} {
  const { inputs } = deps;
  const parsed = declareReconciled<ReconciledGateway>(
    graph,
    'gateways',
    'Gateway',
    inputs,
    (key, object) => reconcileGateway(object as Gateway, { source: sourceOfKey(key) }),
    { models: [] },
  );
  const models = graph.derive('gatewayModels', parsed, (key, value, _, emit: Emit<GatewayModel>) => {
    for (const model of value.models) emit(key, model);
  });
  const routers = declareRouters(graph, deps, models);
  const sets = graph.derive('gatewaySets', routers.classes, (key, router, read, emit: Emit<GatewaySet>) => {
    const { rootNamespace, crossNamespaceFiles } = optionsOf(read, inputs);
    const merged = mergeServers({
      gateways: router.gateways.flatMap((gateway) => read.get(models, gateway) ?? []),
      targetPort: (port) => router.targetPorts[port] ?? port,
      traits: router.traits,
      namespace: router.namespace,
      rootNamespace,
      crossNamespaceFiles,
      secretProvider: secretProviderOf(router, read, deps),
      credential: (gateway, resource, part) =>
        credentialState(read, inputs, { account: router.account, resource }, part, gateway),
    });
    emit(key, { router, ...merged });
  });

  const listeners = declareListeners(graph, deps, routers, sets);
  const routes = declareGatewayRoutes(graph, deps, routers, sets);
  return {
    members: [listeners.members, routes.members, declareFileSecrets(graph, deps, routers, sets)],
    forwarded: listeners.autoPassthrough.services,
    lists: listeners.autoPassthrough.lists,
    parsed,
    models,
    routers: routers.classes,
    accessOf: (stream, read) => accessOf(stream, read, { ...deps, routers, sets, settle: listeners.settle }),
    problems: [
      parsed,
      declareRouterFindings(graph, deps, routers, [
        sets,
        listeners.built,
        declareUnreachablePorts(graph, deps, routers, models),
        declareSharedCertificates(graph, sets),
        ...routes.findings,
      ]),
    ],
  };
}

interface BuiltListener extends HasProblems {
  /** Key of the class. */
  readonly routers: string;
  /** Undefined: nothing is served. */
  readonly resource: EncodedResource | undefined;
  /** Chains of servers with AUTO_PASSTHROUGH are added. */
  readonly forwards: boolean;
  /** It has no chains of its own. */
  readonly isBare: boolean;
}

function declareListeners(graph: Graph, deps: AutoPassthroughDeps, routers: Routers, sets: Collection<GatewaySet>) {
  // Kept apart from their routes, so that HTTP routes do not affect listeners.
  const forwarding = graph.index(
    'forwarding routes by gateway',
    deps.bindings.all,
    (_, binding) => (binding.hasConnections ? [...gatewaysOf(binding).keys()] : []),
    (a, b) => compareAge(a.value, b.value),
  );
  const listeners = graph.derive('routerListeners', sets, (key, set, _, emit: Emit<RouterListener>) => {
    for (const listener of set.listeners) {
      // One connection manager serves all HTTP servers: adding servers changes only routes.
      const servers = listener.kind === 'http' ? listener.servers.slice(0, 1) : listener.servers;
      emit(`${key}|${listener.name}`, { router: set.router, listener: { ...listener, servers } });
    }
  });
  const autoPassthrough = declareAutoPassthrough(graph, deps, routers, listeners);
  const settle: SettleListener = (listener, router, read) =>
    settleGatewayListener(listener, {
      traits: router.traits,
      settings: settingOf(read, deps.settings.listeners),
      forwards: new Map(
        listener.servers
          .filter(({ routes }) => routes === '')
          .map((bound) => [bound, forwardsOf(bound, router, read, forwarding, deps)]),
      ),
    });
  const built = graph.derive(
    'gatewayListeners.built',
    listeners,
    (key, { router, listener }, read, emit: Emit<BuiltListener>) => {
      const settings = settingOf(read, deps.settings.listeners);
      const { traits } = router;
      const settled = settle(listener, router, read);
      const gatewayTopology = { ...settings.gatewayTopology, ...router.gatewayTopology };
      const filters = read.get(deps.securityFilters, router.policies) ?? noSecurity;
      const security = isTooLarge(filters, settled.listener.chains.length) ? closed(traits) : filters;
      const input = {
        listener: settled.listener,
        traits,
        settings: { ...settings, gatewayTopology },
        security,
        secretProvider: usableProvider(router, read, deps),
      };
      const { chains, forwardsFor } = settled.listener;
      const isEmpty = chains.length + forwardsFor.length === 0;
      const built = isEmpty ? undefined : buildGatewayListener(input);
      const from = (): readonly Source[] =>
        wholeObjects(distinctRefs([...chains.flatMap(({ origins }) => origins), ...forwardsFor, ...security.origins]));
      const patching =
        built === undefined || router.patches === undefined
          ? undefined
          : patchingAt(read, deps.patches, router.patches, listenerSlot('gateway', built.listener));
      emit(key, {
        routers: router.key,
        resource: built && deps.encoder.listener(built.listener, built.clusters, from, patching),
        forwards: forwardsFor.length > 0,
        isBare: chains.length === 0,
        problems: patching === undefined ? settled.problems : [...settled.problems, ...patching.problems],
      });
    },
    sameListener,
  );
  const members = graph.derive(
    'gatewayListeners',
    built,
    (key, { routers: of, resource: own, forwards, isBare }, read, emit: Emit<Member>) => {
      const chains = forwards ? autoPassthrough.chainsOf(read, key) : [];
      if (own === undefined || (isBare && chains.length === 0)) return;
      const whole = chains.length === 0 ? own : resource(own.typeUrl, own.name, node([own.body, ...chains]));
      emitToRouters(emit, read, routers, of, whole);
    },
    sameMember,
  );
  return { settle, built, members, autoPassthrough };
}

/** The files that a router itself must read for its servers, each once. */
function declareFileSecrets(
  graph: Graph,
  { encoder }: GatewayDeps,
  routers: Routers,
  sets: Collection<GatewaySet>,
): Members {
  return graph.derive(
    'gatewaySecrets',
    sets,
    (_, { router, listeners }, read, emit: Emit<Member>) => {
      const secrets = new Map<string, { readonly secret: Secret; readonly namedBy: ObjectRef[] }>();
      for (const { ref, server } of listeners.flatMap(({ servers }) => servers)) {
        const { serves } = server;
        if (serves.kind !== 'https' && serves.kind !== 'tls') continue;
        for (const secret of fileSecretsOf(serves.tls, router.traits)) {
          const { name = '' } = secret;
          const known = secrets.get(name);
          if (known === undefined) secrets.set(name, { secret, namedBy: [ref] });
          else known.namedBy.push(ref);
        }
      }
      for (const { secret, namedBy } of secrets.values()) {
        const resource = encoder.secret(secret, () => wholeObjects(distinctRefs(namedBy)));
        emitToRouters(emit, read, routers, router.key, resource);
      }
    },
    sameMember,
  );
}

function sameListener(a: BuiltListener, b: BuiltListener): boolean {
  if (a.resource === undefined || b.resource === undefined || !sameResource(a.resource, b.resource)) return false;
  if (a.forwards !== b.forwards) return false;
  return a.problems.length === 0 && b.problems.length === 0;
}

/** What takes the connections of a server. */
function forwardsOf(
  bound: BoundServer,
  router: RouterClass,
  read: Reader,
  byGateway: Index<RouteBinding>,
  deps: GatewayDeps,
): ServerForwards {
  const all = routesOf(read, byGateway, deps.bindings, bound, router.namespace);
  const routes = routesOfServer(bound, all);
  const destinations = routes.flatMap(({ route }) => route.destinations);
  const { number } = bound.server.port;
  return { routes, targets: connectionTargetsOf(destinations, number, viewOfRouter(router), read, deps) };
}

/** The routes of a server for connections that routers in a namespace see, in order of precedence. */
function routesOf(
  read: Reader,
  byGateway: Index<RouteBinding>,
  bindings: RouteBindings,
  { ref, server }: BoundServer,
  namespace: string,
): readonly ConnectionRoutes[] {
  const gateway = parentKey(ref);
  return read
    .group(byGateway, gateway)
    .map((member) => member.value)
    .filter((binding) => isSeenFrom(binding, namespace) && takeIn(gatewaysOf(binding).get(gateway) ?? [], server))
    .sort((a, b) => gatewayPrecedence(a, namespace) - gatewayPrecedence(b, namespace))
    .flatMap(({ key }) => bindings.connections(read, key) ?? []);
}
