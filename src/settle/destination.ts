import type { Client, DestinationName, DestinationTarget } from '../model/client.ts';
import { hashKeyOf, subsetOf } from '../model/policy-resolution.ts';
import { isServed } from '../model/dns-endpoints.ts';
import type { EndpointSummary } from '../model/endpoint.ts';
import { type MeshService, outboundCluster, servedPort } from '../model/service.ts';
import type { DestinationRuleModel } from '../model/traffic-policy.ts';

/** What a destination names, as a client sees it. */
export interface NamedService {
  /** The service with that host, which may be an Alias. */
  readonly named: MeshService | undefined;
  /** The same, or where the Alias leads: never an Alias. */
  readonly service: MeshService | undefined;
  /** The rule that the client uses for it. */
  readonly rule: DestinationRuleModel | undefined;
  /** The endpoints of a service that Envoy resolves; others have clusters without endpoints. */
  readonly endpoints: EndpointSummary;
}

/** For connections, unlike for requests, the only port of a service counts even if the listener has a different one. */
export function resolveForConnections(
  destination: DestinationName,
  listenerPort: number,
  client: Pick<Client, 'traits'>,
  found: NamedService,
): DestinationTarget {
  if (destination.port !== undefined) return resolveDestination(destination, listenerPort, client, found);
  const target = resolveDestination(destination, 0, client, found);
  return target.kind === 'missing' && target.what === 'port'
    ? resolveDestination(destination, listenerPort, client, found)
    : target;
}

/** The cluster of a destination, or which part of it is missing. Port 0 means a listener for all ports. */
export function resolveDestination(
  { host, subset, port: written }: DestinationName,
  listenerPort: number,
  { traits }: Pick<Client, 'traits'>,
  { named, service, rule, endpoints }: NamedService,
): DestinationTarget {
  // A Service of type ExternalName needs no ports.
  const ports = named?.ports.length === 0 ? service?.ports : named?.ports;
  // Sidecars look up services by listener port, so a service's only port counts if that port is unknown.
  const onlyPort =
    ports?.length === 1 && (listenerPort === 0 || traits.proxyType === 'router') ? ports[0]?.number : undefined;
  const port = written ?? onlyPort ?? listenerPort;
  const cluster = outboundCluster(port, subset, service?.host ?? named?.externalName ?? host);
  if (service === undefined) return { kind: 'missing', what: 'host', cluster };
  if (servedPort(service.ports, port) === undefined) {
    return { kind: 'missing', what: 'port', cluster };
  }
  if (subset !== '' && (service.resolution === 'DynamicDNS' || subsetOf(rule, subset) === undefined)) {
    return { kind: 'missing', what: 'subset', cluster };
  }
  if (!isServed(service, port, subsetOf(rule, subset)?.labels ?? {}, endpoints))
    return { kind: 'missing', what: 'endpoints', cluster };
  const hash = hashKeyOf(rule, subset, written);
  return {
    kind: 'cluster',
    cluster,
    service,
    port,
    ...(rule === undefined ? {} : { rule }),
    ...(hash === undefined ? {} : { hash }),
  };
}
