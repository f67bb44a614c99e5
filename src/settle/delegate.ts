import { printRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { DelegateAction, HttpAction, HttpRoute, VirtualServiceModel } from '../model/virtual-service.ts';
import { bytesOfEach, bytesOfMatches } from '../model/virtual-service-parts.ts';
import { isSeenFrom } from '../model/route-binding.ts';
import { joinNames, mergeMatches } from './delegate-match.ts';
import { quote } from '../api/quote.ts';

type Find = (namespace: string, name: string) => VirtualServiceModel | undefined;

export interface DelegatedVirtualService {
  /** Undefined if there would be more routes than can be served. */
  readonly model: VirtualServiceModel | undefined;
  readonly problems: readonly Problem[];
}

/** Envoy has a route for each match and host. Far more than any table holds, and as much as a commit can handle. */
const mostRoutes = 100_000;
/** All routes of a host are one message. */
const mostRoutesOfHost = 10_000;
/**
 * What all matches of a route share (a body, destinations, headers) is repeated for each match, a match for each match of
 * a delegate, and all of that for each host.
 */
const mostBytesOfHost = 8 * 1024 * 1024;
const mostBytes = 64 * 1024 * 1024;
/** Owners are told only the first ones. */
const mostProblems = 100;

/**
 * Replaces each delegating route with the routes of the VirtualService that it names. A route whose delegate is
 * missing, or is not exported to the root's namespace, is dropped, and so is a delegate's route whose matches
 * contradict the root's: both as in Istio.
 */
export function applyDelegates(root: VirtualServiceModel, find: Find): DelegatedVirtualService {
  const { routes: ofHost, bytes } = countRoutes(root, find);
  const routes = ofHost * root.hosts.length;
  if (bytes > mostBytesOfHost || bytes * root.hosts.length > mostBytes) {
    const message = `has actions, counted once for each match, and matches of ${bytes} bytes for each host, and of ${bytes * root.hosts.length} in total; at most ${mostBytesOfHost} and ${mostBytes} are allowed. Give large actions fewer matches, delegate from smaller ones, or split the VirtualService.`;
    return { model: undefined, problems: [{ object: root.ref, field: 'spec.http', reason: 'Invalid', message }] };
  }
  if (ofHost > mostRoutesOfHost || routes > mostRoutes) {
    const message = `makes ${ofHost} routes for each host and ${routes} in total, one for each match, including those of delegates; at most ${mostRoutesOfHost} and ${mostRoutes} are allowed. Split the VirtualService.`;
    return { model: undefined, problems: [{ object: root.ref, field: 'spec.http', reason: 'Invalid', message }] };
  }
  if (!root.http.some((route) => route.action.kind === 'delegate')) return { model: root, problems: [] };
  const problems: Problem[] = [];
  const report = (problem: Problem): void => {
    if (problems.length < mostProblems) problems.push(problem);
  };
  const http = root.http.flatMap((route): readonly HttpRoute[] => {
    const { action } = route;
    if (action.kind !== 'delegate') return [route];
    const delegate = find(action.namespace, action.name);
    const problem = problemOf(root, delegate);
    if (delegate === undefined || problem !== undefined) {
      report({
        object: route.object,
        field: `${route.field}.delegate`,
        reason: 'RefNotFound',
        message: `VirtualService ${action.namespace}/${action.name} ${problem}; the route is left out.`,
      });
      return [];
    }
    return delegate.http.flatMap((part): readonly HttpRoute[] => {
      const merged = mergeRoute(route, action, part);
      if (merged !== undefined) return [merged];
      const message = `contradicts ${route.field}.match of VirtualService ${root.namespace}/${root.name}, which delegates to it; the route is left out there.`;
      report(toldTo(root, { object: part.object, field: `${part.field}.match`, reason: 'RefNotFound', message }));
      return [];
    });
  });
  return { model: { ...root, http }, problems };
}

/**
 * Reports a problem with a delegate's route to the delegate's owner, or to the root's owner if the delegate is in
 * another namespace: anyone may delegate to whatever is exported.
 */
export function toldTo({ ref, namespace }: Pick<VirtualServiceModel, 'ref' | 'namespace'>, problem: Problem): Problem {
  const { object, field, message } = problem;
  if (object.namespace === namespace) return problem;
  return {
    ...problem,
    object: ref,
    field: 'spec.http',
    message: `delegates to ${printRef(object)}: ${field}: ${message}`,
  };
}

interface Size {
  readonly routes: number;
  /** Total size of what is repeated: per match, per match of a delegate, or per host. */
  readonly bytes: number;
}

/** Upper bounds per host, computed without building the routes. */
function countRoutes({ hosts, http }: VirtualServiceModel, find: Find): Size {
  const ofDelegates = new Map<VirtualServiceModel, Size>();
  const total = { routes: 0, bytes: 0 };
  for (const route of http) {
    const { action } = route;
    const delegate = action.kind === 'delegate' ? find(action.namespace, action.name) : undefined;
    const own = sizeOf(route, delegate !== undefined || hosts.length > 1);
    let parts: Size = { routes: 1, bytes: 0 };
    if (delegate !== undefined) {
      parts = ofDelegates.get(delegate) ?? sum(delegate.http.map((part) => sizeOf(part, true)));
      ofDelegates.set(delegate, parts);
    }
    total.routes += own.routes * parts.routes;
    total.bytes += own.bytes * parts.routes + own.routes * parts.bytes;
  }
  return total;
}

function sizeOf(route: HttpRoute, repeatsMatches: boolean): Size {
  const routes = Math.max(1, route.matches.length);
  return { routes, bytes: routes * bytesOfEach(route) + (repeatsMatches ? bytesOfMatches(route) : 0) };
}

function sum(sizes: readonly Size[]): Size {
  return sizes.reduce((a, b) => ({ routes: a.routes + b.routes, bytes: a.bytes + b.bytes }), { routes: 0, bytes: 0 });
}

function problemOf(root: VirtualServiceModel, delegate: VirtualServiceModel | undefined): string | undefined {
  if (delegate === undefined) return 'does not exist or is not valid';
  if (delegate.hosts.length > 0) return 'has hosts of its own, so it cannot be a delegate';
  if (!isSeenFrom(delegate, root.namespace)) {
    return `is not exported to namespace ${quote(root.namespace)}`;
  }
  return undefined;
}

function mergeRoute(root: HttpRoute, delegating: DelegateAction, part: HttpRoute): HttpRoute | undefined {
  const matches = mergeMatches(root.matches, part.matches);
  if (matches === undefined) return undefined;
  const headers = part.headers ?? root.headers;
  const fault = part.fault ?? root.fault;
  const cors = part.cors ?? root.cors;
  return {
    name: joinNames(root.name, part.name),
    object: part.object,
    field: part.field,
    delegatedBy: root.field,
    matches,
    action: inherit(part.action, delegating),
    ...(headers === undefined ? {} : { headers }),
    ...(fault === undefined ? {} : { fault }),
    ...(cors === undefined ? {} : { cors }),
  };
}

/** What the delegate's route does not set is inherited from the root's. */
function inherit(action: HttpAction, root: DelegateAction): HttpAction {
  if (action.kind !== 'forward') return action;
  if (root.directResponse !== undefined) return root.directResponse;
  const rewrite = action.rewrite ?? root.rewrite;
  const timeout = action.timeout ?? root.timeout;
  const retries = action.retries ?? root.retries;
  const mirrors = action.mirrors ?? root.mirrors;
  return {
    kind: 'forward',
    destinations: action.destinations,
    ...(rewrite === undefined ? {} : { rewrite }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(retries === undefined ? {} : { retries }),
    ...(mirrors === undefined ? {} : { mirrors }),
  };
}
