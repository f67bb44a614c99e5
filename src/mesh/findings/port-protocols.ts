import { printRef } from '../../api/object.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import { quote } from '../../api/quote.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import type { MeshService, Protocol, ServicePort } from '../../model/service.ts';
import { joiningOf } from '../../reconcilers/service-entry/host-claims.ts';
import type { Services } from '../objects/services.ts';

/**
 * ServiceEntries of a namespace that are served together for a host, and name different protocols for one port: that of
 * the first is used.
 */
export function declarePortProtocols(graph: Graph, { claims }: Pick<Services, 'claims'>): Collection<HasProblems> {
  return graph.derive('protocols of shared ports', claims, (key, members, _, emit: Emit<HasProblems>) => {
    const [winner, ...others] = members.map(({ value }) => value);
    if (winner === undefined || winner.registry !== 'External' || others.length === 0) return;
    const used = new Map<number, { readonly service: MeshService; readonly port: ServicePort }>();
    const problems = [winner, ...joiningOf([winner, ...others])].flatMap((service) =>
      service.ports.flatMap((port): Problem[] => {
        const first = used.get(port.number);
        if (first === undefined) used.set(port.number, { service, port });
        if (first === undefined || first.port.protocol === port.protocol) return [];
        const older = first.service.createdAt === service.createdAt ? '' : 'the older ';
        const owner = `${older}${printRef(first.service.origins[0]!)}`;
        const message = `Port ${port.number} of ${quote(service.host)} is ${nameOf(port.protocol)} here, and ${nameOf(first.port.protocol)} in ${owner}, which decides for both. Use the same protocol, or another port.`;
        return service.origins.map((object) => ({ object, field: 'spec.ports', reason: 'Ineffective', message }));
      }),
    );
    if (problems.length > 0) emit(key, { problems });
  });
}

const nameOf = (protocol: Protocol): string => (protocol === 'Unsupported' ? 'of a detected protocol' : protocol);
