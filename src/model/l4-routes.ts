import { relatedIn } from './host-set.ts';
import { remembered } from './remembered.ts';
import type { ObjectRef } from '../api/object.ts';
import type { Aged } from './age.ts';
import type { Labels } from './labels.ts';
import type { Destination } from './route.ts';

/** What an object says about connections to its hosts. */
export interface ConnectionRoutes extends Aged {
  readonly ref: ObjectRef;
  readonly hosts: readonly string[];
  /** `*` or namespaces whose clients see it. Sorted. */
  readonly exportTo: readonly string[];
  readonly tcp: readonly L4Route[];
  readonly tls: readonly TlsRoute[];
}

export type L4Destination = Destination & { readonly weight: number };

/** A `tcp` route. */
export interface L4Route {
  readonly field: string;
  /** Empty: every connection. */
  readonly matches: readonly L4Match[];
  readonly destinations: readonly L4Destination[];
}

export interface L4Match {
  /** Addresses or ranges. */
  readonly destinationSubnets: readonly string[];
  /** 0: any. */
  readonly port: number;
  readonly sourceLabels: Labels;
  readonly sourceNamespace: string;
  /** Keys of the parents that it is for. Empty: all of the object. */
  readonly parents: readonly string[];
}

/** A `tls` route: matched by server name. */
export interface TlsRoute {
  readonly field: string;
  readonly matches: readonly TlsMatch[];
  readonly destinations: readonly L4Destination[];
}

export interface TlsMatch extends L4Match {
  readonly sniHosts: readonly string[];
}

/** A `tcp` or `tls` route, and those of its matches that were asked for. */
export interface MatchedRoute<Route, Match> {
  readonly route: Route;
  readonly matches: readonly Match[];
}

interface Entry {
  readonly order: number;
  readonly route: L4Route;
  /** Absent: the route has none. */
  readonly match?: L4Match;
}

/** The routes with a match for the port or for any, and those without matches. Each port of a Service asks. */
export function routesOn(port: number, routes: readonly TlsRoute[]): readonly MatchedRoute<TlsRoute, TlsMatch>[];
export function routesOn(port: number, routes: readonly L4Route[]): readonly MatchedRoute<L4Route, L4Match>[];
export function routesOn(port: number, routes: readonly L4Route[]): readonly MatchedRoute<L4Route, L4Match>[] {
  return matchedOn(routes)(port);
}

const matchedOn = remembered((routes: readonly L4Route[]) => {
  const byPort = Map.groupBy(entriesOf(routes), ({ match }) => match?.port ?? 0);
  const forAny = byPort.get(0) ?? [];
  const known = new Map([[0, inOrder(forAny)]]);
  return (port: number): readonly MatchedRoute<L4Route, L4Match>[] => {
    const entries = byPort.get(port);
    if (port === 0 || entries === undefined) return known.get(0)!;
    const found = known.get(port) ?? inOrder([...forAny, ...entries]);
    known.set(port, found);
    return found;
  };
});

/** The routes with a match that has one of the hosts, or overlaps with it. Each server of a Gateway asks. */
export function routesFor(
  hosts: readonly string[],
  routes: readonly TlsRoute[],
): readonly MatchedRoute<TlsRoute, TlsMatch>[] {
  const { related, byName } = entriesByName(routes);
  const names = new Set(hosts.flatMap(related));
  const found = [...names].flatMap((name) => byName.get(name) ?? []);
  return inOrder(found) as readonly MatchedRoute<TlsRoute, TlsMatch>[];
}

const entriesByName = remembered((routes: readonly TlsRoute[]) => {
  const byName = new Map<string, Entry[]>();
  for (const entry of entriesOf(routes))
    for (const name of (entry.match as TlsMatch | undefined)?.sniHosts ?? []) {
      const known = byName.get(name);
      if (known === undefined) byName.set(name, [entry]);
      else known.push(entry);
    }
  return { related: relatedIn([...byName.keys()]), byName };
});

function entriesOf(routes: readonly L4Route[]): readonly Entry[] {
  return routes
    .flatMap((route): Omit<Entry, 'order'>[] =>
      route.matches.length === 0 ? [{ route }] : route.matches.map((match) => ({ route, match })),
    )
    .map((entry, order) => ({ ...entry, order }));
}

function inOrder(entries: readonly Entry[]): readonly MatchedRoute<L4Route, L4Match>[] {
  const ordered = [...new Set(entries)].sort((a, b) => a.order - b.order);
  const groups = Map.groupBy(ordered, ({ route }) => route);
  return Array.from(groups, ([route, some]) => ({
    route,
    matches: some.flatMap(({ match }) => (match === undefined ? [] : [match])),
  }));
}
