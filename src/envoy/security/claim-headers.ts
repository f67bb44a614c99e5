import { type JwtIssuer, writtenHeaders } from '../../model/request-authentication.ts';
import type { HttpFilter } from '../gen/types.gen.ts';
import { constantAny } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import { quoted, regexMatcher } from '../regex.ts';
import type { RbacTraits } from './rbac-matchers.ts';

/**
 * Removes what clients send in place of the headers that rules write: before tokens are verified, so that CORS preflights
 * have none either, and in each spelling that CGI and WSGI take for the same, where `_` stands for `-`.
 */
export function withoutClaimHeaders(issuers: readonly JwtIssuer[], to: RbacTraits): readonly HttpFilter[] {
  const names = new Set(issuers.flatMap(({ rule }) => writtenHeaders(rule)).map((name) => name.toLowerCase()));
  if (names.size === 0) return [];
  const requestMutations = [...names].map((name) => {
    const spelled = name.split(/[-_]/).map(quoted).join('[-_]');
    return { removeOnMatch: { keyMatcher: { safeRegex: regexMatcher(spelled, to) } } };
  });
  return [
    {
      name: 'envoy.filters.http.header_mutation',
      typedConfig: constantAny(types.headerMutation, { mutations: { requestMutations } }),
    },
  ];
}
