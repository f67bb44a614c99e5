import type { Reader } from '../../cache/graph.ts';
import { type DestinationName, type DestinationTarget, type Targets, destinationKey } from '../../model/client.ts';
import { isServed } from '../../model/dns-endpoints.ts';
import type { EndpointSummary } from '../../model/endpoint.ts';
import { type MeshService, isDns, serviceKey } from '../../model/service.ts';
import { type NamedService, resolveDestination, resolveForConnections } from '../../settle/destination.ts';
import type { Inputs } from '../inputs.ts';
import { NO_ENDPOINTS } from '../objects/endpoint-groups.ts';
import type { ServiceEndpoints } from '../objects/endpoints.ts';
import { type Rules, ruleFor } from '../objects/rules.ts';
import type { Services } from '../objects/services.ts';
import type { Sidecars } from '../objects/sidecars.ts';
import { type Settings, settingOf } from '../settings.ts';
import { type ClientView, concreteService, ruleClientOf, serviceFor } from './lookups.ts';

export interface DestinationDeps {
  readonly inputs: Inputs;
  readonly settings: Settings;
  readonly services: Services;
  readonly sidecars: Sidecars;
  readonly rules: Rules;
  readonly endpoints: ServiceEndpoints;
}

/**
 * Where destinations lead the clients of a view. Thousands of routes may lead to a few destinations: each is resolved
 * once.
 *
 * @param listenerPort 0: a listener for all ports.
 */
export function targetsOf(
  destinations: Iterable<DestinationName>,
  listenerPort: number,
  view: ClientView,
  read: Reader,
  deps: DestinationDeps,
): Targets {
  return resolved(resolveDestination, destinations, listenerPort, view, read, deps);
}

/** The same for connections. */
export function connectionTargetsOf(
  destinations: Iterable<DestinationName>,
  listenerPort: number,
  view: ClientView,
  read: Reader,
  deps: DestinationDeps,
): Targets {
  return resolved(resolveForConnections, destinations, listenerPort, view, read, deps);
}

function resolved(
  resolve: typeof resolveDestination,
  destinations: Iterable<DestinationName>,
  listenerPort: number,
  view: ClientView,
  read: Reader,
  deps: DestinationDeps,
): Targets {
  const targets = new Map<string, DestinationTarget>();
  const services = new Map<string, NamedService>();
  for (const destination of destinations) {
    const key = destinationKey(destination);
    if (targets.has(key)) continue;
    const { host } = destination;
    const named = services.get(host) ?? namedService(host, view, read, deps);
    services.set(host, named);
    targets.set(key, resolve(destination, listenerPort, view, named));
  }
  return targets;
}

/** Where one destination leads. */
export function targetOf(
  destination: DestinationName,
  listenerPort: number,
  view: ClientView,
  read: Reader,
  deps: DestinationDeps,
): DestinationTarget {
  return resolveDestination(destination, listenerPort, view, namedService(destination.host, view, read, deps));
}

/** What a host names for the clients of a view. */
export function namedService(host: string, view: ClientView, read: Reader, deps: DestinationDeps): NamedService {
  const named = serviceFor(read, deps, view, host);
  const service = concreteService(read, deps, view, host);
  if (service === undefined) return { named, service, rule: undefined, endpoints: NO_ENDPOINTS };
  const { rootNamespace } = settingOf(read, deps.settings.visibility);
  const rule = ruleFor(read, deps.rules, service, rootNamespace, ruleClientOf(view));
  return { named, service, rule, endpoints: resolvedEndpoints(service, read, deps) };
}

/** Of services that Envoy resolves alone: routes do not depend on the endpoints of others. */
function resolvedEndpoints(
  service: MeshService,
  read: Reader,
  { endpoints }: Pick<DestinationDeps, 'endpoints'>,
): EndpointSummary {
  return (isDns(service) && read.get(endpoints.summaries, serviceKey(service))) || NO_ENDPOINTS;
}

/** Whether a port of a service has a cluster. */
export function isServedNow(
  service: MeshService,
  port: number,
  read: Reader,
  deps: Pick<DestinationDeps, 'endpoints'>,
): boolean {
  return isServed(service, port, {}, resolvedEndpoints(service, read, deps));
}
