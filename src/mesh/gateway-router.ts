import type { Problem } from '../api/problem.ts';
import type { Reader } from '../cache/graph.ts';
import type { Client, DestinationLookup } from '../model/client.ts';
import { resolveDestination } from '../model/destination-target.ts';
import type { MergedListener } from '../model/gateway.ts';
import { selects } from '../model/labels.ts';
import { optionsOf } from './inputs.ts';
import { ruleFor } from './policies.ts';
import type { Proxies, RouterFacts } from './proxies.ts';
import { settingOf } from './registry.ts';
import type { RouteParts } from './routes.ts';
import { serviceFor } from './views.ts';

export interface GatewayParts extends RouteParts {
  readonly proxies: Proxies;
}

/** All that Gateways ask of one router. */
export interface GatewaySet {
  readonly router: RouterFacts;
  readonly listeners: readonly MergedListener[];
  readonly problems: readonly Problem[];
}

/** The list of the resources that a router has from Gateways. */
export const gatewayList = (router: string): string => `gateway|${router}`;

/** What a router is as the client of its routes. */
export function routerClient(
  router: RouterFacts,
  read: Reader,
  parts: GatewayParts,
): { readonly client: Client; readonly lookup: DestinationLookup } {
  const client: Client = {
    namespace: router.namespace,
    domainSuffix: optionsOf(read, parts.inputs).domainSuffix,
    traits: router.traits,
    matches: (selector) => selects(selector, router.labels),
  };
  const { rootNamespace } = settingOf(read, parts.settings.visibility);
  const lookup: DestinationLookup = (destination, port) =>
    resolveDestination(destination, port, client, {
      service: (host) => serviceFor(read, parts.services, { client: client.namespace }, host),
      rule: (service) => ruleFor(read, parts.rules, service, rootNamespace, client),
    });
  return { client, lookup };
}
