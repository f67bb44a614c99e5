import type { Traits } from '../../model/traits.ts';
import type { Cors, Fault, RouteRule } from '../../model/route.ts';
import { duration } from '../duration.ts';
import type { Any, FractionalPercent, HTTPFault } from '../gen/types.gen.ts';
import { any, type MessageOf } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import { stringMatcher } from '../regex.ts';
import { wrapped } from '../encode/wrappers.ts';

/** A route's changes to the HTTP filters `fault` and `cors`. */
export function filterConfigs(
  route: Pick<RouteRule, 'fault' | 'cors'>,
  traits: Traits,
): { readonly [filter: string]: Any } | undefined {
  const { fault, cors } = route;
  if (fault === undefined && cors === undefined) return undefined;
  return {
    ...(cors === undefined ? {} : { 'envoy.filters.http.cors': any(types.corsPolicy, corsPolicy(cors, traits)) }),
    ...(fault === undefined ? {} : { 'envoy.filters.http.fault': any(types.fault, httpFault(fault)) }),
  };
}

/** A percentage with the four decimals that Envoy supports; the rest is truncated, as in Istio. */
export function fractionalPercent(percentage: number): FractionalPercent {
  return { numerator: Math.trunc(percentage * 10_000), denominator: 'MILLION' };
}

function httpFault({ delay, abort }: Fault): HTTPFault {
  return {
    delay: delay && {
      fixedDelay: duration(delay.fixedDelay),
      percentage: delay.percentage === undefined ? { numerator: delay.percent } : fractionalPercent(delay.percentage),
    },
    abort: abort && {
      ...(abort.status.kind === 'http' ? { httpStatus: abort.status.code } : { grpcStatus: abort.status.code }),
      percentage: abort.percentage === undefined ? undefined : fractionalPercent(abort.percentage),
    },
  };
}

function corsPolicy(cors: Cors, traits: Traits): MessageOf<typeof types.corsPolicy> {
  return {
    allowOriginStringMatch: cors.allowOrigins.flatMap((origin) =>
      origin.kind === 'present' ? [] : [stringMatcher(origin, traits)],
    ),
    allowMethods: cors.allowMethods.join(','),
    allowHeaders: cors.allowHeaders.join(','),
    exposeHeaders: cors.exposeHeaders.join(','),
    maxAge: cors.maxAge === undefined ? undefined : String(Math.trunc(cors.maxAge / 1000)),
    allowCredentials: cors.allowCredentials === undefined ? undefined : wrapped(cors.allowCredentials),
    filterEnabled: { defaultValue: { numerator: 100 } },
    forwardNotMatchingPreflights: wrapped(cors.unmatchedPreflights !== 'IGNORE'),
  };
}
