import type { JwtIssuer, TokenCheck } from '../../model/request-authentication.ts';
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
 * @param checks further conditions, which come first.
 * @param choosesRoute routes may depend on claims, and are chosen again once these are known.
 */
export function jwtAuthentication(
  issuers: readonly JwtIssuer[],
  checks: readonly TokenCheck[],
  choosesRoute: boolean,
): HttpFilter {
  const named = issuers.map((issuer, index) => ({ ...issuer, name: `origins-${index}` }));
  const checked = checks.map((check, i) =>
    check.issuers.map((issuer, index) => ({ ...issuer, name: `places-${i}-${index}` })),
  );
  return {
    name: jwtFilter,
    typedConfig: constantAny(types.jwtAuthn, {
      providers: Object.fromEntries([
        ...checked.flat().map(({ name, ...issuer }) => [name, verifier(issuer)] as const),
        ...named.map(({ name, ...issuer }) => [name, provider(issuer, choosesRoute)] as const),
      ]),
      // All paths: whatever else decides about the request sees the same path.
      rules: [{ match: { prefix: '/' }, requires: allOf([...checked.map(anyOrMissing), requirement(named)]) }],
      bypassCorsPreflight: true,
    }),
  };
}

function provider(issuer: JwtIssuer, choosesRoute: boolean): JwtProvider {
  const { outputPayloadToHeader, outputClaimToHeaders, spaceDelimitedClaims } = issuer.rule;
  return {
    ...verifier(issuer),
    ...(outputPayloadToHeader === '' ? {} : { forwardPayloadHeader: outputPayloadToHeader }),
    ...(outputClaimToHeaders.length === 0
      ? {}
      : {
          claimToHeaders: outputClaimToHeaders.map(({ header, claim }) => ({ headerName: header, claimName: claim })),
        }),
    payloadInMetadata: jwtPayload,
    normalizePayloadInMetadata: {
      spaceDelimitedClaims: [...new Set(['permission', 'scope', ...spaceDelimitedClaims])].sort(),
    },
    ...(choosesRoute ? { clearRouteCache: true } : {}),
  };
}

/** Verifies tokens, and makes nothing of them. */
function verifier({ rule, jwks }: JwtIssuer): JwtProvider {
  const { audiences, fromHeaders, fromParams, fromCookies } = rule;
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
  };
}

type Named = JwtIssuer & { readonly name: string };

function allOf(requirements: readonly JwtRequirement[]): JwtRequirement {
  return requirements.length === 1 ? requirements[0]! : { requiresAll: { requirements } };
}

/** What is there is a token of one of them. */
function anyOrMissing(issuers: readonly Named[]): JwtRequirement {
  return {
    requiresAny: { requirements: [...issuers.map(({ name }) => ({ providerName: name })), { allowMissing: {} }] },
  };
}

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
