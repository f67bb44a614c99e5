import { isDeepStrictEqual } from 'node:util';
import { printRef } from '../../api/object.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import { quote } from '../../api/quote.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import { printWinner } from '../../model/age.ts';
import type { MeshService } from '../../model/service.ts';
import type { Services } from '../objects/services.ts';

/** Entries for one host that are compared with each other. */
const mostCompared = 20;

/**
 * What owners of ServiceEntries are told whose host exists in several namespaces: each namespace has its own one, and
 * all others have the first.
 */
export function declareSharedHosts(graph: Graph, { byHost }: Services): Collection<HasProblems> {
  return graph.derive('hosts in several namespaces', byHost, (host, members, _, emit: Emit<HasProblems>) => {
    if (members.length === 1) return;
    const all = members.slice(0, mostCompared).map(({ value }) => value);
    const problems = all.flatMap((loser, i): Problem[] => {
      const winner = all.slice(0, i).find((other) => other.namespace !== loser.namespace && meets(other, loser));
      if (loser.registry === 'Kubernetes' || winner === undefined || isSame(winner, loser)) return [];
      const owner = winner.registry === 'Kubernetes' ? printRef(winner.origins[0]!) : whoWins(winner, loser);
      const message = `Clients in other namespaces than ${loser.namespace} and ${winner.namespace} reach ${owner} under ${quote(host)}, never this one. Limit exportTo of both, or use another host.`;
      return loser.origins.map((object) => ({ object, field: 'spec.hosts', reason: 'Ineffective', message }));
    });
    if (problems.length > 0) emit(host, { problems });
  });
}

function whoWins(winner: MeshService, loser: MeshService): string {
  const aged = winner.origins[0]!;
  return printWinner(printRef(aged), winner, loser);
}

/** Whether clients of a third namespace see both. */
function meets(a: MeshService, b: MeshService): boolean {
  const own = [a.namespace, b.namespace];
  const others = (exportTo: readonly string[]): readonly string[] =>
    exportTo.filter((client) => client !== '~' && !own.includes(client));
  const [left, right] = [others(a.exportTo), others(b.exportTo)];
  if (left.includes('*')) return right.length > 0;
  return right.includes('*') ? left.length > 0 : left.some((client) => right.includes(client));
}

/** Whether it makes no difference which one is used. */
function isSame(a: MeshService, b: MeshService): boolean {
  const content = ({
    resolution,
    ports,
    addresses,
    endpoints,
    meshExternal,
    selector,
    subjectAltNames,
  }: MeshService) => ({
    ...{ resolution, ports, addresses, meshExternal, selector, subjectAltNames },
    endpoints: endpoints.map(({ address, ports: own, labels, locality }) => ({ address, own, labels, locality })),
  });
  return isDeepStrictEqual(content(a), content(b));
}
