import { canonicalAddress } from './address.ts';

/**
 * Hostname algebra. A hostname is exact, or a wildcard whose first character is `*`. Source: Istio `pkg/config/host`.
 */

/** One text per host: DNS ignores case, and a final dot only says that a name is complete. */
export function canonicalHost(host: string): string {
  const lower = canonicalAddress(host).toLowerCase();
  return lower.length > 1 && lower.endsWith('.') ? lower.slice(0, -1) : lower;
}

/** IPv6 addresses are in brackets where a port may follow. */
export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

export function isWildcard(host: string): boolean {
  return host.startsWith('*');
}

/** Whether the two patterns can match the same host. */
export function hostsMatch(a: string, b: string): boolean {
  if (isWildcard(a)) {
    const suffix = a.slice(1);
    if (!isWildcard(b)) return b.endsWith(suffix);
    const other = b.slice(1);
    return suffix.length <= other.length ? other.endsWith(suffix) : suffix.endsWith(other);
  }
  return isWildcard(b) ? a.endsWith(b.slice(1)) : a === b;
}

/** Whether `b` matches every host that `a` matches. */
export function isSubsetOf(a: string, b: string): boolean {
  if (!isWildcard(b)) return a === b;
  const suffix = b.slice(1);
  return isWildcard(a) ? a.slice(1).endsWith(suffix) : a.endsWith(suffix);
}

/** Most specific first: exact before wildcard, longer before shorter, then alphabetical. */
export function compareSpecificity(a: string, b: string): number {
  const wildA = isWildcard(a);
  const wildB = isWildcard(b);
  if (wildA !== wildB) return wildA ? 1 : -1;
  if (a.length !== b.length) return b.length - a.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The full name, in canonical form. A name without a dot is a Service in the namespace. */
export function resolveShortName(host: string, namespace: string, domainSuffix: string): string {
  const full = /[.:]/.test(host) || isWildcard(host) ? host : `${host}.${namespace}.svc.${domainSuffix}`;
  return canonicalHost(full);
}

/**
 * Index key of a wildcard host: the part from the first dot on. A wildcard may end within a label (`*-a.example.com`),
 * so callers must compare the full host.
 */
export function wildcardKey(wildcard: string): string {
  const dot = wildcard.indexOf('.');
  return dot < 0 ? '*' : `*${wildcard.slice(dot)}`;
}

/** The wildcards that cover an exact host, most specific first: `*.b.c`, `*.c`, `*`. */
export function wildcardsOf(host: string): string[] {
  const found: string[] = [];
  for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) found.push(`*${host.slice(dot)}`);
  found.push('*');
  return found;
}

/**
 * A DNS name as Istio accepts it in hosts: labels of letters, digits, `-` and `_`; a wildcard only as the first label
 * or at its start.
 */
export function isHostName(host: string): boolean {
  if (host === '*') return true;
  const name = isWildcard(host) ? host.slice(host[1] === '.' || host[1] === '-' ? 2 : 1) : host;
  if (name === '' || host.length > 255) return false;
  const trimmed = name.endsWith('.') ? name.slice(0, -1) : name;
  return trimmed.split('.').every((label) => /^[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?$/.test(label));
}
