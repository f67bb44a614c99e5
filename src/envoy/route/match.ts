import type { Traits } from '../../model/traits.ts';
import type { ClaimMatch, PathMatch, RequestMatch, StringMatch } from '../../model/route.ts';
import type { HeaderMatcher, MetadataMatcher, RouteMatch, ValueMatcher } from '../gen/types.gen.ts';
import { regexMatcher, stringMatcher } from '../regex.ts';
import { wrapped } from '../encode/wrappers.ts';

/** Matches every request. */
export const anyRequest: RouteMatch = { prefix: '/' };

export function routeMatch(match: RequestMatch, traits: Traits): RouteMatch {
  const headers = match.headers.map(({ name, match: value, invert }): HeaderMatcher => {
    const matcher = headerMatcher(name, value, traits);
    if (!invert) return matcher;
    return { ...matcher, invertMatch: true, ...(matcher.presentMatch ? {} : { treatMissingHeaderAsEmpty: true }) };
  });
  if (match.method !== undefined) headers.push(headerMatcher(':method', match.method, traits));
  if (match.authority !== undefined) headers.push(headerMatcher(':authority', match.authority, traits));
  if (match.scheme !== undefined) headers.push(headerMatcher(':scheme', match.scheme, traits));
  return {
    ...pathMatch(match.uri, traits),
    caseSensitive: wrapped(!match.ignoreUriCase),
    headers,
    queryParameters: match.queryParams.map(({ name, match: value }) =>
      value.kind === 'present' ? { name, presentMatch: true } : { name, stringMatch: stringMatcher(value, traits) },
    ),
    dynamicMetadata: match.claims.map((claim) => claimMatcher(claim, traits)),
  };
}

/** The path as operation names show it. */
export function printPath(match: RouteMatch): string {
  return match.path ?? match.safeRegex?.regex ?? `${match.pathSeparatedPrefix ?? match.prefix ?? '/'}*`;
}

function pathMatch(uri: PathMatch | undefined, traits: Traits): RouteMatch {
  switch (uri?.kind) {
    case 'exact':
      return { path: uri.value };
    case 'prefix':
      return { prefix: uri.value };
    case 'pathPrefix':
      return { pathSeparatedPrefix: uri.value };
    case 'regex':
      return { safeRegex: regexMatcher(uri.value, traits) };
    default:
      return anyRequest;
  }
}

function headerMatcher(name: string, match: StringMatch, traits: Traits): HeaderMatcher {
  return match.kind === 'present' ? { name, presentMatch: true } : { name, stringMatch: stringMatcher(match, traits) };
}

/** The JWT filter stores claims as metadata; a claim is a string, or a list of strings, one of which must match. */
function claimMatcher({ path, match, invert }: ClaimMatch, traits: Traits): MetadataMatcher {
  return {
    filter: 'envoy.filters.http.jwt_authn',
    path: ['payload', ...path].map((key) => ({ key })),
    value:
      match.kind === 'present' ? { presentMatch: true } : textOrList({ stringMatch: stringMatcher(match, traits) }),
    invert,
  };
}

function textOrList(text: ValueMatcher): ValueMatcher {
  return { orMatch: { valueMatchers: [{ listMatch: { oneOf: text } }, text] } };
}
