import type { JwtIssuer, JwtRule, TokenCheck } from '../model/request-authentication.ts';

/** With more of them, each with its keys, a listener would be too large. */
export const mostChecked = 200;

/**
 * What Envoy has to check besides whether one issuer accepts its tokens: what is found where another issuer looks must
 * be a token of one that looks there, or a client with one valid token could add forged ones. Nothing, if all look in
 * the same places.
 */
export function tokenChecks(issuers: readonly JwtIssuer[]): readonly TokenCheck[] {
  const byPlace = new Map<string, JwtIssuer[]>();
  for (const issuer of issuers)
    for (const place of new Set(placesOf(issuer.rule))) {
      const known = byPlace.get(place);
      if (known === undefined) byPlace.set(place, [issuer]);
      else known.push(issuer);
    }
  const numbers = new Map(issuers.map((issuer, i) => [issuer, i]));
  const groups = new Map<string, { readonly issuers: readonly JwtIssuer[]; readonly places: Set<string> }>();
  for (const [place, looking] of byPlace) {
    const key = looking.map((issuer) => numbers.get(issuer)).join();
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { issuers: looking, places: new Set([place]) });
    else known.places.add(place);
  }
  if (groups.size < 2) return [];
  return [...groups.values()].map((group) => ({
    issuers: group.issuers.map((issuer) => ({ ...issuer, rule: onlyIn(group.places, issuer.rule) })),
  }));
}

const bearer = { name: 'authorization', prefix: 'Bearer ' };

/** Where the rule looks for tokens. Without any place of its own: Envoy's. */
export function tokenPlaces(rule: JwtRule): Pick<JwtRule, 'fromHeaders' | 'fromParams' | 'fromCookies'> {
  const { fromHeaders, fromParams, fromCookies } = rule;
  const isDefault = fromHeaders.length + fromParams.length + fromCookies.length === 0;
  return isDefault
    ? { fromHeaders: [bearer], fromParams: ['access_token'], fromCookies: [] }
    : { fromHeaders, fromParams, fromCookies };
}

/** A header is one place, whatever precedes the token in it: what is a token for one issuer is not for another. */
const headerPlace = ({ name }: { readonly name: string }): string => `header ${name.toLowerCase()}`;
const paramPlace = (name: string): string => `param ${name}`;
const cookiePlace = (name: string): string => `cookie ${name}`;

function placesOf(rule: JwtRule): readonly string[] {
  const { fromHeaders, fromParams, fromCookies } = tokenPlaces(rule);
  return [...fromHeaders.map(headerPlace), ...fromParams.map(paramPlace), ...fromCookies.map(cookiePlace)];
}

function onlyIn(places: ReadonlySet<string>, rule: JwtRule): JwtRule {
  const { fromHeaders, fromParams, fromCookies } = tokenPlaces(rule);
  return {
    ...rule,
    fromHeaders: fromHeaders.filter((header) => places.has(headerPlace(header))),
    fromParams: fromParams.filter((name) => places.has(paramPlace(name))),
    fromCookies: fromCookies.filter((name) => places.has(cookiePlace(name))),
    forwardOriginalToken: true,
    outputPayloadToHeader: '',
    outputClaimToHeaders: [],
  };
}
