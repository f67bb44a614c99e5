import { printRef } from '../../api/object.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import { boundProblems } from '../../api/problem-list.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { shadowedSidecars } from '../../reconcilers/sidecar/sidecar.ts';
import { printWinner } from '../../model/age.ts';
import { type RouteBinding, inOrderOfPrecedence, isSeenFrom } from '../../model/route-binding.ts';
import { isWildcard } from '../../model/host.ts';
import { isAddress } from '../../model/address.ts';
import { type MeshService, isVisibleTo } from '../../model/service.ts';
import { mostEndpoints } from '../../reconcilers/core/endpoint-slice.ts';
import { joiningOf, joins, mostListeners } from '../../reconcilers/service-entry/host-claims.ts';
import { printResolution } from '../../reconcilers/service-entry/service-entry.ts';
import { mostPorts } from '../../reconcilers/core/service.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import { lostRangesOf } from '../objects/lost-ranges.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import { type NamedHost, isBareName, keepersOf } from '../objects/service-names.ts';
import { type Services, ownerOf } from '../objects/services.ts';
import type { Sidecars } from '../objects/sidecars.ts';

/** If two objects claim the same thing, the older one gets it; the owner of the other is told which object won. */
export function declareConflicts(
  graph: Graph,
  inputs: Inputs,
  services: Services,
  bindings: RouteBindings,
  sidecars: Sidecars,
): readonly Collection<HasProblems>[] {
  const hosts = graph.derive('conflicts of hosts', services.claims, (key, members, _, emit: Emit<HasProblems>) => {
    const claims = members.map((member) => member.value);
    const [winner, ...others] = claims;
    const joining = new Set(joiningOf(claims));
    const problems = others.flatMap((loser): Problem[] => {
      if (winner === undefined || joining.has(loser)) return [];
      const message = hostMessage(winner, loser);
      return loser.origins.map((object) => ({ object, field: 'spec.hosts', reason: 'Conflicted', message }));
    });
    if (problems.length > 0) emit(key, { problems });
  });
  const addresses = graph.derive(
    'conflicts of addresses',
    services.parsedEntries,
    (key, { services: hosts, addresses: claimed }, read, emit: Emit<HasProblems>) => {
      const [first] = hosts;
      if (first === undefined) return;
      const lost = claimed.flatMap(({ address, field }) => {
        const owner = ownerOf(read, services.addressOwners, first, address);
        return owner === undefined ? [] : [{ address, field, owner }];
      });
      const rest = lost.length < claimed.length ? '' : ' The ServiceEntry has no other address, so it is left out.';
      const problems = lost.map(({ address, field, owner }): Problem => ({
        object: first.origins[0]!,
        field,
        reason: 'Conflicted',
        message: `${address} belongs to ${printRef(owner.origins[0]!)}, which keeps it; use another address.${rest}`,
      }));
      const fieldOf = new Map(claimed.map(({ address, field }) => [address, field]));
      const ranges = lostRangesOf(first, read, services.lostRanges).map(({ range, port, owner, address }): Problem => ({
        object: first.origins[0]!,
        field: fieldOf.get(range) ?? 'spec.addresses',
        reason: 'Conflicted',
        message: `${range} covers ${address} of ${printRef(owner)}, which keeps its HTTP port ${port}: the ServiceEntry gets no connections to this port in the range. Use ranges without Service addresses, or another port.`,
      }));
      if (problems.length + ranges.length > 0) emit(key, { problems: [...problems, ...ranges] });
    },
  );
  const names = graph.derive(
    'conflicts of names',
    services.parsedEntries,
    (key, { services: [first], hosts: listed }, read, emit: Emit<HasProblems>) => {
      if (first === undefined) return;
      const problems = listed.flatMap((host, i): Problem[] => {
        const keeper = keeperOf({ ...first, host }, read, inputs, services);
        if (keeper === undefined) return [];
        const message = `${JSON.stringify(host)} is ${isAddress(host) ? 'an address' : 'a short name'} of ${printRef(keeper.origins[0]!)}, which keeps it${isBareName(host) ? ` for clients in namespace ${keeper.namespace}` : ''}; use another host.`;
        return [{ object: first.origins[0]!, field: `spec.hosts[${i}]`, reason: 'Conflicted', message }];
      });
      if (problems.length > 0) emit(key, { problems });
    },
  );
  const routes = graph.derive('conflicts of routes', bindings.byHost, (host, members, _, emit: Emit<HasProblems>) => {
    const all = members.map((member) => member.value);
    const problems = routeConflicts(host, all, bindings);
    if (problems.length > 0) emit(host, { problems });
  });
  const wildcards = graph.derive(
    'conflicts of wildcard routes',
    bindings.byWildcard,
    (key, members, _, emit: Emit<HasProblems>) => {
      const named = members.flatMap(({ value }) => value.hosts.filter(isWildcard).map((host) => ({ host, value })));
      const problems = [...Map.groupBy(named, ({ host }) => host)].flatMap(([host, same]) =>
        routeConflicts(host, [...new Set(same.map(({ value }) => value))], bindings),
      );
      if (problems.length > 0) emit(key, { problems: boundProblems(problems) });
    },
  );
  const selections = graph.derive(
    'conflicts of sidecars',
    sidecars.byNamespace,
    (namespace, members, _, emit: Emit<HasProblems>) => {
      const problems = shadowedSidecars(members.map((member) => member.value)).map(({ loser, message }): Problem => ({
        object: loser.ref,
        field: 'spec',
        reason: 'Conflicted',
        message,
      }));
      if (problems.length > 0) emit(namespace, { problems });
    },
  );
  return [hosts, addresses, names, routes, wildcards, selections];
}

