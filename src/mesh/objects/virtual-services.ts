import type { VirtualService } from '../../api/gen/virtual-service.gen.ts';
import { objectKey, sourceOfKey } from '../../api/object.ts';
import type { Collection, Emit, Graph, Index } from '../../cache/graph.ts';
import { cutRoutes } from '../../settle/cut-routes.ts';
import { compareAge } from '../../model/age.ts';
import { isWildcard } from '../../model/host.ts';
import { type HttpRoute, type VirtualServiceModel, meshGateway } from '../../model/virtual-service.ts';
import { type DelegatedVirtualService, applyDelegates } from '../../settle/delegate.ts';
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
  /** VirtualServices for the mesh, by exact host. Oldest first. */
  readonly byHost: Index<VirtualServiceModel>;
  /** VirtualServices for the mesh with a wildcard host, by {@link wildcardKey}. */
  readonly byWildcard: Index<VirtualServiceModel>;
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
  const oldest = (a: { value: VirtualServiceModel }, b: { value: VirtualServiceModel }) => compareAge(a.value, b.value);
  const meshHosts = (model: VirtualServiceModel) => (model.gateways.includes(meshGateway) ? model.hosts : []);
  return {
    parsed,
    routes,
    delegated,
    shadowed,
    cut,
    byHost: graph.index(
      'routes by host',
      routes,
      (_, model) => meshHosts(model).filter((host) => !isWildcard(host)),
      oldest,
    ),
    byWildcard: graph.index(
      'routes by wildcard',
      routes,
      (_, model) => [...new Set(meshHosts(model).filter(isWildcard).map(wildcardKey))],
      oldest,
    ),
  };
}

/**
 * Index key of a wildcard host: the part from the first dot on. A wildcard may end within a label (`*-a.example.com`),
 * so callers must compare the full host.
 */
export function wildcardKey(wildcard: string): string {
  const dot = wildcard.indexOf('.');
  return dot < 0 ? '*' : `*${wildcard.slice(dot)}`;
}
