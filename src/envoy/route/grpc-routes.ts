import type { ForwardToBackends, RequestMatch, RouteRule } from '../../model/route.ts';
import type { Traits } from '../../model/traits.ts';
import { duration } from '../duration.ts';
import type { Route, RouteAction, RouteAction_HashPolicy, RouteMatch } from '../gen/types.gen.ts';
import { routeAction } from './action.ts';
import { filterConfigs } from './filters.ts';
import { anyRequest, routeMatch } from './match.ts';

/**
 * Routes for gRPC's own clients, one per match: what these do not know is left out, because they ignore some of it and
 * refuse the table for the rest.
 */
export function grpcRoutes(rules: readonly RouteRule[], traits: Traits): readonly Route[] {
  return rules.flatMap((rule) => {
    const { fault } = rule;
    const shared: Route = {
      typedPerFilterConfig: filterConfigs(fault === undefined ? {} : { fault }, traits),
      ...(rule.action.kind === 'forward' && { route: grpcAction(rule.action, traits) }),
    };
    const matches = rule.matches.length === 0 ? [undefined] : rule.matches;
    return matches.map((match): Route => ({ name: nameOf(rule, match), match: grpcMatch(match, traits), ...shared }));
  });
}

function nameOf({ name }: RouteRule, match: RequestMatch | undefined): string {
  return match === undefined || match.name === '' ? name : `${name}.${match.name}`;
}

function grpcMatch(match: RequestMatch | undefined, traits: Traits): RouteMatch {
  if (match === undefined) return anyRequest;
  const { pathSeparatedPrefix, caseSensitive, headers, ...path } = routeMatch(match, traits);
  const { prefix, path: exact, safeRegex } = path;
  return {
    ...(exact !== undefined ? { path: exact } : safeRegex !== undefined ? { safeRegex } : { prefix }),
    // `/package.Service` is never requested without a method.
    ...(pathSeparatedPrefix !== undefined && { prefix: `${pathSeparatedPrefix}/` }),
    caseSensitive,
    headers,
  };
}

function grpcAction(action: ForwardToBackends, traits: Traits): RouteAction {
  const { cluster, weightedClusters, retryPolicy: retries, hashPolicy = [] } = routeAction(action, undefined, traits);
  const { timeout } = action;
  return {
    ...(weightedClusters === undefined
      ? { cluster }
      : { weightedClusters: { clusters: weightedClusters.clusters?.map(({ name, weight }) => ({ name, weight })) } }),
    // `timeout` means nothing here.
    ...(timeout === undefined ? {} : { maxStreamDuration: { maxStreamDuration: duration(timeout) } }),
    ...(retries && {
      retryPolicy: {
        retryOn: retries.retryOn,
        numRetries: retries.numRetries,
        retryBackOff: retries.retryBackOff,
      },
    }),
    hashPolicy: hashPolicy.flatMap(({ header, connectionProperties }): readonly RouteAction_HashPolicy[] => {
      if (header !== undefined) return [{ header }];
      // What the requests of one client have in common.
      return connectionProperties === undefined ? [] : [{ filterState: { key: 'io.grpc.channel_id' } }];
    }),
  };
}
