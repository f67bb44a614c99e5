import type { EncodedResource } from '../../ads/store/resource.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { compareAge } from '../../model/age.ts';
import type { Client } from '../../model/client.ts';
import type { GatewayModel } from '../../model/gateway.ts';
import { contentHash } from '../../model/hash.ts';
import { type Labels, printSelector, selects } from '../../model/labels.ts';
import type { GatewayTopology } from '../../model/mesh-config.ts';
import { type Traits, traitsKey } from '../../model/traits.ts';
import { isMesh } from '../../model/route-binding.ts';
import { gatewayList } from '../lists.ts';
import { type MeshOptions, optionsOf } from '../inputs.ts';
import { type Member, emitMember } from '../resources/members.ts';
import type { AcceptedProxy, Proxies, RouterFacts } from '../clients/proxies.ts';
import { labelKeys, selectorKey } from '../objects/label-keys.ts';
import type { SecurityFilters } from '../../envoy/security/authorization.ts';
import type { PoliciesOfWorkloads } from '../clients/workload-policies.ts';
import type { RouteDeps } from '../resources/virtual-hosts.ts';
import { type ClientView, clientOf } from '../clients/lookups.ts';
import { type WorkloadClass, type WorkloadClasses, servicesOf } from '../clients/workload-classes.ts';
import { ownValue } from '../../model/own-value.ts';
import { allOf, wholeOf } from '../whole.ts';

export interface GatewayDeps extends RouteDeps {
  readonly proxies: Proxies;
  readonly workloadClasses: WorkloadClasses;
  readonly workloadPolicies: PoliciesOfWorkloads;
  readonly securityFilters: Collection<SecurityFilters>;
}

/** Routers for which all Gateways mean the same, however their labels differ: they share listeners and tables. */
export interface RouterClass {
  readonly key: string;
  readonly traits: Traits;
  readonly namespace: string;
  /** Client label selectors, mentioned by rules and routes, that match. Sorted. */
  readonly matched: readonly string[];
  /** Keys of the Gateways that select it, oldest first. */
  readonly gateways: readonly string[];
  /** Target ports of the Service in front of the router, by server port; other ports map to themselves. */
  readonly targetPorts: Readonly<Record<number, number>>;
  /** What its node says, in place of the mesh config. */
  readonly gatewayTopology: Partial<GatewayTopology> | undefined;
  /** Key of the {@link PolicySet}; empty: no policy. */
  readonly policies: string;
  /** `AccountKey` of the service account that they have proven to have; empty: none. */
  readonly account: string;
  /** Key of the {@link PatchSet} for what Gateways ask of them; absent: none. */
  readonly patches?: string;
}

export interface Routers {
  /** The class of each router, keyed as {@link RouterFacts}. */
  readonly ofRouter: Collection<RouterClass>;
  /** By class key. */
  readonly classes: Collection<RouterClass>;
  /** The routers of a class, keyed as {@link RouterFacts}. */
  readonly byClass: Index<RouterClass>;
}

export function declareRouters(graph: Graph, deps: GatewayDeps, models: Collection<GatewayModel>): Routers {
  const bySelector = graph.index('gateways by selector', models, (_, { selector }) => [
    selectorKey('', selector) ?? ANY_ROUTER,
  ]);
  const mentions = declareGatewaySelectors(graph, deps);
  const routers = graph.derive('routers', deps.proxies.byRouter, (key, [first], read, emit: Emit<RouterClass>) => {
    const view = first.value;
    if ('error' in view || view.router === undefined) return;
    const { gatewayScope } = optionsOf(read, deps.inputs);
    const gateways = gatewaysOf(read, bySelector, view.router, gatewayScope);
    const content = {
      traits: view.router.traits,
      namespace: view.router.namespace,
      matched: matchedSelectors(view, view.router, read, mentions),
      gateways: gateways.map((gateway) => gateway.key),
      targetPorts: targetPortsOf(gateways, targetsOf(view.workload, read, deps)),
      gatewayTopology: view.router.gatewayTopology,
    };
    const policies = read.get(deps.workloadPolicies.ofClass, view.workload.key)?.set ?? '';
    const { account } = view;
    const { patches } = view.router;
    const patched = patches !== undefined && { patches };
    const named = {
      ...content,
      traits: traitsKey(content.traits),
      ...(policies !== '' && { policies }),
      ...(account !== '' && { account }),
      ...patched,
    };
    emit(key, { key: contentHash(JSON.stringify(named)), ...content, policies, account, ...patched });
  });
  const byClass = graph.index('routers by class', routers, (_, { key }) => [key]);
  const classes = graph.derive('routerClasses', byClass, (key, [first], _, emit: Emit<RouterClass>) =>
    emit(key, first.value),
  );
  return { ofRouter: routers, classes, byClass };
}

