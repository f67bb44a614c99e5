import type { Collection, Emit, Graph } from '../cache/graph.ts';
import { type MeshService, serviceKey } from '../model/service.ts';
import { egressImports } from '../model/sidecar.ts';
import { destinationsOf } from '../model/virtual-service-parts.ts';
import { ruleClientOf, serviceFor } from './clients.ts';
import { type Rules, ruleFor } from './rules.ts';
import type { ScopeViews } from './scopes.ts';
import type { Services } from './services.ts';
import { type Settings, settingOf } from './settings.ts';
import type { ServiceView, Views } from './views.ts';
import type { VirtualServices } from './virtual-services.ts';

export interface DestinationViewParts {
  readonly settings: Settings;
  readonly services: Services;
  readonly rules: Rules;
  readonly virtualServices: VirtualServices;
  readonly scopes: Collection<ScopeViews>;
  readonly views: Views;
}

/** Where the routes of a service lead, outside its namespace. */
interface ForeignDestination {
  readonly view: string;
  readonly host: string;
  /** Absent: every port. */
  readonly port: number | undefined;
}

/**
 * Services that a Sidecar does not import and that routes of imported services lead to. They have clusters, and no routes
 * or listeners of their own.
 */
export function declareDestinationViews(graph: Graph, parts: DestinationViewParts): Collection<ServiceView> {
  const foreign = graph.derive(
    'foreignDestinations',
    parts.views.serviceViews,
    (key, { view, routes }, read, emit: Emit<ForeignDestination>) => {
      const found = new Map<string, ForeignDestination>();
      for (const route of routes) {
        const model = read.get(parts.virtualServices.routes, route.key);
        for (const { destination } of model === undefined ? [] : destinationsOf(model)) {
          const { host, port } = destination;
          if (serviceFor(read, parts.services, view, host)?.namespace !== view.namespace)
            found.set(`${host}|${port ?? ''}`, { view: view.key, host, port });
        }
      }
      for (const [id, destination] of found) emit(`${key}|${id}`, destination);
    },
  );
  const byView = graph.index('foreign destinations by view', foreign, (_, { view }) => [view]);
  return graph.derive('destinationViews', parts.scopes, (list, { scope, outlets }, read, emit: Emit<ServiceView>) => {
    if (scope.sidecar === '') return;
    const { rootNamespace } = settingOf(read, parts.settings.visibility);
    const client = { client: scope.namespace, matched: scope.matched };
    const ports = new Map<MeshService, Set<number>>();
    for (const { key } of outlets.flatMap((outlet) => outlet.views))
      for (const { value } of read.group(byView, key)) {
        const service = serviceFor(read, parts.services, client, value.host);
        if (service === undefined || outlets.some((o) => egressImports(o.listener.hosts, scope.namespace, service)))
          continue;
        const numbers = ports.get(service) ?? new Set();
        for (const port of service.ports)
          if (value.port === undefined || value.port === port.number) numbers.add(port.number);
        ports.set(service, numbers);
      }
    for (const [service, numbers] of ports) {
      const key = serviceKey(service);
      const rule = ruleFor(read, parts.rules, service, rootNamespace, ruleClientOf(client))?.id ?? '';
      const view = { key: list, namespace: service.namespace, traits: scope.traits, ...client };
      const clusterPorts = [...numbers].sort((x, y) => x - y);
      emit(`${list}|${key}`, { list, view, service: key, rule, routes: [], ports: [], clusterPorts });
    }
  });
}
