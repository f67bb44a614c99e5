import { type ObjectRef, distinctRefs, printRef } from '../../api/object.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import type { GatewayModel } from '../../model/gateway.ts';
import { ownValue } from '../../model/own-value.ts';
import { servicesOf } from '../clients/workload-classes.ts';
import type { GatewayDeps, Routers } from './routers.ts';

/**
 * Ports of servers to which no port of the Services in front of the routers leads. Without such a Service, and where one
 * has a port whose target is not known, nothing is said. Keys begin with the router class.
 */
export function declareUnreachablePorts(
  graph: Graph,
  deps: GatewayDeps,
  routers: Routers,
  models: Collection<GatewayModel>,
): Collection<HasProblems> {
  return graph.derive('unreachable ports', routers.ofRouter, (key, router, read, emit: Emit<HasProblems>) => {
    const [first] = read.group(deps.proxies.byRouter, key);
    if (first === undefined || 'error' in first.value) return;
    const { workload } = first.value;
    const services = servicesOf(workload, read, deps.workloadClasses, deps.services);
    const reached = new Set<number>();
    for (const { ports, translatesPorts } of services)
      for (const { number, targetPort = number, protocol } of ports) {
        if (protocol === 'UDP') continue;
        const target = typeof targetPort === 'number' ? targetPort : ownValue(workload.ports ?? {}, targetPort);
        if (target === undefined) return;
        reached.add(target);
        if (translatesPorts) reached.add(number);
      }
    if (reached.size === 0) return;
    const leading = printAll(distinctRefs(services.flatMap(({ origins }) => origins)));
    const problems = router.gateways.flatMap((gateway): Problem[] => {
      const model = read.get(models, gateway);
      return (model?.servers ?? []).flatMap(({ field, port: { number }, bind }) => {
        if (model === undefined || number === 0 || bind !== '' || reached.has(number)) return [];
        const message = `No port of ${leading} leads to port ${number} of the routers, so nobody reaches the server through it; add a port there, or use one that it has.`;
        return [{ object: model.ref, field: `${field}.port.number`, reason: 'Ineffective', message }];
      });
    });
    if (problems.length > 0) emit(`${router.key}|${key}`, { problems });
  });
}

/** At most this many are named. */
const NAMED = 3;

function printAll(refs: readonly ObjectRef[]): string {
  const named = refs.slice(0, NAMED).map((ref) => printRef(ref));
  return [...named, ...(refs.length > NAMED ? ['others'] : [])].join(' and ');
}
