import type { Emit, Graph, Index } from '../cache/graph.ts';
import { hashesRequests } from '../model/policy-resolution.ts';
import type { VirtualServiceModel } from '../model/virtual-service.ts';
import { matchesOf } from '../model/virtual-service-parts.ts';
import { routeTargets } from './route-targets.ts';
import type { Rules } from './rules.ts';
import { type Services, namespacesOf } from './services.ts';
import type { VirtualServices } from './virtual-services.ts';

/** Clients of this namespace see the services of the target namespace in a way of their own. */
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
  services: Services,
  rules: Rules,
  virtualServices: VirtualServices,
): Audiences {
  const ruleClaims = graph.derive('rule audiences', rules.rules, (key, rule, read, emit: Emit<AudienceClaim>) => {
    const everybody = rule.exportTo.includes('*') && rule.workloadSelector === undefined;
    const own = namespacesOf(read, services, [rule.host]);
    const foreign = own.some((target) => target !== rule.namespace);
    // Routes of any host may lead to this one, and have to know its subsets and hash keys as these clients see them.
    const seen = rule.subsets.length > 0 || hashesRequests(rule);
    const targets = foreign && seen ? ['*'] : own;
    const clients = new Set(everybody ? [] : rule.exportTo.filter((namespace) => namespace !== '*'));
    clients.add(rule.namespace);
    for (const target of targets)
      for (const client of clients)
        // A public rule beside its service is what everybody sees.
        if (!everybody || client !== target) emit(`${key}|${target}|${client}`, { client, target });
  });
  const routeClaims = graph.derive(
    'route audiences',
    virtualServices.routes,
    (key, model, read, emit: Emit<AudienceClaim>) => {
      const clients = new Set(sourceNamespaces(model));
      if (!model.exportTo.includes('*')) for (const client of model.exportTo) clients.add(client);
      // Its other hosts are served on the ports of those that these clients alone see.
      if (model.hosts.length > 1)
        for (const { value } of model.hosts.flatMap((host) => read.group(services.byHost, host)))
          for (const client of value.exportTo) if (client !== '*' && client !== '~') clients.add(client);
      if (clients.size === 0) return;
      for (const target of routeTargets(model, read, services, virtualServices))
        for (const client of clients) emit(`${key}|${target}|${client}`, { client, target });
    },
  );
  const serviceClaims = graph.derive(
    'service audiences',
    services.services,
    (key, service, read, emit: Emit<AudienceClaim>) => {
      const clients = new Set(service.exportTo.filter((namespace) => namespace !== '*' && namespace !== '~'));
      const rivals = read.group(services.byHost, service.host);
      if (rivals.length > 1) for (const rival of rivals) clients.add(rival.value.namespace);
      for (const client of clients) emit(`${key}|${client}`, { client, target: service.namespace });
    },
  );
  const claims = graph.derive(
    'audiences',
    graph.index('audience claims', [ruleClaims, routeClaims, serviceClaims], (_, claim) => [
      `${claim.target}|${claim.client}`,
    ]),
    (key, members, _, emit: Emit<AudienceClaim>) => emit(key, members[0]!.value),
  );
  return { byTarget: graph.index('audiences by target', claims, (_, claim) => [claim.target]) };
}

function sourceNamespaces(model: VirtualServiceModel): string[] {
  return matchesOf(model).flatMap(({ sourceNamespace }) => (sourceNamespace === '' ? [] : [sourceNamespace]));
}
