import type { Reader } from '../../cache/graph.ts';
import { isServed } from '../../model/dns-endpoints.ts';
import type { DestinationLookup, DestinationName, DestinationTarget } from '../../model/client.ts';
import { resolveDestination } from '../../settle/destination.ts';
import type { Labels } from '../../model/labels.ts';
import { remembered } from '../../model/remembered.ts';
import { type MeshService, isDns, serviceKey } from '../../model/service.ts';
import { type ClientView, clientOf, ruleClientOf, serviceFor } from '../clients/lookups.ts';
import { NO_ENDPOINTS } from '../objects/endpoint-groups.ts';
import type { ServiceEndpoints } from '../objects/endpoints.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import { type Rules, ruleFor } from '../objects/rules.ts';
import type { Services } from '../objects/services.ts';
import { type Settings, settingOf } from '../settings.ts';
import type { Sidecars } from '../objects/sidecars.ts';

export interface DestinationDeps {
  readonly inputs: Inputs;
  readonly settings: Settings;
  readonly services: Services;
  readonly sidecars: Sidecars;
  readonly rules: Rules;
  readonly endpoints: ServiceEndpoints;
}

/**
 * Destinations as the clients of a view see them. Thousands of routes may lead to a few destinations: each is resolved
 * once.
 */
export function lookupFor(view: ClientView, read: Reader, deps: DestinationDeps): DestinationLookup {
  const client = clientOf(view, optionsOf(read, deps.inputs).domainSuffix);
  const { rootNamespace } = settingOf(read, deps.settings.visibility);
  const resolved = new Map<string, DestinationTarget>();
  const rule = remembered((service: MeshService) =>
    ruleFor(read, deps.rules, service, rootNamespace, ruleClientOf(view)),
  );
  return (destination, listenerPort) => {
    const name = `${listenerPort} ${nameOf(destination)}`;
    let target = resolved.get(name);
    if (target === undefined) {
      target = resolveDestination(destination, listenerPort, client, {
        service: (host) => serviceFor(read, deps, view, host),
        rule,
        isServed: (service, port, labels) => isServedNow(service, port, labels, read, deps),
      });
      resolved.set(name, target);
    }
    return target;
  };
}

/** Equal for destinations that lead to the same place. */
export function nameOf({ host, subset, port }: DestinationName): string {
  return `${port ?? ''}|${subset}|${host}`;
}

/** Reads endpoints only for DNS services: routes do not depend on those of other services. */
export function isServedNow(
  service: MeshService,
  port: number,
  labels: Labels,
  read: Reader,
  deps: Pick<DestinationDeps, 'endpoints'>,
): boolean {
  if (!isDns(service)) return true;
  const summary = read.get(deps.endpoints.summaries, serviceKey(service)) ?? NO_ENDPOINTS;
  return isServed(service, port, labels, summary);
}
