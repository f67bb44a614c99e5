import { isWildcard } from './host.ts';

/** Hosts, exact and wildcards, prepared for {@link overlaps}. Plain data, so that two of them can be compared. */
export interface HostSet {
  readonly hosts: ReadonlySet<string>;
  /** How many characters of a host its wildcards compare. */
  readonly lengths: readonly number[];
  /** The hosts without `*`, each backwards, sorted: those with a common suffix are neighbors. */
  readonly backwards: readonly string[];
}

export function hostSet(hosts: Iterable<string>): HostSet {
  const all = new Set(hosts);
  return {
    hosts: all,
    lengths: wildcardLengths(all),
    backwards: [...all].map((host) => backwards(host)).sort(),
  };
}

/** Whether a host and any of the set can match the same name. Takes about as long for a large set as for a small one. */
export function overlaps(set: HostSet, host: string): boolean {
  if (covers(set, host)) return true;
  if (!isWildcard(host)) return false;
  const { backwards: sorted } = set;
  const suffix = backwards(host);
  return sorted[firstFrom(suffix, sorted, (text) => text)]?.startsWith(suffix) === true;
}

/** Whether any hosts of the two do, in as many steps as the fewer have. */
export function haveCommon(a: HostSet, b: HostSet): boolean {
  const [few, many] = a.hosts.size < b.hosts.size ? [a, b] : [b, a];
  for (const host of few.hosts) if (overlaps(many, host)) return true;
  return false;
}

/** Whether any of the set covers the host by itself. Takes as long as {@link overlaps}. */
export function covers({ hosts, lengths }: Pick<HostSet, 'hosts' | 'lengths'>, host: string): boolean {
  if (hosts.has(host)) return true;
  const text = isWildcard(host) ? host.slice(1) : host;
  return lengths.some((length) => length <= text.length && hosts.has(`*${text.slice(text.length - length)}`));
}

/** {@link covers} for one set. */
export function coverOf(hosts: Iterable<string>): (host: string) => boolean {
  const all = new Set(hosts);
  const set = { hosts: all, lengths: wildcardLengths(all) };
  return (host) => covers(set, host);
}

/** Finds the hosts that cover one or are covered by it. Built once, as {@link coveredIn}. */
export function relatedIn(hosts: readonly string[]): (host: string) => readonly string[] {
  const all = new Set(hosts);
  const lengths = wildcardLengths(all);
  const covered = coveredIn(hosts);
  return (host) => {
    const text = isWildcard(host) ? host.slice(1) : host;
    const wildcards = lengths.map((length) => `*${text.slice(Math.max(0, text.length - length))}`);
    const covering = [host, ...wildcards].filter((each) => all.has(each));
    return isWildcard(host) ? [...covering, ...covered(host)] : covering;
  };
}

/** Finds the hosts that a wildcard covers, in the order of the list, in as many steps as there are of them. */
export function coveredIn(hosts: readonly string[]): (wildcard: string) => readonly string[] {
  const sort = (): readonly { readonly text: string; readonly host: string; readonly order: number }[] =>
    hosts
      .map((host, order) => ({ text: backwards(host), host, order }))
      .sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
  let sorted: ReturnType<typeof sort> | undefined;
  return (wildcard) => {
    sorted ??= sort();
    const suffix = backwards(wildcard);
    const first = firstFrom(suffix, sorted, ({ text }) => text);
    let end = first;
    while (sorted[end]?.text.startsWith(suffix) === true) end++;
    const found = sorted.slice(first, end);
    return found.sort((a, b) => a.order - b.order).map(({ host }) => host);
  };
}

/** Where the first text is that is not before this one. */
function firstFrom<Element>(wanted: string, sorted: readonly Element[], textOf: (element: Element) => string): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (textOf(sorted[middle]!) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

function wildcardLengths(hosts: Iterable<string>): readonly number[] {
  const lengths = new Set<number>();
  for (const host of hosts) if (isWildcard(host)) lengths.add(host.length - 1);
  return [...lengths];
}

function backwards(host: string): string {
  return [...(isWildcard(host) ? host.slice(1) : host)].reverse().join('');
}
