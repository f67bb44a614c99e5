import type { HasProblems, Problem } from '../../api/problem.ts';
import { boundProblems } from '../../api/problem-list.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { type DestinationTarget, destinationKey } from '../../model/client.ts';
import type { GatewayModel } from '../../model/gateway.ts';
import { isWildcard } from '../../model/host.ts';
import { portNumbered } from '../../model/service.ts';
import type { SidecarModel } from '../../model/sidecar.ts';
import { anyTraits } from '../../model/traits.ts';
import { type VirtualServiceModel, meshGateway } from '../../model/virtual-service.ts';
import { destinationsOf } from '../../model/virtual-service-parts.ts';
import { parseObjectKey, objectKey } from '../../api/object.ts';
import { toldTo } from '../../settle/delegate.ts';
import { missingDestination } from '../../settle/missing-destination.ts';
import { type GatewayHosts, declareGatewayHosts, outsideGateways } from './gateway-hosts.ts';
import { declareIdleDelegates } from './idle-delegates.ts';
import { addressHosts, uselessPorts, uselessRoutes } from './useless-routes.ts';
import { type NamedService, resolveDestination } from '../../settle/destination.ts';
import { type DestinationDeps, namedService, targetOf } from '../clients/destinations.ts';
import { serviceFor } from '../clients/lookups.ts';
import type { Sidecars } from '../objects/sidecars.ts';
import type { VirtualServices } from '../objects/virtual-services.ts';

export interface ReferenceDeps extends DestinationDeps {
  readonly virtualServices: VirtualServices;
  readonly sidecars: Sidecars;
  /** Gateways as parsed. */
  readonly gateways: Collection<GatewayModel>;
}

/** Names in objects that do not resolve for clients in the object's own namespace, even if no proxy is there. */
export function declareReferences(graph: Graph, deps: ReferenceDeps): readonly Collection<HasProblems>[] {
  const gatewayHosts = declareGatewayHosts(graph, deps.gateways);
  const routes = graph.derive(
    'references of routes',
    deps.virtualServices.routes,
    (key, model, read, emit: Emit<HasProblems>) => {
      const problems = boundProblems(findingsOf(key, model, read, { ...deps, gatewayHosts }));
      if (problems.length > 0) emit(key, { problems });
    },
  );
  const rules = graph.derive('references of rules', deps.rules.single, (key, rule, read, emit: Emit<HasProblems>) => {
    if (isWildcard(rule.host) || read.group(deps.services.byHost, rule.host).length > 0) return;
    const message = `No Service or ServiceEntry has the host ${JSON.stringify(rule.host)}; create it, or correct the name. Until then the rule has no effect.`;
    emit(key, {
      problems: rule.origins.map((object) => ({ object, field: 'spec.host', reason: 'RefNotFound' as const, message })),
    });
  });
  const sidecars = graph.derive(
    'references of sidecars',
    deps.sidecars.models,
    (key, model, read, emit: Emit<HasProblems>) => {
      const problems = missingEgressProxy(model, read, deps);
      if (problems.length > 0) emit(key, { problems });
    },
  );
  return [routes, rules, sidecars, declareIdleDelegates(graph, deps.virtualServices)];
}

function missingEgressProxy(model: SidecarModel, read: Reader, deps: ReferenceDeps): Problem[] {
  const proxy = model.outboundTrafficPolicy?.egressProxy;
  if (proxy === undefined) return [];
  const egress = { sidecar: model.key, listener: 0 };
  const view = { client: model.namespace, traits: anyTraits, matched: [], egress };
  return missingDestination(model.ref, proxy, targetOf(proxy, proxy.port ?? 0, view, read, deps));
}

/** A service without endpoints does exist. */
function isMissing(target: DestinationTarget): boolean {
  return target.kind === 'missing' && target.what !== 'endpoints';
}

/** One after the other: an object can have a hundred thousand destinations. */
function* findingsOf(
  key: string,
  model: VirtualServiceModel,
  read: Reader,
  deps: ReferenceDeps & { readonly gatewayHosts: Collection<GatewayHosts> },
): Iterable<Problem> {
  yield* missingDestinations(model, read, deps);
  yield* missingGateways(key, model, read, deps);
  yield* outsideGateways(key, model, read, deps.gatewayHosts);
  yield* uselessRoutes(key, model, read, deps);
  yield* uselessPorts(model, read, deps);
  yield* addressHosts(model, read, deps);
}

function* missingDestinations(model: VirtualServiceModel, read: Reader, deps: ReferenceDeps): Iterable<Problem> {
  const view = { client: model.namespace, traits: anyTraits, matched: [] };
  const ports = new Set(
    model.hosts.flatMap((host) => (serviceFor(read, deps, view, host)?.ports ?? []).map((port) => port.number)),
  );
  const [first] = ports;
  // Requests for hosts that no service has arrive on port 80, if anywhere: another destination is to have a single port.
  const isUnknown = first === undefined && model.gateways.includes(meshGateway) && !model.hosts.some(isWildcard);
  /** By host of a destination. Whatever else there is to it is the same for all ports that it has. */
  const usable = new Map<string, { readonly found: NamedService; readonly common: number | undefined }>();
  for (const same of Map.groupBy(destinationsOf(model), ({ destination }) => destinationKey(destination)).values()) {
    const { destination } = same[0]!;
    const { host } = destination;
    let known = usable.get(host);
    if (known === undefined) {
      const found = namedService(host, view, read, deps);
      const common = found.service?.ports.find(
        ({ number, protocol }) => protocol !== 'UDP' && ports.has(number),
      )?.number;
      usable.set(host, (known = { found, common }));
    }
    const { found, common } = known;
    const own = found.service?.ports ?? [];
    const lookup = (port: number): DestinationTarget => resolveDestination(destination, port, view, found);
    // Without a port in the route, the request's port applies: it is enough if the destination has one of these ports.
    const isHttp = same.every((each) => each.destination.field.startsWith('spec.http'));
    const any = isUnknown && isHttp ? (portNumbered(own, 80)?.number ?? 0) : (own[0]?.number ?? 0);
    const isFixed = destination.port !== undefined || first === undefined;
    if (!isMissing(lookup(isFixed ? any : (common ?? first)))) continue;
    const target = lookup(isFixed ? any : first);
    for (const each of same)
      for (const problem of missingDestination(each.object, each.destination, target)) yield toldTo(model, problem);
  }
}

function* missingGateways(
  key: string,
  model: VirtualServiceModel,
  read: Reader,
  deps: ReferenceDeps,
): Iterable<Problem> {
  const { source } = parseObjectKey(key);
  for (const [i, gateway] of model.gateways.entries()) {
    if (gateway === meshGateway) continue;
    const [namespace = '', name = ''] = gateway.split('/');
    if (read.get(deps.inputs.objects.Gateway, objectKey(source, namespace, name)) !== undefined) continue;
    const message = `There is no Gateway ${JSON.stringify(name)} in namespace ${JSON.stringify(namespace)}; create it, or correct the name. Until then the routes are not served there.`;
    yield { object: model.ref, field: `spec.gateways[${i}]`, reason: 'RefNotFound', message };
  }
}