/** Group for Gateways without a selector. */
const ANY_ROUTER = '*';

/** Gateways that select the labels. Source of the scope: Istio's PILOT_SCOPE_GATEWAY_TO_NAMESPACE. */
function gatewaysOf(
  read: Reader,
  bySelector: Index<GatewayModel>,
  { labels, namespace: own }: Pick<RouterFacts, 'labels' | 'namespace'>,
  scope: MeshOptions['gatewayScope'],
): readonly GatewayModel[] {
  return [ANY_ROUTER, ...labelKeys('', labels)]
    .flatMap((key) => read.group(bySelector, key))
    .map((member) => member.value)
    .filter(({ selector, namespace }) => selects(selector, labels) && (scope === 'mesh' || namespace === own))
    .sort((a, b) => compareAge(a, b) || (a.key < b.key ? -1 : 1));
}

/** Client selectors in the routes of Gateways, whose hosts need not be services of the mesh. */
function declareGatewaySelectors(graph: Graph, deps: GatewayDeps): Index<Labels> {
  const each = graph.derive('gateway mentions', deps.bindings.all, (key, binding, _, emit: Emit<Labels>) => {
    if (binding.parents.every(isMesh)) return;
    for (const selector of binding.needs.routerSelectors) emit(`${key}|${printSelector(selector)}`, selector);
  });
  const distinct = graph.derive(
    'gateway selectors',
    graph.index('gateway mentions by selector', each, (_, selector) => [printSelector(selector)]),
    (key, [first], _, emit: Emit<Labels>) => emit(key, first.value),
  );
  return wholeOf(graph, 'all gateway selectors', distinct);
}

function matchedSelectors(
  { scope }: AcceptedProxy,
  { labels }: RouterFacts,
  read: Reader,
  mentions: Index<Labels>,
): readonly string[] {
  const mentioned = allOf(read, mentions);
  const matching = mentioned.filter((selector) => selects(selector, labels)).map(printSelector);
  return [...new Set([...scope.matched, ...matching])].sort();
}

/** Target ports of the Services in front of a router, oldest first. 0: a name that no container has. */
export function targetsOf(
  workload: WorkloadClass,
  read: Reader,
  deps: Pick<GatewayDeps, 'workloadClasses' | 'services'>,
): readonly Readonly<Record<number, number>>[] {
  const { ports = {} } = workload;
  return servicesOf(workload, read, deps.workloadClasses, deps.services)
    .filter((service) => service.translatesPorts)
    .map((service) =>
      Object.fromEntries(
        service.ports.map((port) => {
          const target = port.targetPort ?? port.number;
          return [port.number, typeof target === 'number' ? target : (ownValue(ports, target) ?? 0)];
        }),
      ),
    );
}

function targetPortsOf(
  gateways: readonly GatewayModel[],
  leading: readonly Readonly<Record<number, number>>[],
): Readonly<Record<number, number>> {
  const found: Record<number, number> = {};
  for (const { servers } of gateways)
    for (const { port } of servers) {
      const target = leading.find((targets) => (targets[port.number] ?? 0) > 0)?.[port.number] ?? port.number;
      if (target !== port.number) found[port.number] = target;
    }
  return found;
}

/** A router in its role as client of its routes. */
export function routerClient(router: RouterClass, read: Reader, deps: GatewayDeps): Client {
  return clientOf(viewOfRouter(router), optionsOf(read, deps.inputs).domainSuffix);
}

export function viewOfRouter({ namespace: client, traits, matched }: RouterClass): ClientView {
  return { client, traits, matched };
}

/** Adds a resource to the lists of all routers in a class. */
export function emitToRouters(
  emit: Emit<Member>,
  read: Reader,
  { byClass }: Routers,
  routerClass: string,
  resource: EncodedResource,
): void {
  for (const { key } of read.group(byClass, routerClass)) emitMember(emit, gatewayList(key), resource);
}
