import type { JwtIssuer } from '../../model/request-authentication.ts';
import { constantAny } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import type { HttpFilter, JwtProvider, JwtRequirement } from '../gen/types.gen.ts';
import { jwtFilter, jwtPayload } from './rbac-matchers.ts';

/**
 * A point on P-256 that nobody has the private key of: its x coordinate is the SHA-256 hash of a sentence
 * (see jwt.test.ts). Tokens of an issuer without known keys fail because of it; with no keys at all, Envoy would reject
 * the listener.
 */
export const keyOfNobody =
  '{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","x":"ebWjieOimRScKvDlYnJrnNJKjCinTpHbjZ_0CqtcPhQ","y":"t18kbNf1kbDVIoaBcPoquZYbNYpsjtHeKMkNcVCt0C4"}]}';

/**
 * The filter that verifies tokens. A request without a token passes, unless a rule requires one; a request with an
 * invalid token does not.
 *
 * @param choosesRoute routes may depend on claims, and are chosen again once these are known.
 */
export function jwtAuthentication(issuers: readonly JwtIssuer[], choosesRoute: boolean): HttpFilter {
  const named = issuers.map((issuer, index) => ({ ...issuer, name: `origins-${index}` }));
  return {
    name: jwtFilter,
    typedConfig: constantAny(types.jwtAuthn, {
      providers: Object.fromEntries(named.map(({ name, ...issuer }) => [name, provider(issuer, choosesRoute)])),
      // All paths: whatever else decides about the request sees the same path.
      rules: [{ match: { prefix: '/' }, requires: requirement(named) }],
      bypassCorsPreflight: true,
    }),
  };
}

function provider({ rule, jwks }: JwtIssuer, choosesRoute: boolean): JwtProvider {
  const { audiences, fromHeaders, fromParams, fromCookies, outputPayloadToHeader, outputClaimToHeaders } = rule;
  return {
    issuer: rule.issuer,
    ...(audiences.length === 0 ? {} : { audiences }),
    localJwks: { inlineString: jwks ?? keyOfNobody },
    ...(rule.forwardOriginalToken ? { forward: true } : {}),
    ...(fromHeaders.length === 0
      ? {}
      : {
          fromHeaders: fromHeaders.map(({ name, prefix }) => ({
            name,
            ...(prefix === '' ? {} : { valuePrefix: prefix }),
          })),
        }),
    ...(fromParams.length === 0 ? {} : { fromParams }),
    ...(fromCookies.length === 0 ? {} : { fromCookies }),
    ...(outputPayloadToHeader === '' ? {} : { forwardPayloadHeader: outputPayloadToHeader }),
    ...(outputClaimToHeaders.length === 0
      ? {}
      : {
          claimToHeaders: outputClaimToHeaders.map(({ header, claim }) => ({ headerName: header, claimName: claim })),
        }),
    payloadInMetadata: jwtPayload,
    normalizePayloadInMetadata: {
      spaceDelimitedClaims: [...new Set(['permission', 'scope', ...rule.spaceDelimitedClaims])].sort(),
    },
    ...(choosesRoute ? { clearRouteCache: true } : {}),
  };
}

type Named = JwtIssuer & { readonly name: string };

function requirement(issuers: readonly Named[]): JwtRequirement {
  const of = ({ name }: Named): JwtRequirement => ({ providerName: name });
  const unlessRequired = (issuer: Named): JwtRequirement =>
    issuer.rule.required ? of(issuer) : { requiresAny: { requirements: [of(issuer), { allowMissing: {} }] } };
  const [first, ...others] = issuers;
  if (first !== undefined && others.length === 0) return unlessRequired(first);
  const all: JwtRequirement = { requiresAll: { requirements: issuers.map(unlessRequired) } };
  const required = issuers.filter(({ rule }) => rule.required).map(of);
  if (required.length === issuers.length) return all;
  // A token of one issuer is enough, or those of all that are required: where they look for it, others see it, too.
  const enough = required.length < 2 ? required : [{ requiresAll: { requirements: required } }];
  return { requiresAny: { requirements: required.length === 0 ? [...issuers.map(of), all] : [all, ...enough] } };
}
