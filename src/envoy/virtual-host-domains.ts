import { isIPv4, isIPv6 } from 'node:net';
import type { Client } from '../model/client.ts';
import type { MeshService } from '../model/service.ts';
import type { Traits } from '../model/traits.ts';

export interface DomainsInput {
  readonly client: Pick<Client, 'namespace' | 'domainSuffix' | 'traits'>;
  /** A host that has no service has no other name. */
  readonly host: string;
  readonly service?: MeshService;
  readonly port: number;
  /** Port of the listener when it is another one: 0 for a listener for all ports. */
  readonly listenerPort?: number;
}

/**
 * What clients may write to name a host: the `Host` of a request, without port. Only a listener for all ports tells
 * ports apart, by domains that end with one; what names no port means port 80 there.
 */
export function domainsOf({ client, host, service, port, listenerPort = port }: DomainsInput): readonly string[] {
  const names = service === undefined ? [host] : serviceNames(service, client);
  const headless = service?.resolution === 'Passthrough' && service.registry === 'Kubernetes';
  const addresses = service === undefined ? [] : addressesFor(service, client.traits);
  const all = [...names, ...(headless ? names.map((name) => `*.${name}`) : []), ...addresses].map(bracketed);
  const domains = distinct(all);
  if (listenerPort !== 0) return domains;
  const withPort = domains.map((domain) => `${domain}:${port}`);
  if (service === undefined) return port === 80 ? domains : [];
  return port === 80 ? domains.flatMap((domain, i) => [domain, withPort[i] ?? domain]) : withPort;
}

/** IPv6 addresses stand in brackets where a port may follow. */
export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** The host and its aliases, each absolute too, and in the short forms that resolve in the client's namespace. */
function serviceNames(service: MeshService, client: DomainsInput['client']): string[] {
  return [service.host, ...service.aliases.map((alias) => alias.host)].flatMap((name) => [
    name,
    `${name}.`,
    ...shortForms(name, client),
  ]);
}

/** `reviews.default`, `reviews.default.svc`, and in the same namespace `reviews`. Only of Kubernetes' own hosts. */
function shortForms(host: string, { namespace, domainSuffix }: DomainsInput['client']): string[] {
  if (!host.endsWith(`.svc.${domainSuffix}`)) return [];
  const dot = host.indexOf('.');
  const svc = host.indexOf('.svc.');
  if (dot >= svc) return [];
  const qualified = host.slice(0, svc);
  const name = host.slice(0, dot);
  // The short form of a wildcard would stand for every host, as the catch-all does.
  if (host.slice(dot + 1, svc) !== namespace || name === '*') return [qualified, `${qualified}.svc`];
  return [name, `${qualified}.svc`, qualified];
}

/** Virtual addresses that a request may name as its host. */
function addressesFor(service: MeshService, traits: Traits): readonly string[] {
  const given = service.addresses.filter((address) => address !== '0.0.0.0' && address !== '::');
  if (given.length > 0) {
    if (service.registry === 'External') return given;
    // A Service of both families counts as of one: the client's, or its first.
    const first = given.find((address) => traits.ipFamily === 'dual' || hasFamily(address, traits.ipFamily));
    return [first ?? given[0] ?? ''];
  }
  if (!traits.dnsCapture) return [];
  return service.autoAddresses.filter((address) => traits.ipFamily === 'dual' || hasFamily(address, traits.ipFamily));
}

function hasFamily(address: string, family: 'v4' | 'v6'): boolean {
  return family === 'v4' ? isIPv4(address) : isIPv6(address);
}

/** Names are compared without case. */
function distinct(names: readonly string[]): string[] {
  const seen = new Set<string>();
  return names.filter((name) => {
    const lower = name.toLowerCase();
    return !seen.has(lower) && seen.add(lower);
  });
}
