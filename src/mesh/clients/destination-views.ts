import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import { type MeshService, isRouted, serviceKey } from '../../model/service.ts';
import { type EgressListener, importedPorts } from '../../model/sidecar.ts';
import { clientViewOf, concreteService, ruleClientOf, serviceFor } from './lookups.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import { ruleFor } from '../objects/rules.ts';
import type { ScopeViews } from './scopes.ts';
import { settingOf } from '../settings.ts';
import { egressOf } from '../objects/sidecars.ts';
import { type UnknownTrafficDeps, egressProxyOf } from '../resources/unknown-traffic.ts';
import type { Patches } from './patch-sets.ts';
import { type RouteHostView, type ServiceView, type Views, clusterPatches } from './views.ts';

export interface DestinationViewDeps extends UnknownTrafficDeps {
  readonly bindings: RouteBindings;
  readonly scopes: Collection<ScopeViews>;
  readonly views: Views;
  readonly patches: Patches | undefined;
}

/** Where routes of a view lead outside the view's own services. */
interface ForeignDestination {
  readonly view: string;
  readonly host: string;
  /** Absent: every port. */
  readonly port: number | undefined;
}

/**
 * Services, or ports of them, that a Sidecar does not import, but that imported routes or its egress proxy lead to.
 * They have clusters, but no routes or listeners of their own.
 */
export function declareDestinationViews(graph: Graph, deps: DestinationViewDeps): Collection<ServiceView> {
  const { serviceViews, routeHostViews } = deps.views;
  const foreign = [serviceViews, routeHostViews].map((source) =>
    graph.derive(
      `foreignDestinations of ${source.name}`,
      graph.index(`${source.name} with routes`, source as Collection<ServiceView | RouteHostView>, (key, { routes }) =>
        routes.length > 0 ? [key] : [],
      ),
      (key, [first], read, emit: Emit<ForeignDestination>) => {
        const { view, routes } = first.value;
        if (source === routeHostViews && !hasHosts(egressOf(read, deps.sidecars, view))) return;
        const found = new Map<string, ForeignDestination>();
        for (const { host, port } of routes.flatMap(
          (route) => read.get(deps.bindings.all, route.key)?.needs.targets ?? [],
        )) {
          const service = concreteService(read, deps, view, host);
          // A view of everything visible already has the services of its namespace.
          if (service !== undefined && (view.egress !== undefined || service.namespace !== view.namespace))
            found.set(`${service.host}|${port ?? ''}`, { view: view.key, host: service.host, port });
        }
        for (const [id, destination] of found) emit(`${key}|${id}`, destination);
      },
    ),
  );
  const byView = graph.index('foreign destinations by view', foreign, (_, { view }) => [view]);
  return graph.derive('destinationViews', deps.scopes, (list, { scope, outlets }, read, emit: Emit<ServiceView>) => {
    if (scope.sidecar === '') return;
    const { rootNamespace } = settingOf(read, deps.settings.visibility);
    const client = clientViewOf(scope);
    const wanted = new Map<MeshService, Set<number>>();
    const want = (service: MeshService, port: number | undefined): void => {
      const ports = wanted.get(service) ?? new Set();
      wanted.set(service, ports);
      for (const { number } of service.ports) if (port === undefined || port === number) ports.add(number);
    };
    for (const { key } of outlets.flatMap((outlet) => outlet.views))
      for (const { value } of read.group(byView, key)) {
        const service = serviceFor(read, deps, client, value.host);
        if (service !== undefined) want(service, value.port);
      }
    const proxy = egressProxyOf(scope, read, deps);
    if (proxy !== undefined) want(proxy.service, proxy.port);
    for (const [service, ports] of wanted) {
      const imported = new Set(outlets.flatMap(({ listener }) => importedPorts(listener, scope.namespace, service)));
      const clusterPorts = [...ports].filter((port) => !imported.has(port)).sort((x, y) => x - y);
      if (clusterPorts.length === 0) continue;
      const key = serviceKey(service);
      const rule = ruleFor(read, deps.rules, service, rootNamespace, ruleClientOf(client))?.id ?? '';
      const { traits, matched } = client;
      const view = { key: list, namespace: service.namespace, client: client.client, traits, matched };
      const shared = { list, view, service: key, rule, routes: [], ports: [], clusterPorts, isFirst: false };
      emit(`${list}|${key}`, { ...shared, ...clusterPatches(read, deps.patches, scope, service.host) });
    }
  });
}

/** Whether hosts without a service can have routes there: on port 80, and where one listener serves all ports. */
function hasHosts(listener: EgressListener | undefined): boolean {
  const { port } = listener ?? {};
  return (
    port === undefined ||
    port.number === 0 ||
    (port.number === 80 && isRouted(port.protocol)) ||
    port.protocol === 'HTTP_PROXY'
  );
}
