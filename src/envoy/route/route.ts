import type { DirectResponse, Redirect, RequestMatch, RouteRule } from '../../model/route.ts';
import type { Traits } from '../../model/traits.ts';
import type { Route } from '../gen/types.gen.ts';
import { configPath, istioMetadata } from '../istio-metadata.ts';
import { backendHeaders, clustersOfAction, routeAction } from './action.ts';
import { filterConfigs } from './filters.ts';
import { headersOf } from './headers.ts';
import { grpcRoutes } from './grpc-routes.ts';
import { anyRequest, printPath, routeMatch } from './match.ts';

/** Envoy's routes for these rules: one per match. */
export function buildRoutes(rules: readonly RouteRule[], traits: Traits): readonly Route[] {
  if (traits.family === 'grpc') return grpcRoutes(rules, traits);
  return rules.flatMap((rule) => {
    const shared = allButTheMatch(rule, traits);
    const matches = rule.matches.length === 0 ? [undefined] : rule.matches;
    return matches.map((match) => withMatch(rule, match, shared, traits));
  });
}

/** Names of the clusters that rules refer to, including mirrors. Sorted, distinct. */
export function clustersOf(rules: readonly RouteRule[]): readonly string[] {
  const clusters = new Set<string>();
  for (const { action } of rules)
    if (action.kind === 'forward') for (const cluster of clustersOfAction(action)) clusters.add(cluster);
  return [...clusters].sort();
}

function withMatch(rule: RouteRule, written: RequestMatch | undefined, shared: Route, traits: Traits): Route {
  const match = written === undefined ? anyRequest : routeMatch(written, traits);
  const name = written === undefined || written.name === '' ? rule.name : `${rule.name}.${written.name}`;
  return {
    ...(name === '' ? {} : { name }),
    match,
    ...shared,
    decorator: { operation: rule.operation + printPath(match) },
    ...(written === undefined || written.statPrefix === '' ? {} : { statPrefix: written.statPrefix }),
  };
}

function allButTheMatch(rule: RouteRule, traits: Traits): Route {
  const { action, headers, owner } = rule;
  const own: Route = {
    ...headersOf(headers),
    typedPerFilterConfig: filterConfigs(rule, traits),
    ...(owner && { metadata: istioMetadata({ config: configPath(owner) }) }),
  };
  switch (action.kind) {
    case 'forward':
      return { ...own, ...backendHeaders(action, headers), route: routeAction(action, headers, traits) };
    case 'redirect':
      return { ...own, redirect: redirect(action) };
    case 'directResponse':
      return { ...own, directResponse: directResponse(action) };
  }
}

function redirect({ authority, uri, prefixRewrite, scheme, port, code }: Redirect): Route['redirect'] {
  return {
    ...(authority === '' ? {} : { hostRedirect: authority }),
    ...(prefixRewrite === undefined ? { pathRedirect: uri } : { prefixRewrite }),
    ...(scheme === '' ? {} : { schemeRedirect: scheme }),
    ...(port === undefined ? {} : { portRedirect: port }),
    responseCode: redirectCodes[code],
  };
}

const redirectCodes = {
  301: 'MOVED_PERMANENTLY',
  302: 'FOUND',
  303: 'SEE_OTHER',
  307: 'TEMPORARY_REDIRECT',
  308: 'PERMANENT_REDIRECT',
} as const;

function directResponse({ status, body }: DirectResponse): Route['directResponse'] {
  if (body === undefined) return { status };
  return { status, body: typeof body === 'string' ? { inlineString: body } : { inlineBytes: body } };
}
