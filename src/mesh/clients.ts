import type { Reader } from '../cache/graph.ts';
import type { Client } from '../model/client.ts';
import { followAliases } from '../model/destination-target.ts';
import { compareSpecificity, hostsMatch, isWildcard, wildcardsOf } from '../model/host.ts';
import { type Labels, printSelector } from '../model/labels.ts';
import { type MeshService, isVisibleTo } from '../model/service.ts';
import { egressImportsRoutes } from '../model/sidecar.ts';
import { type Candidate, isVisible } from '../model/virtual-service-selection.ts';
import type { Scope } from './proxies.ts';
import type { View } from './scopes.ts';
import type { Services } from './services.ts';
import { type Sidecars, egressOf } from './sidecars.ts';
import { type VirtualServices, wildcardKey } from './virtual-services.ts';

/** What makes clients see the mesh as they do. */
export type ClientView = Pick<View, 'client' | 'traits' | 'matched'>;

/** The clients of a scope. */
export function clientViewOf({ namespace, traits, matched }: Scope): ClientView {
  return { client: namespace, traits, matched };
}

/** The clients of a view, as builders see them. */
export function clientOf(view: ClientView, domainSuffix: string): Client {
  return {
    namespace: view.client,
    domainSuffix,
    traits: view.traits,
    matches: (selector) => matches(view, selector),
  };
}

/** What a client of the view can be asked by rules; undefined for the public audience, which has no namespace. */
export function ruleClientOf(
  view: Pick<ClientView, 'client' | 'matched'>,
): { readonly namespace: string; matches(selector: Labels): boolean } | undefined {
  if (view.client === '') return undefined;
  return { namespace: view.client, matches: (selector) => matches(view, selector) };
}

function matches(view: Pick<ClientView, 'matched'>, selector: Labels): boolean {
  return Object.keys(selector).length === 0 || view.matched.includes(printSelector(selector));
}

/** The service that a host name means to the clients of a view: that of their own namespace, or the first that they see. */
export function serviceFor(
  read: Reader,
  services: Services,
  view: Pick<ClientView, 'client'>,
  host: string,
): MeshService | undefined {
  let found: MeshService | undefined;
  for (const { value: service } of read.group(services.byHost, host)) {
    if (!isVisibleTo(service, view.client)) continue;
    if (service.namespace === view.client) return service;
    found ??= service;
  }
  return found;
}

/** As {@link serviceFor}, behind Services of type ExternalName. */
export function concreteService(
  read: Reader,
  services: Services,
  view: Pick<ClientView, 'client'>,
  host: string,
): MeshService | undefined {
  const find = (name: string) => serviceFor(read, services, view, name);
  return followAliases(find(host), find);
}

/**
 * VirtualServices of the mesh that the clients of a view have for a host: those for the most specific host first, then the
 * oldest. An egress listener has those that it imports.
 */
export function candidatesFor(
  read: Reader,
  parts: { readonly virtualServices: VirtualServices; readonly sidecars: Sidecars },
  view: View,
  host: string,
): readonly Candidate[] {
  const { byHost, byWildcard } = parts.virtualServices;
  const exact = read.group(byHost, host).map(({ value }) => ({ matched: host, model: value }));
  const wild: Candidate[] = [];
  for (const wildcard of wildcardsOf(host))
    for (const { value } of read.group(byWildcard, wildcard))
      for (const matched of value.hosts)
        if (isWildcard(matched) && wildcardKey(matched) === wildcard && hostsMatch(matched, host))
          wild.push({ matched, model: value });
  wild.sort((a, b) => compareSpecificity(a.matched, b.matched));
  const listener = egressOf(read, parts.sidecars, view);
  return [...exact, ...wild].filter(
    ({ model }) =>
      isVisible(model, view.client) &&
      (listener === undefined || egressImportsRoutes(listener.hosts, view.client, model)),
  );
}
