import { printRef } from '../../api/object.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import { boundProblems } from '../../api/problem-list.ts';
import { quote } from '../../api/quote.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import type { BoundServer, MergedListener, ServerCertificates } from '../../model/gateway.ts';

/**
 * Servers of different Gateways with one certificate, at one address and port of a router. A client that has a
 * connection for the first one, and finds the host of the other in the certificate, uses the connection for both (RFC
 * 9113, 9.1.1): there, requests for the other have no route.
 */
export function declareSharedCertificates(
  graph: Graph,
  sets: Collection<{ readonly listeners: readonly MergedListener[] }>,
): Collection<HasProblems> {
  return graph.derive('shared certificates', sets, (key, { listeners }, _, emit: Emit<HasProblems>) => {
    const problems = boundProblems(listeners.flatMap(sharing));
    if (problems.length > 0) emit(key, { problems });
  });
}

function sharing({ kind, servers }: MergedListener): Problem[] {
  if (kind !== 'tls') return [];
  const first = new Map<string, BoundServer>();
  return servers.flatMap((bound): Problem[] => {
    const { serves, hosts, field } = bound.server;
    if (serves.kind !== 'https') return [];
    return namesOf(serves.tls.certificates).flatMap((name): Problem[] => {
      const other = first.get(name);
      if (other === undefined) first.set(name, bound);
      if (other === undefined || other.gateway === bound.gateway) return [];
      const [own, theirs] = [hosts, other.server.hosts].map(([host]) => quote(host?.host ?? '*'));
      const message = `has the certificate of ${printRef(other.ref)}: browsers that have a connection for ${theirs} use it for ${own}, too, and get 404. Use a certificate that is for one of the two alone, or have both hosts in one server.`;
      return [{ object: bound.ref, field: `${field}.tls`, reason: 'Ineffective', message }];
    });
  });
}

/** On a router, a name means one certificate. */
function namesOf(certificates: ServerCertificates): readonly string[] {
  if (certificates.kind === 'credentials') return certificates.names;
  return certificates.kind === 'files' ? certificates.files.map(({ certificate, key }) => `${certificate} ${key}`) : [];
}
