import type { Reader } from '../../cache/graph.ts';
import type { Client, RuleClient } from '../../model/client.ts';
import { compareSpecificity, hostsMatch, isWildcard, wildcardKey, wildcardsOf } from '../../model/host.ts';
import { type RouteBinding, isSeenFrom } from '../../model/route-binding.ts';
import { type MeshService, exportRank, isVisibleTo, longestAliasChain } from '../../model/service.ts';
import { egressImports, egressImportsRoutes } from '../../model/sidecar.ts';
import type { Scope } from './proxies.ts';
import type { View } from './scopes.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import type { Services } from '../objects/services.ts';
import { type Sidecars, egressOf } from '../objects/sidecars.ts';

/** What determines how clients see the mesh. */
export type ClientView = Pick<View, 'client' | 'traits' | 'matched' | 'egress'>;

/** The clients of a scope. */
export function clientViewOf({ namespace, traits, matched, sidecar }: Scope): ClientView {
  return { client: namespace, traits, matched, ...(sidecar !== '' && { egress: { sidecar, listener: 0 } }) };
}

/** The clients of a view, as builders see them. */
export function clientOf({ client: namespace, traits, matched }: ClientView, domainSuffix: string): Client {
  return { namespace, domainSuffix, traits, matched };
}

/** The client that rules are matched against; undefined for the public audience, which has no namespace. */
export function ruleClientOf({
  client: namespace,
  matched,
}: Pick<ClientView, 'client' | 'matched'>): RuleClient | undefined {
  return namespace === '' ? undefined : { namespace, matched };
}

export interface ServiceLookup {
  readonly services: Services;
  readonly sidecars: Sidecars;
}

/**
 * The service that a host name refers to, for the clients of a view. For sidecars: the one in their own namespace, or
 * else the first that they see; services that their Sidecar imports take precedence. For routers: the one exported to
 * the fewest, then the first, so that no other namespace can take over a host.
 */
export function serviceFor(
  read: Reader,
  { services, sidecars }: ServiceLookup,
  view: Pick<ClientView, 'client' | 'traits' | 'egress'>,
  host: string,
): MeshService | undefined {
  const all = read.group(services.byHost, host);
  // There is nearly always exactly one, and this runs for every service of every view.
  const [first] = all;
  if (first === undefined || all.length === 1)
    return first !== undefined && isVisibleTo(first.value, view.client) ? first.value : undefined;
  const visible = all.map(({ value }) => value).filter((service) => isVisibleTo(service, view.client));
  if (view.traits.proxyType === 'router') return visible.sort(compareForRouter(view.client))[0];
  const listeners =
    visible.length > 1 && view.egress !== undefined
      ? read.get(sidecars.models, view.egress.sidecar)?.egress
      : undefined;
  const imported = visible.filter((service) =>
    listeners?.some((listener) => egressImports(listener.hosts, view.client, service)),
  );
  const candidates = imported.length > 0 ? imported : visible;
  return candidates.find(({ namespace }) => namespace === view.client) ?? candidates[0];
}

/** Kubernetes Services come first, whatever they are exported to. */
function compareForRouter(client: string): (a: MeshService, b: MeshService) => number {
  const rank = (service: MeshService) => (service.registry === 'Kubernetes' ? -1 : exportRank(service, client));
  return (a, b) => rank(a) - rank(b);
}

/**
 * Like {@link serviceFor}, but the service that has clusters, behind Services of type ExternalName; undefined if these
 * lead nowhere.
 */
export function concreteService(
  read: Reader,
  deps: ServiceLookup,
  view: Pick<ClientView, 'client' | 'traits' | 'egress'>,
  host: string,
): MeshService | undefined {
  let found = serviceFor(read, deps, view, host);
  for (let i = 0; i < longestAliasChain && found?.resolution === 'Alias'; i++)
    found = found.externalName === undefined ? undefined : serviceFor(read, deps, view, found.externalName);
  return found?.resolution === 'Alias' ? undefined : found;
}

/** Routes, and the host by which they were found. */
export interface FoundBinding {
  readonly matched: string;
  readonly binding: RouteBinding;
}

/**
 * The routes of the mesh for a host, for the clients of a view: most specific host first, then oldest first. An
 * egress listener has only those that it imports.
 */
export function candidatesFor(
  read: Reader,
  deps: { readonly bindings: RouteBindings; readonly sidecars: Sidecars },
  view: View,
  host: string,
): readonly FoundBinding[] {
  const { byHost, byWildcard } = deps.bindings;
  const exact = read.group(byHost, host).map(({ value }) => ({ matched: host, binding: value }));
  const wild: FoundBinding[] = [];
  for (const wildcard of wildcardsOf(host))
    for (const { value } of read.group(byWildcard, wildcard))
      for (const matched of value.hosts)
        if (isWildcard(matched) && wildcardKey(matched) === wildcard && hostsMatch(matched, host))
          wild.push({ matched, binding: value });
  wild.sort((a, b) => compareSpecificity(a.matched, b.matched));
  const listener = egressOf(read, deps.sidecars, view);
  return [...exact, ...wild].filter(
    ({ binding }) =>
      isSeenFrom(binding, view.client) &&
      (listener === undefined || egressImportsRoutes(listener.hosts, view.client, binding)),
  );
}
