import type { Reader } from '../cache/graph.ts';
import type { Client } from '../model/client.ts';
import { compareSpecificity, hostsMatch, isWildcard, wildcardsOf } from '../model/host.ts';
import { type Labels, printSelector } from '../model/labels.ts';
import { type MeshService, isVisibleTo } from '../model/service.ts';
import { type Candidate, isVisible } from '../model/virtual-service-selection.ts';
import type { Scope } from './proxies.ts';
import type { View } from './scopes.ts';
import type { Services } from './services.ts';
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

/** The service that a host name means to the clients of a view. */
export function serviceFor(
  read: Reader,
  services: Services,
  view: Pick<ClientView, 'client'>,
  host: string,
): MeshService | undefined {
  const visible = read
    .group(services.byHost, host)
    .flatMap((m) => (isVisibleTo(m.value, view.client) ? [m.value] : []));
  return visible.find((service) => service.namespace === view.client) ?? visible[0];
}

/** VirtualServices of the mesh that a view's clients see for a host: those for the most specific host first, then the oldest. */
export function candidatesFor(
  read: Reader,
  virtualServices: VirtualServices,
  client: string,
  host: string,
): readonly Candidate[] {
  const exact = read.group(virtualServices.byHost, host).map(({ value }) => ({ matched: host, model: value }));
  const wild: Candidate[] = [];
  for (const wildcard of wildcardsOf(host))
    for (const { value } of read.group(virtualServices.byWildcard, wildcard))
      for (const matched of value.hosts)
        if (isWildcard(matched) && wildcardKey(matched) === wildcard && hostsMatch(matched, host))
          wild.push({ matched, model: value });
  wild.sort((a, b) => compareSpecificity(a.matched, b.matched));
  return [...exact, ...wild].filter(({ model }) => isVisible(model, client));
}