/** @param all for the host, oldest first. */
function routeConflicts(host: string, all: readonly RouteBinding[], bindings: RouteBindings): Problem[] {
  const rank = ({ ref }: RouteBinding): number => bindings.rankOf(ref.kind);
  const rivals = all.filter(({ hasRequests }) => hasRequests).sort((a, b) => rank(a) - rank(b));
  return rivals.flatMap((loser): Problem[] => {
    const won = winnerOver(loser, rivals, rank);
    if (won === undefined) return [];
    const { winner, client } = won;
    const isKin = winner.ref.kind === loser.ref.kind;
    if (isKin && !bindings.isExclusive(loser.ref.kind)) return [];
    const isSame = sameAudience(winner.exportTo, loser.exportTo);
    const whose = isSame && isKin ? printWinner(printRef(winner.ref), winner, loser) : printRef(winner.ref);
    const where = isSame || client === anyClient ? '' : ` in namespace ${client}`;
    const change = isSame || !isKin ? 'remove the host from one of them' : 'change exportTo';
    const message = `Sidecars${where} use the routes of ${whose} for the host ${JSON.stringify(host)}; ${isKin ? 'merge the two, or ' : ''}${change}.`;
    return [{ object: loser.ref, field: 'spec.hosts', reason: 'Conflicted', message }];
  });
}

/** Why two services with the same host are not served together. */
function hostMessage(winner: MeshService, loser: MeshService): string {
  const owner = printRef(winner.origins[0]!);
  const host = JSON.stringify(loser.host);
  if (winner.registry !== 'External')
    return `The host ${host} belongs to ${owner}; remove it here, or delete the Service.`;
  if (joins(winner, loser))
    return `The host ${host} would have more than ${mostEndpoints} endpoints, ${mostPorts} ports or ${mostListeners} addresses × ports together with ${owner} and others; use fewer, or another host.`;
  return `The host ${host} belongs to ${printWinner(owner, winner, loser)}, which has resolution ${printResolution(winner.resolution)}; this one has ${printResolution(loser.resolution)}. Only entries with the same resolution can share a host; use the same resolution, or remove the host from one of them.`;
}

/** The first Service that keeps a host from some client that would see both. */
function keeperOf(
  named: NamedHost & Pick<MeshService, 'exportTo'>,
  read: Reader,
  inputs: Inputs,
  services: Services,
): MeshService | undefined {
  const { domainSuffix } = optionsOf(read, inputs);
  return keepersOf(named, domainSuffix, read, services).find((keeper) =>
    isBareName(named.host)
      ? isVisibleTo(keeper, keeper.namespace) && isVisibleTo(named, keeper.namespace)
      : haveCommonClients(named.exportTo, keeper.exportTo),
  );
}

function haveCommonClients(a: readonly string[], b: readonly string[]): boolean {
  const seen = (exportTo: readonly string[]) => exportTo.some((client) => client !== '~');
  if (a.includes('*')) return seen(b);
  return b.includes('*') ? seen(a) : a.some((client) => client !== '~' && b.includes(client));
}

/** A namespace that no `exportTo` names. */
const anyClient = '*';

/**
 * Routes that apply in place of this one's, and where: for all of its clients, or for those of a
 * namespace. A namespace that keeps routes to itself, for a host that others have routes for, means it so.
 *
 * @param rivals for one host: by rank, and then oldest first.
 */
function winnerOver(
  loser: RouteBinding,
  rivals: readonly RouteBinding[],
  rank: (routes: RouteBinding) => number,
): { readonly winner: RouteBinding; readonly client: string } | undefined {
  const compared = rivals.slice(0, mostRivals);
  const named = [...new Set(compared.flatMap(({ exportTo }) => exportTo))];
  const clients = [anyClient, ...named.filter((client) => client !== '*' && client !== '~')];
  const seen = clients.filter((client) => isSeenFrom(loser, client));
  const lost = seen.flatMap((client) => {
    const [winner] = inOrderOfPrecedence(compared, client, (routes) => routes).sort((a, b) => rank(a) - rank(b));
    return winner === undefined || winner === loser ? [] : [{ winner, client }];
  });
  if (lost.length === seen.length) return lost[0];
  return lost.find(({ winner, client }) => loser.namespace === client || !isPrivate(winner, client));
}

function isPrivate({ namespace, exportTo }: RouteBinding, client: string): boolean {
  return namespace === client && !exportTo.includes('*');
}

function sameAudience(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((namespace, i) => namespace === b[i]);
}

/** Routes for one host that are compared with each other. */
const mostRivals = 50;
