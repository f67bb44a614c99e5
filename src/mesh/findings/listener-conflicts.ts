import { objectKey, printRef, sameObject } from '../../api/object.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { resolveClaims } from '../../settle/outbound-conflicts.ts';
import { type Aged, compareAge, printWinner } from '../../model/age.ts';
import type { L4Claim } from '../../model/listener.ts';
import { type MeshService, isVisibleTo, protocolClass } from '../../model/service.ts';
import { anyTraits, wildcardAddress } from '../../model/traits.ts';
import { candidatesFor, ruleClientOf } from '../clients/lookups.ts';
import { type ListenerDeps, claimsOfService, rankOfPublicAddress } from '../resources/outbound-listeners.ts';
import { ruleFor } from '../objects/rules.ts';
import type { View } from '../clients/scopes.ts';
import { settingOf } from '../settings.ts';
import { routeKeys } from '../clients/views.ts';

interface OwnedClaim {
  readonly listener: string;
  readonly rank: number;
  readonly claim: L4Claim;
  readonly age: Aged;
  readonly exportTo: readonly string[];
}

/**
 * ServiceEntries that lose connections to an older one: TCP services on the same port cannot be told apart without
 * addresses, or with equal ones. As seen by clients in their own namespace, even if no proxy is there.
 */
export function declareListenerConflicts(graph: Graph, deps: ListenerDeps): Collection<HasProblems> {
  const claims = graph.derive(
    'listener claims of entries',
    graph.index('TCP services of entries', deps.services.services, (key, { registry, ports }) =>
      registry === 'External' && ports.some(({ protocol }) => isTcp(protocol)) ? [key] : [],
    ),
    (key, [first], read, emit: Emit<OwnedClaim>) => {
      const service = first.value;
      const view: View = {
        key: '',
        namespace: service.namespace,
        traits: anyTraits,
        client: service.namespace,
        matched: [],
      };
      const { rootNamespace } = settingOf(read, deps.settings.visibility);
      const rule = ruleFor(read, deps.rules, service, rootNamespace, ruleClientOf(view));
      const ports = service.ports.filter(({ protocol }) => isTcp(protocol)).map((port) => port.number);
      const own = {
        list: '',
        view,
        service: key,
        rule: rule?.id ?? '',
        routes: routeKeys(candidatesFor(read, deps, view, service.host)),
        ports,
        clusterPorts: ports,
        isFirst: true,
      };
      for (const [listener, found] of claimsOfService(own, read, deps))
        for (const [index, { rank, age, claim }] of found.entries())
          // Server names tell services apart; one port may have thousands of them.
          if (claim.kind !== 'http' && claim.chains.some(({ serverNames }) => serverNames.length === 0))
            emit(`${key}|${listener}|${index}`, { listener, rank, claim, age, exportTo: service.exportTo });
    },
  );
  const pods = graph.index(
    'headless services by pod address',
    deps.endpoints.summaries,
    (_, { addresses }) => addresses,
  );
  return graph.derive(
    'conflicts of listeners',
    graph.index(
      'entries by listener',
      claims,
      (_, { listener }) => [listener],
      (a, b) => compareAge(a.value.age, b.value.age),
    ),
    (listener, members, read, emit: Emit<HasProblems>) => {
      const all = members.map((member) => member.value);
      const resolved = resolveClaims(all, wildcardAddress(anyTraits));
      const oldest = new Map<string, OwnedClaim>();
      for (const claim of all) if (!oldest.has(claim.claim.host)) oldest.set(claim.claim.host, claim);
      const problems = (resolved?.conflicts ?? []).flatMap(({ loser, winner }) => {
        const owner = oldest.get(winner);
        const age = oldest.get(loser.host)?.age;
        return owner === undefined || age === undefined ? [] : problemsOf(loser, age, owner);
      });
      const [address] = all[0]!.claim.bind.addresses;
      const headless = read
        .group(pods, address)
        .flatMap(({ key }) => read.get(deps.services.services, key) ?? [])
        .filter((service) => service.registry === 'Kubernetes' && listensAt(service, all[0]!.claim.port));
      const lost = all.flatMap((entry) => lostToPods(entry, headless, read, deps));
      if (problems.length + lost.length > 0) emit(listener, { problems: [...problems, ...lost] });
    },
  );
}

function isTcp(protocol: MeshService['ports'][number]['protocol']): boolean {
  return protocolClass(protocol) === 'tcp';
}

/** Whether the service has listeners for this port at its pods. */
function listensAt({ ports }: MeshService, number: number): boolean {
  return ports.some((port) => port.number === number && ['tcp', 'sniffed'].includes(protocolClass(port.protocol)));
}

/** Public entries come after the pods of headless Services. */
function lostToPods(
  { claim, rank }: OwnedClaim,
  headless: readonly MeshService[],
  read: Reader,
  deps: ListenerDeps,
): Problem[] {
  const winner = rank === rankOfPublicAddress && headless.find((service) => isVisibleTo(service, claim.namespace));
  if (!winner) return [];
  const [address] = claim.bind.addresses;
  const message = `${address} is the address of a Pod of ${printRef(winner.origins[0]!)}, which keeps its port ${claim.port}; use another address.`;
  return claim.origins.map((object) => {
    const entry = read.get(deps.services.parsedEntries, objectKey(object.source, object.namespace, object.name));
    const field = entry?.addresses.find((written) => written.address === address)?.field ?? 'spec.addresses';
    return { object, field, reason: 'Conflicted', message };
  });
}

function problemsOf(loser: L4Claim, age: Aged, { claim, age: winnersAge, exportTo }: OwnedClaim): Problem[] {
  const [winner] = claim.origins;
  // Hosts of one ServiceEntry share its endpoints.
  if (winner === undefined || loser.origins.some((origin) => sameObject(origin, winner))) return [];
  if (!isVisibleTo({ exportTo }, loser.namespace)) return [];
  const [address] = loser.bind.addresses;
  const message = `Connections to ${address}:${loser.port} go to ${claim.host} of ${printWinner(printRef(winner), winnersAge, age)}, and so do those to ${loser.host}, because Envoy cannot distinguish them. Give one of the hosts its own address in spec.addresses, or another port.`;
  return loser.origins.map((object) => ({ object, field: 'spec.ports', reason: 'Ineffective', message }));
}
