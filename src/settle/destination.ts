import type { Client, DestinationName, DestinationTarget } from '../model/client.ts';
import { hashKeyOf, subsetOf } from '../model/policy-resolution.ts';
import { type MeshService, outboundCluster, servedPort } from '../model/service.ts';
import type { DestinationRuleModel } from '../model/traffic-policy.ts';
import type { Labels } from '../model/labels.ts';

/** How a client looks up what a destination names. */
export interface DestinationFinder {
  /** The service with that host that the client sees, which may be an Alias. */
  service(host: string): MeshService | undefined;
  /** The rule that the client uses for the service. */
  rule(service: MeshService): DestinationRuleModel | undefined;
  /** Whether there is a cluster for the port and the endpoints with these labels. */
  isServed(service: MeshService, port: number, labels: Labels): boolean;
}

/** A longer chain of aliases is a loop. */
export const longestAliasChain = 8;

/** The cluster of a destination, or which part of it is missing. Port 0 means a listener for all ports. */
export function resolveDestination(
  { host, subset, port: written }: DestinationName,
  listenerPort: number,
  client: Client,
  find: DestinationFinder,
): DestinationTarget {
  const named = find.service(host);
  const service = followAliases(named, (next) => find.service(next));
  // A Service of type ExternalName needs no ports.
  const ports = named?.ports.length === 0 ? service?.ports : named?.ports;
  // Sidecars look up services by listener port, so a service's only port counts if that port is unknown.
  const onlyPort =
    ports?.length === 1 && (listenerPort === 0 || client.traits.proxyType === 'router') ? ports[0]?.number : undefined;
  const port = written ?? onlyPort ?? listenerPort;
  const cluster = outboundCluster(port, subset, service?.host ?? named?.externalName ?? host);
  if (service === undefined) return { kind: 'missing', what: 'host', cluster };
  if (servedPort(service.ports, port) === undefined) {
    return { kind: 'missing', what: 'port', cluster };
  }
  const rule = find.rule(service);
  if (subset !== '' && (service.resolution === 'DynamicDNS' || subsetOf(rule, subset) === undefined)) {
    return { kind: 'missing', what: 'subset', cluster };
  }
  if (!find.isServed(service, port, subsetOf(rule, subset)?.labels ?? {}))
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

/** The service that has clusters, behind Services of type ExternalName; undefined if these lead nowhere. */
export function followAliases(
  service: MeshService | undefined,
  find: (host: string) => MeshService | undefined,
): MeshService | undefined {
  let found = service;
  for (let i = 0; i < longestAliasChain && found?.resolution === 'Alias'; i++) {
    found = found.externalName === undefined ? undefined : find(found.externalName);
  }
  return found?.resolution === 'Alias' ? undefined : found;
}
