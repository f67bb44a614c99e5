import type { Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { hostShortened } from '../../settle/domains.ts';
import { hostsMatch, isWildcard, wildcardKey } from '../../model/host.ts';
import { hashesRequests } from '../../model/policy-resolution.ts';
import { isVisibleTo, longestAliasChain } from '../../model/service.ts';
import type { DestinationRuleModel } from '../../model/traffic-policy.ts';
import { type RouteBinding, isInMesh } from '../../model/route-binding.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import { type CoveredServices, divergentClients } from './covered-services.ts';
import { namespacesOfRivals, routeTargets } from './route-targets.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import type { Rules } from '../objects/rules.ts';
import { type NamedHost, isBareName, keepersOf } from '../objects/service-names.ts';
import { type Services, namespacesOf } from '../objects/services.ts';

/** Clients in this namespace see the services of the target namespace differently. */
export interface AudienceClaim {
  readonly client: string;
  /** `*`: the services of every namespace. */
  readonly target: string;
}

export interface Audiences {
  readonly byTarget: Index<AudienceClaim>;
}

export function declareAudiences(
  graph: Graph,
  inputs: Inputs,
  services: Services,
  rules: Rules,
  bindings: RouteBindings,
  coveredServices: CoveredServices,
): Audiences {
  const ruleClaims = graph.derive('rule audiences', rules.rules, (key, rule, read, emit: Emit<AudienceClaim>) => {
    const everybody = isForEverybody(rule);
    const own = namespacesOf(read, services, [rule.host]);
    const foreign = own.some((target) => target !== rule.namespace);
    // Routes of any host may lead to this one, and must know its subsets and hash keys as these clients see them.
    const targets = foreign && isSeenByRoutes(rule) ? ['*'] : own;
    const clients = clientsOf(rule);
    for (const target of targets)
      for (const client of clients)
        // A public rule next to its service is what everyone sees.
        if (!everybody || client !== target) emit(`${key}|${target}|${client}`, { client, target });
  });
  const routeClaims = graph.derive('route audiences', bindings.all, (key, binding, read, emit: Emit<AudienceClaim>) => {
    const named = namedClients(binding);
    const clients = new Set([...binding.needs.clients, ...named]);
    // If it leads to a host that some clients see differently, or have a rule for, they see its routes differently.
    for (const host of new Set(binding.needs.targets.map((target) => target.host))) {
      for (const client of clientsOfHost(host, read, services)) clients.add(client);
      for (const rule of privateRules(host, read, services, rules))
        for (const client of clientsOf(rule)) clients.add(client);
    }
    const claimed = new Set<string>();
    const claim = (client: string, target: string): void => {
      if (claimed.size < claimed.add(`${target}|${client}`).size)
        emit(`${key}|${target}|${client}`, { client, target });
    };
    if (clients.size > 0)
      for (const target of routeTargets(binding, read, services, bindings))
        for (const client of clients) claim(client, target);
    // Its hosts are served for these clients on ports on which they are not for others, or the other way round. Any
    // host of the same name, and any service that loses a domain to one of them, depends on that.
    const holding = new Set([...named, ...binding.hosts.flatMap((host) => [...clientsOfHost(host, read, services)])]);
    for (const client of clientsUnder(binding, read, coveredServices)) holding.add(client);
    if (holding.size === 0) return;
    const rivals = namespacesOfRivals(binding, read, bindings);
    const { domainSuffix } = optionsOf(read, inputs);
    for (const client of holding)
      for (const target of [...rivals, ...losersOf(binding.hosts, { client, domainSuffix }, read, services, bindings)])
        claim(client, target);
  });
  const serviceClaims = graph.derive(
    'service audiences',
    services.services,
    (key, service, read, emit: Emit<AudienceClaim>) => {
      const clients = new Set([service, ...service.aliases].flatMap(namedClients));
      const rivals = read.group(services.byHost, service.host);
      if (rivals.length > 1) for (const rival of rivals) clients.add(rival.value.namespace);
      const { domainSuffix } = optionsOf(read, inputs);
      if (service.registry === 'External')
        for (const client of keepingClients(service, domainSuffix, read, services)) clients.add(client);
      for (const client of clients)
        emit(`${key}|${service.namespace}|${client}`, { client, target: service.namespace });
      const names = [service.host, ...service.addresses, ...service.autoAddresses];
      for (const client of clients)
        for (const target of losersOf(names, { client, domainSuffix }, read, services, bindings))
          if (target !== service.namespace) emit(`${key}|${target}|${client}`, { client, target });
    },
  );
  const claims = graph.derive(
    'audiences',
    graph.index('audience claims', [ruleClaims, routeClaims, serviceClaims], (_, claim) => [
      `${claim.target}|${claim.client}`,
    ]),
    (key, members, _, emit: Emit<AudienceClaim>) => emit(key, members[0].value),
  );
  return { byTarget: graph.index('audiences by target', claims, (_, claim) => [claim.target]) };
}

type Rule = DestinationRuleModel;

function isForEverybody(rule: Rule): boolean {
  return rule.exportTo.includes('*') && rule.workloadSelector === undefined && rule.audiences === undefined;
}

function isSeenByRoutes(rule: Rule): boolean {
  return rule.subsets.length > 0 || hashesRequests(rule);
}

function clientsOf(rule: Rule): Set<string> {
  const named = isForEverybody(rule) ? [] : rule.exportTo.filter((namespace) => namespace !== '*');
  return new Set([...named, rule.namespace]);
}

/** Namespaces that something is exported to by name; none if everyone sees it. */
function namedClients({ exportTo }: { readonly exportTo: readonly string[] }): readonly string[] {
  return exportTo.includes('*') ? [] : exportTo.filter((client) => client !== '~');
}

/** Namespaces whose clients may get another service for a host than everyone else. */
function clientsOfHost(host: string, read: Reader, services: Services): ReadonlySet<string> {
  return divergentClients(read.group(services.byHost, host).map(({ value }) => value));
}

/** Namespaces whose clients may get other services under the wildcards of a route than everyone else. */
function clientsUnder(binding: RouteBinding, read: Reader, { clients }: CoveredServices): Set<string> {
  if (!isInMesh(binding)) return new Set();
  const wildcards = binding.hosts.filter(isWildcard);
  return new Set(wildcards.flatMap((host) => read.group(clients, wildcardKey(host)).map(({ value }) => value.client)));
}

/**
 * Namespaces whose clients do not get a host by its name, because it is kept by a Service that others see differently,
 * or not at all.
 */
function keepingClients(named: NamedHost, domainSuffix: string, read: Reader, services: Services): string[] {
  const bare = isBareName(named.host);
  return keepersOf(named, domainSuffix, read, services).flatMap((keeper) => {
    if (!bare) return namedClients(keeper);
    return isVisibleTo(keeper, keeper.namespace) ? [keeper.namespace] : [];
  });
}

/**
 * Namespaces of services that lose a domain to a host or address that only some client namespace sees: whatever builds
 * their virtual hosts must see it too. Such a service has a short form, an alias or pods with that name. The virtual
 * hosts of an alias are in the namespaces of its routes.
 */
function losersOf(
  names: readonly string[],
  { client, domainSuffix }: { readonly client: string; readonly domainSuffix: string },
  read: Reader,
  services: Services,
  { byHost }: RouteBindings,
): Set<string> {
  const found = new Set<string>();
  const addAll = (host: string, rest = longestAliasChain): void => {
    for (const { value } of read.group(services.byHost, host)) {
      found.add(value.namespace);
      if (value.externalName === undefined) continue;
      for (const routes of read.group(byHost, host)) found.add(routes.value.namespace);
      if (rest > 0) addAll(value.externalName, rest - 1);
    }
  };
  for (const name of names) {
    for (const { value } of read.group(services.byAddress, name)) found.add(value.namespace);
    for (const of of name.startsWith('*.') ? [name, name.slice(2)] : [name])
      for (const host of [of, hostShortened(of, { namespace: client, domainSuffix })]) addAll(host);
  }
  return found;
}

/** Rules for a host, in its service's namespace, that apply only to some clients and that routes depend on. */
function privateRules(host: string, read: Reader, services: Services, rules: Rules): Rule[] {
  return namespacesOf(read, services, [host])
    .flatMap((namespace) => [
      ...read.group(rules.byHost, `${namespace}/${host}`),
      ...read.group(rules.wildcards, namespace).filter(({ value }) => hostsMatch(value.host, host)),
    ])
    .map(({ value }) => value)
    .filter((rule) => !isForEverybody(rule) && isSeenByRoutes(rule));
}
