import type { Service } from '../../api/core.ts';
import { parseObjectKey, refOf } from '../../api/object.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import { fitRings, mostPlaces } from '../../model/ring-sizes.ts';
import { anyTraits } from '../../model/traits.ts';
import { listAnnotations, mostListed, mostPorts, namesIn } from '../../reconcilers/core/service.ts';
import { mostListeners } from '../../reconcilers/service-entry/host-claims.ts';
import { type ServiceLookup, serviceFor } from '../clients/lookups.ts';
import type { Inputs } from '../inputs.ts';
import { listeningPorts } from '../objects/endpoint-groups.ts';
import type { ServiceEndpoints } from '../objects/endpoints.ts';
import { isWildcard } from '../../model/host.ts';
import { type Rules, fitRule, mostSubsetClusters, ruleFor } from '../objects/rules.ts';
import { type Settings, settingOf } from '../settings.ts';

export interface SizeLimitDeps extends ServiceLookup {
  readonly inputs: Inputs;
  readonly rules: Rules;
  readonly settings: Settings;
  readonly endpoints: Pick<ServiceEndpoints, 'summaries'>;
}

/** Objects that count only in part, because they would produce too much: as seen by clients in their own namespace. */
export function declareSizeLimits(graph: Graph, deps: SizeLimitDeps): readonly Collection<HasProblems>[] {
  const large = graph.index('Services with too long lists', deps.inputs.objects.Service, (key, object) =>
    longLists(object as Service).length > 0 ? [key] : [],
  );
  const lists = graph.derive('lists of Services', large, (key, [member], _, emit: Emit<HasProblems>) => {
    const service = member!.value as Service;
    const object = refOf(parseObjectKey(key).source, service);
    emit(key, {
      problems: longLists(service).map((found) => ({ object, reason: 'Ineffective' as const, ...found })),
    });
  });
  const subsets = graph.derive('subsets of rules', deps.rules.rules, (key, rule, read, emit: Emit<HasProblems>) => {
    const view = { client: rule.namespace, traits: anyTraits };
    // Subsets of a wildcard rule count for every service.
    const service = serviceFor(read, deps, view, rule.host);
    if (service === undefined) return;
    const fitting = fitRule(rule, service);
    const count = fitting.subsets.length;
    const problems: Problem[] = [];
    const tell = (message: string): void => {
      for (const object of rule.origins)
        problems.push({ object, field: 'spec.subsets', reason: 'Ineffective', message });
    };
    const cut = count === rule.subsets.length ? rule : { ...rule, subsets: rule.subsets.slice(0, count) };
    if (fitRings(cut, service) !== cut)
      tell(
        `${rule.host} has ${service.ports.length} ports with ${1 + count} clusters each, whose rings and tables have more than ${mostPlaces} entries in total, so they are made smaller. Lower minimumRingSize or tableSize.`,
      );
    if (count < rule.subsets.length)
      tell(
        `${rule.host} has ${service.ports.length} ports, with a cluster for each port and subset; at most ${mostSubsetClusters} are allowed, so only the first ${count} of ${rule.subsets.length} subsets are used. Remove subsets that no route uses.`,
      );
    if (problems.length > 0) emit(key, { problems });
  });
  const rings = graph.derive(
    'rings of wildcard rules',
    graph.index('services of many hosts', deps.services.services, (key, { hostsOfEntry }) =>
      hostsOfEntry === undefined ? [] : [key],
    ),
    (key, [first], read, emit: Emit<HasProblems>) => {
      const service = first.value;
      const { rootNamespace } = settingOf(read, deps.settings.visibility);
      const client = { namespace: service.namespace, matched: [] };
      const rule = ruleFor(read, deps.rules, service, rootNamespace, client);
      const whole = rule && read.get(deps.rules.rules, rule.id);
      if (whole === undefined || !isWildcard(whole.host) || fitRings(whole, service) === whole) return;
      const message = `${whole.host} covers a ServiceEntry with ${service.hostsOfEntry!} hosts, whose rings and tables have more than ${mostPlaces} entries in total, so they are made smaller. Lower minimumRingSize or tableSize.`;
      const problems = whole.origins.map((object) => ({
        object,
        field: 'spec.trafficPolicy',
        reason: 'Ineffective' as const,
        message,
      }));
      emit(key, { problems });
    },
  );
  const pods = graph.derive(
    'Pods of headless Services',
    graph.index('headless services with too many addresses', deps.endpoints.summaries, (key, { ignoredAddresses }) =>
      ignoredAddresses === undefined ? [] : [key],
    ),
    (key, [member], read, emit: Emit<HasProblems>) => {
      const service = read.get(deps.services.services, key);
      if (service === undefined) return;
      const { addresses, ignoredAddresses = 0 } = member!.value;
      const message = `has ${addresses.length + ignoredAddresses} endpoints with ${listeningPorts(service)} ports each; clients listen at no more than ${mostListeners} addresses × ports, and connections to the other ${ignoredAddresses} are those to an unknown address. Split the Service, or give it a cluster IP.`;
      const problems = service.origins.map((object) => ({
        object,
        field: service.registry === 'Kubernetes' ? 'spec.clusterIP' : 'spec.resolution',
        reason: 'Ineffective' as const,
        message,
      }));
      emit(key, { problems });
    },
  );
  return [lists, subsets, rings, pods];
}

function longLists({ spec, metadata: { annotations } }: Service): readonly Pick<Problem, 'field' | 'message'>[] {
  const ports = spec?.ports?.length ?? 0;
  if (annotations === undefined && ports <= mostPorts) return [];
  const named = listAnnotations.flatMap((name) => {
    const count = namesIn(annotations?.[name] ?? '').length;
    const message = `has ${count} names in ${name}; at most ${mostListed} are allowed, and only the first ones are used.`;
    return count > mostListed ? [{ field: 'metadata.annotations', message }] : [];
  });
  const message = `has ${ports} ports; at most ${mostPorts} are allowed, and only the first ones are used. Split the Service.`;
  return ports > mostPorts ? [{ field: 'spec.ports', message }, ...named] : named;
}
