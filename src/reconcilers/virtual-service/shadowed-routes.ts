import type { Problem } from '../../api/problem.ts';
import { quote } from '../../api/quote.ts';
import { compareText } from '../../model/age.ts';
import type { StringMatch } from '../../model/route.ts';
import type { HttpMatch, VirtualServiceModel } from '../../model/virtual-service.ts';
import type { L4Match } from '../../model/l4-routes.ts';

/** At most this many are reported per object: one route before all others shadows all of them. */
const MOST_REMARKS = 20;

interface Shadowing {
  readonly field: string;
  readonly matches: readonly (HttpMatch | L4Match)[];
  /** It is unknown here which of its requests the other object takes. */
  readonly isDelegate: boolean;
}

/**
 * Reports routes and matches that are never used because an earlier one takes all their requests: everything, the same,
 * or a prefix of their path without further conditions. The paths are sorted, so the cost grows hardly faster than
 * their number.
 */
export function shadowedRoutes({ ref, http, tcp, tls }: VirtualServiceModel): readonly Problem[] {
  const problems: Problem[] = [];
  const report = (field: string, message: string): void => {
    if (problems.length < MOST_REMARKS) problems.push({ object: ref, field, reason: 'Ineffective', message });
  };
  const routes = http.map(({ action, ...route }) => ({ ...route, isDelegate: action.kind === 'delegate' }));
  for (const list of [routes, ...[tcp, tls].map((l4) => l4.map((route) => ({ ...route, isDelegate: false })))])
    reportList(list, report);
  return problems;
}

function reportList(routes: readonly Shadowing[], report: (field: string, message: string) => void): void {
  const matches = routes.flatMap((route) => route.matches.map((match, index) => placed(route, index, match)));
  const ownersOfPaths = ownersByPath(matches);
  const same = new Map<string, Placed>();
  /** The field that takes everything. */
  let all: string | undefined;
  let next = 0;
  for (const { field, matches: own, isDelegate } of routes) {
    const first = next;
    next += own.length;
    if (all !== undefined) {
      report(field, `is never used: ${all} comes first and matches everything; move it after this route.`);
      continue;
    }
    for (const match of matches.slice(first, next)) {
      const key = keyOf(match);
      const [equal, wider] = [same.get(key), ownersOfPaths.get(match)];
      if (all !== undefined)
        report(fieldOf(match), `is never used: ${all} comes first and matches everything; remove this match.`);
      else if (equal !== undefined)
        report(
          fieldOf(match),
          `is never used: ${fieldOf(equal)} comes first and matches the same; remove one of them.`,
        );
      else if (wider !== undefined) report(fieldOf(match), `is never used: ${fieldOf(wider)} ${wayPast(wider, match)}`);
      else if (!isDelegate) {
        same.set(key, match);
        if (match.others === '' && takesAllPaths(match.uri)) all = fieldOf(match);
      }
    }
    if (own.length === 0 && !isDelegate) all = field;
  }
}

/** A match and its position. */
interface Placed {
  readonly route: Shadowing;
  readonly index: number;
  readonly uri: StringMatch | undefined;
  readonly ignoreUriCase: boolean;
  /** Its conditions other than the path, as text; empty if there are none. */
  readonly others: string;
}

function placed(route: Shadowing, index: number, match: Partial<HttpMatch> | L4Match): Placed {
  const { uri, ignoreUriCase = false } = match as Partial<HttpMatch>;
  return { route, index, uri, ignoreUriCase, others: othersOf(match) };
}

/** What to do about a match for a longer path, or with more conditions, than one before it. */
function wayPast({ uri, route }: Placed, { route: own }: Placed): string {
  const prefix = uri?.kind === 'prefix' ? quote(uri.value) : '';
  const remedy = route === own ? 'remove this match' : `move ${route.field} after this route`;
  return `comes first and matches every path that begins with ${prefix}; ${remedy}.`;
}

const fieldOf = ({ route, index }: Placed): string => `${route.field}.match[${index}]`;

/** Equal for matches that take the same requests. */
function keyOf({ uri, ignoreUriCase, others }: Placed): string {
  const path = uri === undefined ? '' : `${uri.kind} ${uri.kind === 'present' ? '' : uri.value}`;
  return `${others}\0${Number(ignoreUriCase)}\0${path}`;
}

function takesAllPaths(uri: StringMatch | undefined): boolean {
  if (uri === undefined) return true;
  if (uri.kind === 'prefix') return uri.value === '' || uri.value === '/';
  return uri.kind === 'regex' && uri.value === '.*';
}

/**
 * For matches on a path, or on the paths with a prefix: the first earlier match that takes all paths with a prefix of
 * that path. In sorted order, a text follows its prefixes, and everything in between begins with the nearest one.
 */
function ownersByPath(matches: readonly Placed[]): ReadonlyMap<Placed, Placed> {
  const paths = matches.flatMap((match, order) =>
    match.uri?.kind === 'exact' || match.uri?.kind === 'prefix'
      ? [{ match, order, path: match.uri.value, takes: match.uri.kind === 'prefix' && isTaker(match) }]
      : [],
  );
  const owners = new Map<Placed, Placed>();
  if (!paths.some(({ takes }) => takes)) return owners;
  paths.sort((a, b) => compareText(a.path, b.path) || a.order - b.order);
  /** Prefixes of the current path, each with the first match among those so far. */
  const open: { readonly path: string; readonly first: { readonly match: Placed; readonly order: number } }[] = [];
  for (const entry of paths) {
    while (open.length > 0 && !entry.path.startsWith(open.at(-1)!.path)) open.pop();
    const first = open.at(-1)?.first;
    if (first !== undefined && first.order < entry.order && !entry.match.ignoreUriCase)
      owners.set(entry.match, first.match);
    if (entry.takes)
      open.push({ path: entry.path, first: first !== undefined && first.order < entry.order ? first : entry });
  }
  return owners;
}

/** Whether it takes every request for its paths. */
const isTaker = ({ route, others }: Placed): boolean => others === '' && !route.isDelegate;

function othersOf(match: Partial<HttpMatch> | L4Match): string {
  let others: [string, unknown][] | undefined;
  for (const [name, value] of Object.entries(match))
    if (!NO_CONDITIONS.has(name) && !isUnset(value)) (others ??= []).push([name, value]);
  return others === undefined ? '' : JSON.stringify(others);
}

/** The path is compared separately. */
const NO_CONDITIONS: ReadonlySet<string> = new Set(['uri', 'ignoreUriCase', 'name', 'statPrefix']);

/** Whether a condition has the same value as an absent one. */
function isUnset(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (typeof value === 'object' && value !== null) {
    for (const _ in value) return false;
    return true;
  }
  return value === undefined || value === '' || value === 0;
}
