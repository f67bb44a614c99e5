import type { ClaimMatch, HttpMatch, StringMatch } from '../model/virtual-service.ts';
import type { HeaderMatcher, MetadataMatcher, RouteMatch, StringMatcher, ValueMatcher } from './gen/types.gen.ts';
import { wrapped } from './values.ts';

/** Matches every request. */
export const anyRequest: RouteMatch = { prefix: '/' };

export function routeMatch(match: HttpMatch): RouteMatch {
  const headers = match.headers.map(({ name, match: value, invert }): HeaderMatcher => {
    const matcher = headerMatcher(name, value);
    if (!invert) return matcher;
    return { ...matcher, invertMatch: true, ...(matcher.presentMatch ? {} : { treatMissingHeaderAsEmpty: true }) };
  });
  if (match.method !== undefined) headers.push(headerMatcher(':method', match.method));
  if (match.authority !== undefined) headers.push(headerMatcher(':authority', match.authority));
  if (match.scheme !== undefined) headers.push(headerMatcher(':scheme', match.scheme));
  return {
    ...pathMatch(match.uri),
    caseSensitive: wrapped(!match.ignoreUriCase),
    headers,
    queryParameters: match.queryParams.map(({ name, match: value }) =>
      value.kind === 'present' ? { name, presentMatch: true } : { name, stringMatch: stringMatcher(value) },
    ),
    dynamicMetadata: match.claims.map(claimMatcher),
  };
}

/** Whether routes behind this one are never reached. */
export function isCatchAll(match: RouteMatch): boolean {
  return (
    (match.prefix === '/' || match.safeRegex?.regex === '.*') &&
    !match.headers?.length &&
    !match.queryParameters?.length &&
    !match.dynamicMetadata?.length
  );
}

/** The path as the names of operations show it. */
export function printPath(match: RouteMatch): string {
  return match.path ?? match.safeRegex?.regex ?? `${match.prefix ?? '/'}*`;
}

export function stringMatcher(match: Exclude<StringMatch, { kind: 'present' }>): StringMatcher {
  switch (match.kind) {
    case 'exact':
      return { exact: match.value };
    case 'prefix':
      return { prefix: match.value };
    case 'regex':
      return { safeRegex: { regex: match.value } };
  }
}

function pathMatch(uri: StringMatch | undefined): RouteMatch {
  switch (uri?.kind) {
    case 'exact':
      return { path: uri.value };
    case 'prefix':
      return { prefix: uri.value };
    case 'regex':
      return { safeRegex: { regex: uri.value } };
    default:
      return anyRequest;
  }
}

function headerMatcher(name: string, match: StringMatch): HeaderMatcher {
  return match.kind === 'present' ? { name, presentMatch: true } : { name, stringMatch: stringMatcher(match) };
}

/** The JWT filter leaves claims as metadata; a claim is a text, or a list of texts of which one must match. */
function claimMatcher({ path, match, invert }: ClaimMatch): MetadataMatcher {
  return {
    filter: 'envoy.filters.http.jwt_authn',
    path: ['payload', ...path].map((key) => ({ key })),
    value: match.kind === 'present' ? { presentMatch: true } : textOrList({ stringMatch: stringMatcher(match) }),
    invert,
  };
}

function textOrList(text: ValueMatcher): ValueMatcher {
  return { orMatch: { valueMatchers: [{ listMatch: { oneOf: text } }, text] } };
}
