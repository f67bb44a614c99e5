import { isWildcard } from './host.ts';

/** Hosts, exact and wildcards, prepared for {@link overlaps}. Plain data, so that two of them can be compared. */
export interface HostSet {
  readonly hosts: ReadonlySet<string>;
  /** The hosts without `*`, each backwards, sorted: those with a common suffix are neighbors. */
  readonly backwards: readonly string[];
}

export function hostSet(hosts: readonly string[]): HostSet {
  const all = new Set(hosts);
  return { hosts: all, backwards: [...all].map((host) => backwards(isWildcard(host) ? host.slice(1) : host)).sort() };
}

/** Whether a host and any of the set can match the same name. Takes about as long for a large set as for a small one. */
export function overlaps({ hosts, backwards: sorted }: HostSet, host: string): boolean {
  if (hosts.has(host)) return true;
  const text = isWildcard(host) ? host.slice(1) : host;
  for (let start = 0; start <= text.length; start++) if (hosts.has(`*${text.slice(start)}`)) return true;
  if (!isWildcard(host)) return false;
  const suffix = backwards(text);
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < suffix) low = middle + 1;
    else high = middle;
  }
  return sorted[low]?.startsWith(suffix) === true;
}

function backwards(text: string): string {
  return [...text].reverse().join('');
}
