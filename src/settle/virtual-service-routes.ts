import { type ObjectRef, distinctRefs } from '../api/object.ts';
import { ProblemList } from '../api/problem-list.ts';
import { type DestinationTarget, targetIn } from '../model/client.ts';
import { wholeObjects } from '../model/provenance.ts';
import {
  type Backend,
  type BackendTarget,
  type ForwardToBackends,
  type Redirect,
  type RequestMatch,
  type RouteRule,
  type SettledRoutes,
  precedence,
} from '../model/route.ts';
import type {
  ForwardAction,
  HttpDestination,
  HttpRoute,
  RedirectAction,
  VirtualServiceModel,
} from '../model/virtual-service.ts';
import type { Destination } from '../model/route.ts';
import { parseOutboundCluster } from '../model/service.ts';
import { missingDestination } from './missing-destination.ts';
import type { RouteContext } from './route-scope.ts';
import { matchCanHold } from './virtual-service-selection.ts';

export interface VirtualServiceRouteContext extends RouteContext {
  /** Owner of the routes: the root, if delegates are involved. */
  readonly model: VirtualServiceModel;
}

/** Settles the `http` routes of a VirtualService, up to the first match for every request. */
export function settleVirtualServiceRoutes(
  http: readonly HttpRoute[],
  context: VirtualServiceRouteContext,
): SettledRoutes {
  const settling = new Settling(context);
  const rules: RouteRule[] = [];
  let isComplete = false;
  for (const route of http) {
    const matches = route.matches.filter((match) => matchCanHold(match, context));
    if (route.matches.length > 0 && matches.length === 0) continue;
    const rule = settling.ruleOf(route);
    if (rule === undefined) continue;
    const end = matches.findIndex(takesEveryRequest);
    const before = end < 0 ? matches : matches.slice(0, end);
    if (before.length > 0) rules.push({ ...rule, matches: before });
    if (end < 0 && matches.length > 0) continue;
    rules.push({ ...rule, matches: matches.slice(end, end + 1), precedence: precedence.everyRequest });
    isComplete = true;
    break;
  }
  return { rules, isComplete, problems: settling.problems.all };
}

function takesEveryRequest(match: RequestMatch): boolean {
  const { uri, scheme, method, authority, headers, queryParams, claims } = match;
  const isAnyPath =
    uri === undefined || (uri.kind === 'prefix' && uri.value === '/') || (uri.kind === 'regex' && uri.value === '.*');
  return (
    isAnyPath &&
    [scheme, method, authority].every((condition) => condition === undefined) &&
    [headers, queryParams, claims].every(({ length }) => length === 0)
  );
}

class Settling {
  readonly problems = new ProblemList();
  readonly #context: VirtualServiceRouteContext;

  constructor(context: VirtualServiceRouteContext) {
    this.#context = context;
  }

  /** Without its matches. Undefined for a route that delegates: the delegate's routes take its place. */
  ruleOf(route: HttpRoute): RouteRule | undefined {
    const { action, headers, fault, cors } = route;
    if (action.kind === 'delegate') return undefined;
    const { model, listenerPort } = this.#context;
    const rule = {
      name: route.name,
      owner: model.ref,
      sources: [
        ...(route.delegatedBy === undefined ? [] : [{ object: model.ref, field: route.delegatedBy }]),
        { object: route.object, field: route.field },
      ],
      matches: [],
      precedence: precedence.asWritten,
      operation: `${model.name}:${listenerPort}`,
      ...(headers && { headers }),
      ...(fault && { fault }),
      ...(cors && { cors }),
    };
    if (action.kind === 'directResponse') return { ...rule, action };
    if (action.kind === 'redirect') return { ...rule, action: redirectOf(action, this.#context) };
    const { hashedBy, ...forward } = this.#forward(route, action);
    return { ...rule, ...forward, sources: [...rule.sources, ...wholeObjects(distinctRefs(hashedBy))] };
  }

  #forward(
    route: HttpRoute,
    action: ForwardAction,
  ): { readonly action: ForwardToBackends; readonly operation?: string; readonly hashedBy: readonly ObjectRef[] } {
    const { rewrite, timeout, destinations } = action;
    const retries = action.retries ?? this.#context.settings.defaultHttpRetryPolicy;
    const mirrors = (action.mirrors ?? []).map(({ destination, percentage }) => ({
      target: backendTarget(this.#lookUp(destination, route)),
      ...(percentage && { percentage }),
    }));
    const shared = {
      kind: 'forward' as const,
      mirrors,
      ...(rewrite && { rewrite }),
      ...(timeout !== undefined && { timeout }),
      ...(retries && { retries }),
    };
    const found = destinations.map((destination) => ({ destination, target: this.#lookUp(destination, route) }));
    const [only] = found;
    if (only === undefined || found.length > 1) {
      const weighted = found.filter(({ destination }) => destination.weight > 0);
      const backends = weighted.map(({ destination, target }) => ({
        ...backendOf(destination, target),
        weight: destination.weight,
      }));
      const hashedBy = weighted.flatMap(({ target }) => hashRules(target));
      return { action: { ...shared, backends, retriesStay: false }, hashedBy };
    }
    const backend = backendOf(only.destination, only.target);
    return {
      action: { ...shared, backends: [backend], retriesStay: backend.hash !== undefined },
      operation: operationOf(only.target.cluster),
      hashedBy: hashRules(only.target),
    };
  }

  #lookUp(destination: Destination, route: HttpRoute): DestinationTarget {
    const target = targetIn(this.#context.targets, destination);
    for (const problem of missingDestination(route.object, destination, target)) this.problems.add(problem);
    return target;
  }
}

function backendOf({ headers }: HttpDestination, target: DestinationTarget): Backend {
  const hash = target.kind === 'cluster' ? target.hash : undefined;
  return { target: backendTarget(target), ...(hash && { hash }), ...(headers && { headers }) };
}

/** The DestinationRules that define how to hash endpoints. */
function hashRules(target: DestinationTarget): readonly ObjectRef[] {
  return target.kind === 'cluster' && target.hash !== undefined ? (target.rule?.origins ?? []) : [];
}

function backendTarget(target: DestinationTarget): BackendTarget {
  return target.kind === 'missing'
    ? { kind: 'invalid', reason: target.what }
    : { kind: 'cluster', cluster: target.cluster };
}

/** `outbound|80|v1|host` -> `host:80` */
function operationOf(cluster: string): string {
  const { port, host } = parseOutboundCluster(cluster);
  return `${host}:${port}`;
}

function redirectOf(action: RedirectAction, { listenerPort, tls = false }: VirtualServiceRouteContext): Redirect {
  const { authority, uri, prefixRewrite, scheme, code } = action;
  const usual = (scheme === '' ? tls : scheme !== 'http') ? 443 : 80;
  const port =
    action.port === 'FROM_REQUEST_PORT' ? listenerPort : typeof action.port === 'number' ? action.port : usual;
  return {
    kind: 'redirect',
    authority,
    uri,
    scheme,
    code,
    ...(prefixRewrite !== undefined && { prefixRewrite }),
    ...(port !== usual && { port }),
  };
}
