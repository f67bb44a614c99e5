import { isIPv4, isIPv6 } from 'node:net';
import type { Client } from '../model/client.ts';
import { bracketed } from '../model/host.ts';
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

/** Something that clients may write to name a host. */
export interface DomainClaim {
  /** As they stand in the virtual host. */
  readonly domains: readonly string[];
  /** The host or address without brackets, final dot and port: two claims of one domain have the same name. */
  readonly name: string;
  /** The host that it names: of the service, or of an alias of it. */
  readonly of: string;
  /** A name of the host, of the pods behind a headless Service, or an address. */
  readonly kind: 'name' | 'pods' | 'address';
  /** Written with a final dot, as no short form is. */
  readonly absolute: boolean;
}

/**
 * What clients may write to name a host: the `Host` of a request, without port. Only a listener for all ports tells
 * ports apart, by domains that end with one; what names no port means port 80 there.
 */
export function domainsOf(input: DomainsInput): readonly string[] {
  return domainClaims(input).flatMap(({ domains }) => domains);
}

/** As {@link domainsOf}, with what they stand for. */
export function domainClaims({ client, host, service, port, listenerPort = port }: DomainsInput): DomainClaim[] {
  const forms = service === undefined ? [{ text: host, of: host }] : formsOf(service, client);
  const headless = service?.resolution === 'Passthrough' && service.registry === 'Kubernetes';
  const all = [
    ...forms.map(({ text, of }) => ({ text, of, kind: 'name' as const })),
    ...(headless ? forms.map(({ text, of }) => ({ text: `*.${text}`, of, kind: 'pods' as const })) : []),
    ...(service === undefined ? [] : addressesFor(service, client.traits)).map((text) => ({
      text,
      of: host,
      kind: 'address' as const,
    })),
  ];
  return distinct(all).flatMap(({ text, of, kind }) => {
    const domain = bracketed(text);
    const domains = listenerPort === 0 ? domainsWithPort(domain, port, service !== undefined) : [domain];
    return domains.length === 0 ? [] : [{ domains, name: withoutDot(text), of, kind, absolute: text.endsWith('.') }];
  });
}

/** A host that has no service is known there on port 80 alone. */
function domainsWithPort(domain: string, port: number, isService: boolean): string[] {
  if (!isService) return port === 80 ? [domain] : [];
  return port === 80 ? [domain, `${domain}:${port}`] : [`${domain}:${port}`];
}

function withoutDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

/** The host and its aliases, each absolute too, and in the short forms that resolve in the client's namespace. */
function formsOf(service: MeshService, client: DomainsInput['client']): { text: string; of: string }[] {
  return [service.host, ...service.aliases.map((alias) => alias.host)].flatMap((of) =>
    [of, `${of}.`, ...shortForms(of, client)].map((text) => ({ text, of })),
  );
}

/**
 * `reviews.default`, `reviews.default.svc`, and in the same namespace `reviews`. Only of Kubernetes' own hosts, and no two
 * hosts have one in common.
 */
function shortForms(host: string, { namespace, domainSuffix, traits }: DomainsInput['client']): string[] {
  if (!traits.shortNames) return [];
  const dot = host.indexOf('.');
  const svc = host.indexOf('.svc.');
  if (host.slice(svc) !== `.svc.${domainSuffix}` || dot >= svc) return [];
  const qualified = host.slice(0, svc);
  const name = host.slice(0, dot);
  // The short form of a wildcard would stand for every host, as the catch-all does.
  if (host.slice(dot + 1, svc) !== namespace || name === '*') return [qualified, `${qualified}.svc`];
  return [name, `${qualified}.svc`, qualified];
}

/** The only host that can have a short form of this name: `reviews.default.svc.cluster.local` for `reviews.default`. */
export function hostShortened(
  name: string,
  { namespace, domainSuffix }: Omit<DomainsInput['client'], 'traits'>,
): string {
  if (!name.includes('.')) return `${name}.${namespace}.svc.${domainSuffix}`;
  return name.endsWith('.svc') ? `${name}.${domainSuffix}` : `${name}.svc.${domainSuffix}`;
}

/**
 * What all forms of a host have in common, whatever they are written with: `reviews.default` of
 * `*.reviews.default.svc.cluster.local.:80`. Domains that differ in it differ.
 */
export function stemOf(domain: string): string {
  const start = domain.startsWith('*.') ? 2 : 0;
  let end = domain.endsWith(']') ? domain.length : domain.lastIndexOf(':');
  if (end < 0) end = domain.length;
  if (domain[end - 1] === '.') end--;
  for (let svc = domain.indexOf('.svc', start); svc >= 0; svc = domain.indexOf('.svc', svc + 1))
    if (svc + 4 === end || domain[svc + 4] === '.') return domain.slice(start, svc);
  return domain.slice(start, end);
}

/** Virtual addresses that a request may name as its host. */
export function addressesFor(service: MeshService, traits: Traits): readonly string[] {
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
function distinct<Form extends { readonly text: string }>(forms: readonly Form[]): Form[] {
  const seen = new Set<string>();
  return forms.filter(({ text }) => {
    const lower = text.toLowerCase();
    return !seen.has(lower) && seen.add(lower);
  });
}
