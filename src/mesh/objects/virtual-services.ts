import type { VirtualService } from '../../api/gen/virtual-service.gen.ts';
import { objectKey, sourceOfKey } from '../../api/object.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import { cutRoutes } from '../../settle/cut-routes.ts';
import type { RouteBinding } from '../../model/route-binding.ts';
import type { HttpRoute, VirtualServiceModel } from '../../model/virtual-service.ts';
import { type DelegatedVirtualService, applyDelegates } from '../../settle/delegate.ts';
import { routeBindingOf } from '../../reconcilers/virtual-service/route-binding.ts';
import { shadowedRoutes } from '../../reconcilers/virtual-service/shadowed-routes.ts';
import {
  type ReconciledVirtualService,
  reconcileVirtualService,
} from '../../reconcilers/virtual-service/virtual-service.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import { type InForce, declareReconciled } from './in-force.ts';
import type { HasProblems } from '../findings/problems.ts';
import { type Settings, settingOf } from '../settings.ts';

export interface VirtualServices {
  readonly parsed: Collection<ReconciledVirtualService & InForce>;
  /** With delegates applied; by object key. */
  readonly routes: Collection<VirtualServiceModel>;
  readonly delegated: Collection<DelegatedVirtualService>;
  /** Routes that are never used. */
  readonly shadowed: Collection<HasProblems>;
  /** Their `http` in pieces; by object key. */
  readonly cut: Collection<readonly (readonly HttpRoute[])[]>;
  /** What selection sees of {@link routes}. */
  readonly bindings: Collection<RouteBinding>;
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
  const cut = graph.derive('cut routes', routes, (key, { http }, _, emit: Emit<readonly (readonly HttpRoute[])[]>) => {
    emit(key, cutRoutes(http));
  });
  const bindings = graph.derive('routes of VirtualServices', routes, (key, model, _, emit: Emit<RouteBinding>) =>
    emit(key, routeBindingOf(model)),
  );
  return { parsed, routes, delegated, shadowed, cut, bindings };
}
