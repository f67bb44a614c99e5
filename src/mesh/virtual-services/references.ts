import type { Problem } from '../../api/problem.ts';
import { parseNameKey } from '../../api/keys.ts';
import { objectKey, parseObjectKey } from '../../api/object.ts';
import type { Reader } from '../../cache/graph.ts';
import { type DestinationTarget, destinationKey } from '../../model/client.ts';
import { isWildcard } from '../../model/host.ts';
import { portNumbered } from '../../model/service.ts';
import { anyTraits } from '../../model/traits.ts';
import { type VirtualServiceModel, meshGateway } from '../../model/virtual-service.ts';
import { destinationsOf } from '../../model/virtual-service-parts.ts';
import { toldTo } from '../../settle/delegate.ts';
import { type NamedService, resolveDestination } from '../../settle/destination.ts';
import { missingDestination } from '../../settle/missing-destination.ts';
import { type DestinationDeps, namedService } from '../clients/destinations.ts';
import { serviceFor } from '../clients/lookups.ts';

/** A service without endpoints does exist. */
function isMissing(target: DestinationTarget): boolean {
  return target.kind === 'missing' && target.what !== 'endpoints';
}

/** Destinations that do not resolve for clients in its own namespace, even if no proxy is there. */
export function* missingDestinations(
  model: VirtualServiceModel,
  read: Reader,
  deps: DestinationDeps,
): Iterable<Problem> {
  const view = { client: model.namespace, traits: anyTraits, matched: [] };
  const ports = new Set(
    model.hosts.flatMap((host) => (serviceFor(read, deps, view, host)?.ports ?? []).map((port) => port.number)),
  );
  const [first] = ports;
  // Sidecars take requests for hosts that no service has on port 80; on routers, the only port of a destination counts. Of a
  // host that is only missing in the files that are checked, the port is not known: any single port will do.
  const isUnknown = first === undefined && model.gateways.includes(meshGateway) && !model.hosts.some(isWildcard);
  /** By host of a destination. Whatever else there is to it is the same for all ports that it has. */
  const usable = new Map<string, { readonly found: NamedService; readonly common: number | undefined }>();
  for (const same of Map.groupBy(destinationsOf(model), ({ destination }) => destinationKey(destination)).values()) {
    const { destination } = same[0]!;
    const { host } = destination;
    let known = usable.get(host);
    if (known === undefined) {
      const found = namedService(host, view, read, deps);
      const common = found.service?.ports.find(
        ({ number, protocol }) => protocol !== 'UDP' && ports.has(number),
      )?.number;
      usable.set(host, (known = { found, common }));
    }
    const { found, common } = known;
    const own = found.service?.ports ?? [];
    const lookup = (port: number): DestinationTarget => resolveDestination(destination, port, view, found);
    // Without a port in the route, the request's port applies: it is enough if the destination has one of these ports.
    const isHttp = same.every((each) => each.destination.field.startsWith('spec.http'));
    const any = isUnknown && isHttp ? (portNumbered(own, 80)?.number ?? 0) : (own[0]?.number ?? 0);
    const isFixed = destination.port !== undefined || first === undefined;
    if (!isMissing(lookup(isFixed ? any : (common ?? first)))) continue;
    const target = lookup(isFixed ? any : first);
    for (const each of same)
      for (const problem of missingDestination(each.object, each.destination, target)) yield toldTo(model, problem);
  }
}

export function* missingGateways(
  key: string,
  model: VirtualServiceModel,
  read: Reader,
  { inputs }: Pick<DestinationDeps, 'inputs'>,
): Iterable<Problem> {
  const { source } = parseObjectKey(key);
  for (const [i, gateway] of model.gateways.entries()) {
    if (gateway === meshGateway) continue;
    const { namespace, name } = parseNameKey(gateway);
    if (read.get(inputs.objects.Gateway, objectKey(source, namespace, name)) !== undefined) continue;
    const message = `There is no Gateway ${JSON.stringify(name)} in namespace ${JSON.stringify(namespace)}; create it, or correct the name. Until then the routes are not served there.`;
    yield { object: model.ref, field: `spec.gateways[${i}]`, reason: 'RefNotFound', message };
  }
}
