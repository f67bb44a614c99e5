import type { VirtualService } from '../../api/gen/virtual-service.gen.ts';
import { objectKey, sourceOfKey } from '../../api/object.ts';
import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import { type DestinationName, destinationKey } from '../../model/client.ts';
import { cutRoutes } from '../../settle/cut-routes.ts';
import type { RouteBinding } from '../../model/route-binding.ts';
import type { ConnectionRoutes } from '../../model/l4-routes.ts';
import type { HttpRoute, VirtualServiceModel } from '../../model/virtual-service.ts';
import { destinationsOfRoute } from '../../model/virtual-service-parts.ts';
import { type DelegatedVirtualService, applyDelegates, toldTo } from '../../settle/delegate.ts';
import { settleVirtualServiceRoutes } from '../../settle/virtual-service-routes.ts';
import {
  type VirtualServiceConditions,
  canHold,
  conditionsOf,
  dependsOnSourceNamespace,
  virtualServiceFor,
} from '../../settle/virtual-service-selection.ts';
import { routeBindingOf } from '../../reconcilers/virtual-service/route-binding.ts';
import { shadowedRoutes } from '../../reconcilers/virtual-service/shadowed-routes.ts';
import {
  type ReconciledVirtualService,
  reconcileVirtualService,
} from '../../reconcilers/virtual-service/virtual-service.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import { type InForce, declareReconciled } from '../objects/in-force.ts';
import type { RouteFrontEnd, RouteRules } from '../objects/route-bindings.ts';
import { type Settings, settingOf } from '../settings.ts';
import { unverifiedClaims } from './unverified-claims.ts';

export interface VirtualServices {
  readonly parsed: Collection<ReconciledVirtualService & InForce>;
  /** With delegates applied; by object key. */
  readonly routes: Collection<VirtualServiceModel>;
  readonly frontEnd: RouteFrontEnd;
}

export function declareVirtualServices(graph: Graph, inputs: Inputs, settings: Settings): VirtualServices {
  const parsed = declareReconciled<ReconciledVirtualService>(
    graph,
    'virtualServices',
    'VirtualService',
    inputs,
    (key, object, read) => {
      const { rootNamespace, defaultVirtualServiceExportTo } = settingOf(read, settings.visibility);
      return reconcileVirtualService(object as VirtualService, {
        source: sourceOfKey(key),
        domainSuffix: optionsOf(read, inputs).domainSuffix,
        rootNamespace,
        defaultExportTo: defaultVirtualServiceExportTo,
      });
    },
    { models: [] },
  );
  // A separate step: for thousands of routes, it takes half as long as reading them.
  const shadowed = graph.derive('shadowed routes', parsed, (key, { models }, _, emit: Emit<HasProblems>) => {
    const problems = models.flatMap(shadowedRoutes);
    if (problems.length > 0) emit(key, { problems });
  });
  const delegated = graph.derive('delegated', parsed, (key, { models }, read, emit: Emit<DelegatedVirtualService>) => {
    const [root] = models;
    if (root === undefined || root.hosts.length === 0) return;
    const source = sourceOfKey(key);
    emit(
      key,
      applyDelegates(root, (namespace, name) => read.get(parsed, objectKey(source, namespace, name))?.models[0]),
    );
  });
  const routes = graph.derive('routes', delegated, (key, { model }, _, emit: Emit<VirtualServiceModel>) => {
    if (model !== undefined) emit(key, model);
  });
  const cut = graph.derive('cut routes', routes, (key, { http }, _, emit: Emit<readonly RoutePiece[]>) =>
    emit(
      key,
      cutRoutes(http).map((piece) => ({ http: piece, destinations: distinctDestinations(piece) })),
    ),
  );
  const bindings = graph.derive('routes of VirtualServices', routes, (key, model, _, emit: Emit<RouteBinding>) =>
    emit(key, routeBindingOf(model)),
  );
  const conditions = graph.derive(
    'conditions of VirtualServices',
    routes,
    (key, model, _, emit: Emit<VirtualServiceConditions>) => emit(key, conditionsOf(model)),
  );
  // Apart from their rules for requests: listeners read these.
  const connections = graph.derive(
    'connections of VirtualServices',
    routes,
    (key, { ref, name, namespace, createdAt, hosts, exportTo, tcp, tls }, _, emit: Emit<ConnectionRoutes>) => {
      if (tcp.length + tls.length > 0) emit(key, { ref, name, namespace, createdAt, hosts, exportTo, tcp, tls });
    },
  );
  const rules = rulesOf({ routes, cut, conditions, connections });
  const frontEnd = { kind: 'VirtualService', bindings, rules, problems: [parsed, shadowed, delegated] };
  return { parsed, routes, frontEnd };
}

/** Some of the `http` of a VirtualService. */
interface RoutePiece {
  readonly http: readonly HttpRoute[];
  readonly destinations: readonly DestinationName[];
}

function distinctDestinations(http: readonly HttpRoute[]): readonly DestinationName[] {
  const found = new Map<string, DestinationName>();
  for (const { host, subset, port } of http.flatMap(destinationsOfRoute)) {
    const name = { host, subset, ...(port !== undefined && { port }) };
    found.set(destinationKey(name), name);
  }
  return [...found.values()];
}

function rulesOf({
  routes,
  cut,
  conditions,
  connections,
}: {
  readonly routes: Collection<VirtualServiceModel>;
  readonly cut: Collection<readonly RoutePiece[]>;
  readonly conditions: Collection<VirtualServiceConditions>;
  readonly connections: Collection<ConnectionRoutes>;
}): RouteRules {
  return {
    isExclusive: true,
    chosen(read, found, scope) {
      const candidates = found.flatMap(({ matched, key }) => {
        const model = read.get(conditions, key);
        return model === undefined ? [] : [{ matched, model }];
      });
      const winner = virtualServiceFor(candidates, scope);
      return found.filter(({ key }) => key === winner?.key).slice(0, 1);
    },
    canHold(read, key, scope) {
      const model = read.get(conditions, key);
      return model !== undefined && canHold(model, scope);
    },
    dependsOnNamespace(read, key) {
      const model = read.get(conditions, key);
      return model !== undefined && dependsOnSourceNamespace(model);
    },
    connections: (read, key) => read.get(connections, key),
    countPieces: (read, key) => read.get(cut, key)?.length ?? 0,
    destinations: (read, key, piece) => read.get(cut, key)?.[piece]?.destinations ?? [],
    unverifiedClaims(read, key, scope) {
      const model = read.get(routes, key);
      return model === undefined ? [] : unverifiedClaims(model, scope);
    },
    settle(read, key, piece, context) {
      const found = read.get(cut, key)?.[piece];
      const model = read.get(routes, key);
      if (found === undefined || model === undefined) return undefined;
      const settled = settleVirtualServiceRoutes(found.http, { ...context, model });
      return { ...settled, problems: settled.problems.map((problem) => toldTo(model, problem)) };
    },
  };
}
