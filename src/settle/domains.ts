import { isIPv4, isIPv6 } from 'node:net';
import type { Client } from '../model/client.ts';
import { bracketed } from '../model/host.ts';
import { type MeshService, addressesIn, aliasesFor } from '../model/service.ts';
import type { Traits } from '../model/traits.ts';

export interface DomainsInput {
  readonly client: Pick<Client, 'namespace' | 'domainSuffix' | 'traits'>;
  /** A host without a service has no other names. */
  readonly host: string;
  readonly service?: MeshService;
  readonly port: number;
  /** Port of the listener, if different: 0 for a listener for all ports. */
  readonly listenerPort?: number;
}

/** Something that clients may write to refer to a host. */
export interface DomainClaim {
  /** As written in the virtual host. */
  readonly domains: readonly string[];
  /** The host or address without brackets, final dot and port: two claims for the same domain have the same name. */
  readonly name: string;
  /** The host that it refers to: that of the service, or that of one of its aliases. */
  readonly of: string;
  /** A name of the host, of the pods behind a headless Service, or an address. */
  readonly kind: 'name' | 'pods' | 'address';
  /** Written with a final dot, which short forms never have. */
  readonly absolute: boolean;
}

/**
 * What clients may write to refer to a host: the `Host` of a request, without port. Only a listener for all ports
 * distinguishes ports, by domains that end with one; there, a domain without a port means port 80.
 */
export function domainsOf(input: DomainsInput): readonly string[] {
  return domainClaims(input).flatMap(({ domains }) => domains);
}

/** Like {@link domainsOf}, with what the domains stand for. */
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

/** On such a listener, a host without a service is known only on port 80. */
function domainsWithPort(domain: string, port: number, isService: boolean): string[] {
  if (port === 80) return [domain, `${domain}:${port}`];
  return isService ? [`${domain}:${port}`] : [];
}

function withoutDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

/**
 * The host and its aliases, each also in absolute form, and in the short forms that resolve in the client's namespace.
 */
function formsOf(service: MeshService, client: DomainsInput['client']): { text: string; of: string }[] {
  return [service.host, ...aliasesFor(service, client.namespace).map((alias) => alias.host)].flatMap((of) =>
    [of, `${of}.`, ...shortForms(of, client)].map((text) => ({ text, of })),
  );
}

/**
 * `reviews.default`, `reviews.default.svc`, and in the same namespace `reviews`. Only Kubernetes hosts have short
 * forms, and no two hosts share one.
 */
function shortForms(host: string, { namespace, domainSuffix, traits }: DomainsInput['client']): string[] {
  if (!traits.shortNames) return [];
  const dot = host.indexOf('.');
  const svc = host.indexOf('.svc.');
  if (host.slice(svc) !== `.svc.${domainSuffix}` || dot >= svc) return [];
  const qualified = host.slice(0, svc);
  const name = host.slice(0, dot);
  // The short form of a wildcard would match every host, like the catch-all.
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
 * What all forms of a host have in common: `reviews.default` for `*.reviews.default.svc.cluster.local.:80`. Domains
 * with different stems are different.
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

/** Virtual addresses that a request may use as its host. */
export function addressesFor(service: MeshService, traits: Traits): readonly string[] {
  const given = addressesIn(service, traits.cluster).filter((address) => address !== '0.0.0.0' && address !== '::');
  if (given.length > 0) {
    if (service.registry === 'External') return given;
    // A dual-stack Service counts as single-stack: the client's family, or its own first one.
    const first = given.find((address) => traits.ipFamily === 'dual' || hasFamily(address, traits.ipFamily));
    return [first ?? given[0] ?? ''];
  }
  if (!traits.dnsCapture) return [];
  return service.autoAddresses.filter((address) => traits.ipFamily === 'dual' || hasFamily(address, traits.ipFamily));
}

function hasFamily(address: string, family: 'v4' | 'v6'): boolean {
  return family === 'v4' ? isIPv4(address) : isIPv6(address);
}

/** Names are compared case-insensitively. */
function distinct<Form extends { readonly text: string }>(forms: readonly Form[]): Form[] {
  const seen = new Set<string>();
  return forms.filter(({ text }) => {
    const lower = text.toLowerCase();
    return !seen.has(lower) && seen.add(lower);
  });
}
