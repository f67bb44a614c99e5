import { printRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { Collection, Emit, Graph } from '../cache/graph.ts';
import { resolveClaims } from '../envoy/outbound-conflicts.ts';
import { type Aged, compareAge, printWinner } from '../model/age.ts';
import type { L4Claim } from '../model/listener.ts';
import { type MeshService, isVisibleTo, protocolClass } from '../model/service.ts';
import { anyTraits, wildcardAddress } from '../model/traits.ts';
import { candidatesFor, ruleClientOf } from './clients.ts';
import { claimsOfService } from './outbound-listeners.ts';
import type { HasProblems } from './problems.ts';
import { ruleFor } from './rules.ts';
import type { View } from './scopes.ts';
import { settingOf } from './settings.ts';
import { routeKeys } from './views.ts';
import type { RouteParts } from './virtual-hosts.ts';

interface OwnedClaim {
  readonly listener: string;
  readonly rank: number;
  readonly claim: L4Claim;
  readonly age: Aged;
  readonly exportTo: readonly string[];
}

/**
 * ServiceEntries whose connections an older one has: without addresses, or with the same, nothing tells TCP services of a
 * port apart. As clients in their own namespace see it, whether a proxy is there or not.
 */
export function declareListenerConflicts(graph: Graph, parts: RouteParts): Collection<HasProblems> {
  const claims = graph.derive(
    'listener claims of entries',
    parts.services.services,
    (key, service, read, emit: Emit<OwnedClaim>) => {
      if (service.registry !== 'External' || !service.ports.some(({ protocol }) => isTcp(protocol))) return;
      const view: View = {
        key: '',
        namespace: service.namespace,
        traits: anyTraits,
        client: service.namespace,
        matched: [],
      };
      const { rootNamespace } = settingOf(read, parts.settings.visibility);
      const rule = ruleFor(read, parts.rules, service, rootNamespace, ruleClientOf(view));
      const ports = service.ports.filter(({ protocol }) => isTcp(protocol)).map((port) => port.number);
      const own = {
        list: '',
        view,
        service: key,
        rule: rule?.id ?? '',
        routes: routeKeys(candidatesFor(read, parts, view, service.host)),
        ports,
        clusterPorts: ports,
      };
      for (const [listener, found] of claimsOfService(own, read, parts))
        for (const [index, { rank, age, claim }] of found.entries())
          // Server names, of which there may be thousands at one port, tell services apart.
          if (claim.kind !== 'http' && claim.chains.some(({ serverNames }) => serverNames.length === 0))
            emit(`${key}|${listener}|${index}`, { listener, rank, claim, age, exportTo: service.exportTo });
    },
  );
  return graph.derive(
    'conflicts of listeners',
    graph.index(
      'entries by listener',
      claims,
      (_, { listener }) => [listener],
      (a, b) => compareAge(a.value.age, b.value.age),
    ),
    (listener, members, _, emit: Emit<HasProblems>) => {
      if (members.length < 2) return;
      const all = members.map((member) => member.value);
      const resolved = resolveClaims(all, wildcardAddress(anyTraits));
      const problems = (resolved?.conflicts ?? []).flatMap(({ loser, winner }) => {
        const owner = all.find(({ claim }) => claim.host === winner);
        const age = all.find(({ claim }) => claim.host === loser.host)?.age;
        return owner === undefined || age === undefined ? [] : problemsOf(loser, age, owner);
      });
      if (problems.length > 0) emit(listener, { problems });
    },
  );
}

function isTcp(protocol: MeshService['ports'][number]['protocol']): boolean {
  return protocolClass(protocol) === 'tcp';
}

function problemsOf(loser: L4Claim, age: Aged, { claim, age: winnersAge, exportTo }: OwnedClaim): Problem[] {
  const [winner] = claim.origins;
  // Hosts of one ServiceEntry share its endpoints.
  if (winner === undefined || loser.origins.includes(winner)) return [];
  if (!isVisibleTo({ exportTo }, loser.namespace)) return [];
  const [address] = loser.bind.addresses;
  const message = `Connections to ${address}:${loser.port} go to ${claim.host} of ${printWinner(printRef(winner), winnersAge, age)}, those to ${loser.host} too: nothing distinguishes them. Give one of them an address of its own in spec.addresses, or another port.`;
  return loser.origins.map((object) => ({ object, field: 'spec.ports', reason: 'Ineffective', message }));
}
