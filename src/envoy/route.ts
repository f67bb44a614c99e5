import { distinctRefs, type ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import {
  type DirectResponseAction,
  type HttpMatch,
  type HttpRoute,
  type RedirectAction,
} from '../model/virtual-service.ts';
import { matchCanHold } from '../model/virtual-service-selection.ts';
import type { Metadata, Route } from './gen/types.gen.ts';
import { configPath, istioMetadata } from './istio-metadata.ts';
import { forward } from './route-action.ts';
import { Found, type RouteContext } from './route-context.ts';
import { filterConfigs } from './route-filters.ts';
import { headersOf } from './route-headers.ts';
import { anyRequest, isCatchAll, printPath, routeMatch } from './route-match.ts';

export interface TranslatedRoutes {
  /** In order. Empty when none can hold for this client and port. */
  readonly routes: readonly Route[];
  /** Names of the clusters that the routes name. Sorted, distinct. */
  readonly clusters: readonly string[];
  /** References that lead nowhere. */
  readonly problems: readonly Problem[];
  /** The objects that shaped the routes: the VirtualService, its delegates, DestinationRules with a hash. */
  readonly origins: readonly ObjectRef[];
}

/**
 * Envoy's routes for the `http` routes of a VirtualService: one for each match that can hold, up to the first that takes
 * every request.
 */
export function translateHttpRoutes(http: readonly HttpRoute[], context: RouteContext): TranslatedRoutes {
  const { model } = context;
  const found = new Found(model.ref);
  const metadata = istioMetadata({ config: configPath('virtual-service', model.namespace, model.name) });
  const routes: Route[] = [];
  for (const route of http) {
    if (route.action.kind === 'delegate') continue;
    const matches = route.matches.filter((match) => matchCanHold(match, context));
    if (route.matches.length > 0 && matches.length === 0) continue;
    const build = routeBuilder(route, metadata, context, found);
    if (route.matches.length === 0) {
      routes.push(build(undefined));
      break;
    }
    let last: Route | undefined;
    for (const match of matches) {
      last = build(match);
      routes.push(last);
      if (isCatchAll(last.match ?? {})) break;
    }
    if (isCatchAll(last?.match ?? {})) break;
  }
  return { routes, clusters: found.sortedClusters(), problems: found.problems, origins: distinctRefs(found.origins) };
}

/** Everything but the match is the same for all matches of a route. */
function routeBuilder(
  route: HttpRoute,
  metadata: Metadata,
  context: RouteContext,
  found: Found,
): (match: HttpMatch | undefined) => Route {
  found.origins.add(route.object);
  const { action } = route;
  const own = {
    ...headersOf(route.headers),
    typedPerFilterConfig: filterConfigs(route, context.client.traits),
    metadata,
  };
  const forwarded = action.kind === 'forward' ? forward(route, action, context, found) : undefined;
  const shared: Route =
    forwarded !== undefined
      ? { ...own, ...forwarded.headers, route: forwarded.action }
      : action.kind === 'redirect'
        ? { ...own, redirect: redirect(action, context) }
        : action.kind === 'directResponse'
          ? { ...own, directResponse: directResponse(action) }
          : own;
  const operation = forwarded?.operation ?? `${context.model.name}:${context.listenerPort}`;
  return (written) => {
    const match = written === undefined ? anyRequest : routeMatch(written, context.client.traits);
    const name = written === undefined || written.name === '' ? route.name : `${route.name}.${written.name}`;
    return {
      ...(name === '' ? {} : { name }),
      match,
      ...shared,
      decorator: { operation: operation + printPath(match) },
      ...(written === undefined || written.statPrefix === '' ? {} : { statPrefix: written.statPrefix }),
    };
  };
}

function redirect(action: RedirectAction, { listenerPort, tls = false }: RouteContext): Route['redirect'] {
  const scheme = action.scheme === '' ? (tls ? 'https' : 'http') : action.scheme;
  const port =
    action.port === 'FROM_REQUEST_PORT' ? listenerPort : typeof action.port === 'number' ? action.port : undefined;
  const usual = scheme === 'http' ? 80 : 443;
  return {
    ...(action.authority === '' ? {} : { hostRedirect: action.authority }),
    ...(action.prefixRewrite === undefined ? { pathRedirect: action.uri } : { prefixRewrite: action.prefixRewrite }),
    ...(action.scheme === '' ? {} : { schemeRedirect: action.scheme }),
    ...(port === undefined || port === usual ? {} : { portRedirect: port }),
    responseCode: redirectCodes[action.code],
  };
}

const redirectCodes = {
  301: 'MOVED_PERMANENTLY',
  302: 'FOUND',
  303: 'SEE_OTHER',
  307: 'TEMPORARY_REDIRECT',
  308: 'PERMANENT_REDIRECT',
} as const;

function directResponse({ status, body }: DirectResponseAction): Route['directResponse'] {
  if (body === undefined) return { status };
  return { status, body: typeof body === 'string' ? { inlineString: body } : { inlineBytes: body } };
}
