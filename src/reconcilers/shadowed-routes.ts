import type { HttpMatch, L4Match, VirtualServiceModel } from '../model/virtual-service.ts';
import type { Findings } from './field.ts';

/** Lengths of prefixes that are looked up in a path: each costs. What is beyond goes without a remark. */
const MOST_LENGTHS = 64;
/** Of one object so many are named: one route before all others shadows all others. */
const MOST_REMARKS = 20;

interface Shadowing {
  readonly field: string;
  readonly matches: readonly (HttpMatch | L4Match)[];
  /** Which of its requests another object takes, is not known here. */
  readonly isDelegate: boolean;
}

/**
 * Says which routes and matches are never used, because one before them takes all of theirs: everything, the same, or a
 * prefix of their path without further conditions. In time that is linear in the number of matches.
 */
export function reportShadowed({ http, tcp, tls }: VirtualServiceModel, findings: Findings): void {
  let remarks = 0;
  const report = (field: string, message: string): void => {
    if (++remarks <= MOST_REMARKS) findings.report(field, 'Ineffective', message);
  };
  const routes = http.map(({ action, ...route }) => ({ ...route, isDelegate: action.kind === 'delegate' }));
  for (const list of [routes, ...[tcp, tls].map((l4) => l4.map((route) => ({ ...route, isDelegate: false })))])
    reportList(list, report);
}

function reportList(routes: readonly Shadowing[], report: (field: string, message: string) => void): void {
  const taken = new Taken();
  for (const { field, matches, isDelegate } of routes) {
    if (taken.all !== undefined) {
      report(field, `is never used: ${taken.all} comes first and takes everything; move it behind this route.`);
      continue;
    }
    const own: [string, HttpMatch | L4Match][] = matches.map((match, index) => [`${field}.match[${index}]`, match]);
    for (const [path, match] of own) {
      const owner = taken.ownerOf(match);
      if (owner !== undefined)
        report(path, `is never used: ${owner} comes first and takes the same; remove one of them.`);
      else if (!isDelegate) taken.add(path, match);
    }
    if (matches.length === 0 && !isDelegate) taken.all = field;
  }
}

/** What the matches so far take. */
class Taken {
  /** The field that takes everything. */
  all: string | undefined;
  readonly #same = new Map<string, string>();
  readonly #prefixes = new Map<string, string>();
  readonly #lengths = new Set<number>();

  ownerOf(match: HttpMatch | L4Match): string | undefined {
    return this.all ?? this.#same.get(keyOf(match)) ?? this.#ownerOfPath(match);
  }

  add(field: string, match: HttpMatch | L4Match): void {
    this.#same.set(keyOf(match), field);
    const prefix = prefixOf(match);
    if (prefix === undefined) return;
    if (prefix === '' || prefix === '/') this.all = field;
    if (this.#lengths.size < MOST_LENGTHS) this.#lengths.add(prefix.length);
    if (this.#lengths.has(prefix.length)) this.#prefixes.set(prefix, field);
  }

  /** Of a path, or of the paths with a prefix. */
  #ownerOfPath(match: HttpMatch | L4Match): string | undefined {
    const { uri, ignoreUriCase = false } = match as Partial<HttpMatch>;
    if (uri === undefined || ignoreUriCase || (uri.kind !== 'exact' && uri.kind !== 'prefix')) return undefined;
    for (const length of this.#lengths) {
      if (length > uri.value.length) continue;
      const owner = this.#prefixes.get(uri.value.slice(0, length));
      if (owner !== undefined) return owner;
    }
    return undefined;
  }
}

/** Equal for matches that take the same. */
function keyOf(match: HttpMatch | L4Match): string {
  return JSON.stringify({ ...match, name: '', statPrefix: '' });
}

/** The prefix of the path where that is the only condition; empty where there is none at all. */
function prefixOf(match: HttpMatch | L4Match): string | undefined {
  const { uri, name: _, statPrefix: __, ignoreUriCase: ___, ...others } = match as Partial<HttpMatch> & L4Match;
  if (!Object.values(others).every(isUnset)) return undefined;
  if (uri === undefined) return '';
  if (uri.kind === 'prefix') return uri.value;
  return uri.kind === 'regex' && uri.value === '.*' ? '' : undefined;
}

/** Whether the value of a condition is that of one which is not there. */
function isUnset(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return value === undefined || value === '' || value === 0;
}
