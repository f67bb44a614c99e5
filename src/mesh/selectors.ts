import type { Emit, Graph, Index, Reader } from '../cache/graph.ts';
import { nearestFirst } from '../envoy/locality.ts';
import { isWildcard } from '../model/host.ts';
import { type Labels, printSelector } from '../model/labels.ts';
import type { VirtualServiceModel } from '../model/virtual-service.ts';
import type { Rules } from './policies.ts';
import type { Services, Settings } from './registry.ts';
import type { VirtualServices } from './virtual-services.ts';

/**
 * A selector of client labels that some route or rule mentions. Proxies that match the same of them share a scope,
 * whatever other labels they have.
 */
export interface Mention {
  readonly selector: Labels;
  /** Client namespace that it can concern; `*`: any. */
  readonly client: string;
  /** Namespace of the services that it is about; `*`: any. */
  readonly target: string;
}

/** Clients of this namespace see the services of the target namespace in a way of their own. */
export interface AudienceClaim {
  readonly client: string;
  /** `*`: the services of every namespace. */
  readonly target: string;
}

export interface Selectors {
  /** Group `all`: labels by which endpoints are preferred; proxies that differ in them look from different places. */
  readonly priorityLabels: Index<string>;
  readonly byClient: Index<Mention>;
  readonly byTarget: Index<Mention>;
}

export interface Audiences {
  readonly byTarget: Index<AudienceClaim>;
}

/** What splits clients: selectors of labels, and namespaces whose clients see services differently. */
export function declareAudiences(
  graph: Graph,
  settings: Settings,
  services: Services,
  rules: Rules,
  virtualServices: VirtualServices,
): { readonly selectors: Selectors; readonly audiences: Audiences } {
  const targetsOf = (read: Reader, hosts: readonly string[]): string[] => {
    if (hosts.some(isWildcard)) return ['*'];
    return [...new Set(hosts.flatMap((host) => read.group(services.byHost, host).map((m) => m.value.namespace)))];
  };

  const ruleMentions = graph.derive('rule mentions', rules.rules, (key, rule, read, emit: Emit<Mention>) => {
    const selector = rule.workloadSelector;
    if (selector === undefined) return;
    for (const target of targetsOf(read, [rule.host]))
      emit(`${key}|${target}`, { selector, client: rule.namespace, target });
  });
  const routeMentions = graph.derive(
    'route mentions',
    virtualServices.routes,
    (key, model, read, emit: Emit<Mention>) => {
      const selectors = sourceSelectors(model);
      if (selectors.length === 0) return;
      const targets = targetsOf(read, model.hosts);
      const clients = model.exportTo.includes('*') ? ['*'] : model.exportTo;
      for (const selector of selectors)
        for (const target of targets)
          for (const client of clients)
            emit(`${key}|${printSelector(selector)}|${target}|${client}`, { selector, client, target });
    },
  );
  const allMentions = [ruleMentions, routeMentions];
  const distinct = graph.derive(
    'selectors',
    graph.index('mentions', allMentions, (_, m) => [`${m.client}|${m.target}|${printSelector(m.selector)}`]),
    (key, members, _, emit: Emit<Mention>) => emit(key, members[0]!.value),
  );

  const ruleLabels = graph.derive(
    'rule priority labels',
    rules.rules,
    (key, rule, _, emit: Emit<readonly string[]>) => {
      const policies = [rule, ...rule.subsets].flatMap(({ policy, portPolicies }) => [
        policy,
        ...Object.values(portPolicies),
      ]);
      const labels = policies.flatMap(({ loadBalancer }) => loadBalancer?.localityLb?.failoverPriority ?? []);
      if (labels.length > 0) emit(key, namesOf(labels));
    },
  );
  const serviceLabels = graph.derive(
    'service priority labels',
    services.byShard,
    (shard, members, _, emit: Emit<readonly string[]>) => {
      const labels = members.flatMap(({ value: { trafficDistribution: near } }) => (near ? nearestFirst[near] : []));
      if (labels.length > 0) emit(shard, namesOf(labels));
    },
  );
  const meshLabels = graph.derive(
    'mesh priority labels',
    settings.clusters,
    (key, { localityLb }, _, emit: Emit<readonly string[]>) => {
      const labels = localityLb?.failoverPriority ?? [];
      if (labels.length > 0) emit(key, namesOf(labels));
    },
  );
  const priorityLabels = graph.derive(
    'priority labels',
    graph.index('who prefers by label', [ruleLabels, serviceLabels, meshLabels], (_, labels) => labels),
    (label, _, __, emit: Emit<string>) => emit(label, label),
  );

  const ruleClaims = graph.derive('rule audiences', rules.rules, (key, rule, read, emit: Emit<AudienceClaim>) => {
    const everybody = rule.exportTo.includes('*') && rule.workloadSelector === undefined;
    const own = targetsOf(read, [rule.host]);
    const foreign = own.some((target) => target !== rule.namespace);
    // Routes of any host may lead to this one, and have to know its subsets and hash keys as these clients see them.
    const seen = rule.subsets.length > 0 || JSON.stringify(rule).includes('"consistentHash"');
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
      if (clients.size === 0) return;
      for (const target of new Set([...targetsOf(read, model.hosts), model.namespace]))
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

  return {
    selectors: {
      priorityLabels: graph.index('all priority labels', priorityLabels, () => ['all']),
      byClient: graph.index('selectors by client', distinct, (_, mention) => [mention.client]),
      byTarget: graph.index('selectors by target', distinct, (_, mention) => [mention.target]),
    },
    audiences: { byTarget: graph.index('audiences by target', claims, (_, claim) => [claim.target]) },
  };
}

/** A failover priority is a label, or one with the value that it should have. */
function namesOf(priorities: readonly string[]): readonly string[] {
  return [...new Set(priorities.map((priority) => priority.split('=', 1)[0]!))];
}

/** All matches of a VirtualService, of whatever protocol. */
function matchesOf(model: VirtualServiceModel) {
  return [
    ...model.http.flatMap((route) => route.matches),
    ...model.tcp.flatMap((route) => route.matches),
    ...model.tls.flatMap((route) => route.matches),
  ];
}

function sourceSelectors(model: VirtualServiceModel): Labels[] {
  const found = new Map<string, Labels>();
  for (const { sourceLabels } of matchesOf(model))
    if (Object.keys(sourceLabels).length > 0) found.set(printSelector(sourceLabels), sourceLabels);
  return [...found.values()];
}

function sourceNamespaces(model: VirtualServiceModel): string[] {
  return matchesOf(model).flatMap(({ sourceNamespace }) => (sourceNamespace === '' ? [] : [sourceNamespace]));
}
