import { type JsonWebKey, constants, createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto';
import { type Json, isObject } from '../../api/json.ts';
import type { JwtIssuer, JwtRule } from '../../model/request-authentication.ts';
import type { Header, HttpRequest } from './request.ts';

export interface Authentication {
  /** Why the request is refused; undefined: it is not. */
  readonly refusal?: { readonly status: 401 | 403; readonly by: JwtIssuer; readonly reason: string };
  /** Of the token that was verified last; undefined: none. */
  readonly claims: Json | undefined;
  /** As they are afterwards: without tokens, with what is made of them. */
  readonly headers: readonly Header[];
  readonly path: string;
}

/** Seconds by which clocks may differ; Envoy's default. */
const CLOCK_SKEW = 60;

/** What Envoy's jwt_authn does to a request. @param now in seconds. */
export function authenticate(issuers: readonly JwtIssuer[], request: HttpRequest, now: number): Authentication {
  const state: State = { headers: [...request.headers], path: request.path, claims: undefined };
  if (issuers.length === 0 || isPreflight(request)) return { ...state };
  const outcomes = new Map<JwtIssuer, Outcome>();
  const tried = (issuer: JwtIssuer): Outcome => {
    const outcome = tryIssuer(issuer, state, now);
    outcomes.set(issuer, outcome);
    return outcome;
  };
  const isOptional = ({ rule }: JwtIssuer): boolean => !rule.required;
  const passes = (issuer: JwtIssuer): boolean => {
    const outcome = tried(issuer);
    return outcome === 'verified' || (outcome === 'missing' && isOptional(issuer));
  };
  const required = issuers.filter((issuer) => !isOptional(issuer));
  const isVerified = (issuer: JwtIssuer): boolean => tried(issuer) === 'verified';
  const isAccepted =
    required.length === 0
      ? issuers.some(isVerified) || issuers.every(passes)
      : issuers.every(passes) || (required.length < issuers.length && required.every(isVerified));
  return isAccepted ? { ...state } : { ...state, refusal: refusalOf(issuers, outcomes) };
}

interface State {
  headers: Header[];
  path: string;
  claims: Json | undefined;
}

type Outcome = 'verified' | 'missing' | Failure;

interface Failure {
  readonly problem: string;
  readonly isOfAudience?: true;
  /** The token is not for this issuer at all. */
  readonly isForeign?: true;
}

/** The issuer that the token is from says more than the others. */
function refusalOf(
  issuers: readonly JwtIssuer[],
  outcomes: ReadonlyMap<JwtIssuer, Outcome>,
): NonNullable<Authentication['refusal']> {
  const failures = issuers.flatMap((by) => {
    const outcome = outcomes.get(by);
    return typeof outcome === 'object' ? [{ by, ...outcome }] : [];
  });
  const failure = failures.find(({ isForeign }) => !isForeign) ?? failures[0];
  if (failure === undefined) {
    const by = issuers.find(({ rule }) => rule.required) ?? issuers[0]!;
    return { status: 401, by, reason: 'the request has no token' };
  }
  return { status: failure.isOfAudience ? 403 : 401, by: failure.by, reason: failure.problem };
}

function isPreflight({ method, headers }: HttpRequest): boolean {
  const has = (name: string): boolean => valuesOf(headers, name).some((value) => value !== '');
  return method === 'OPTIONS' && has('origin') && has('access-control-request-method');
}

/** All tokens where the issuer's are must be valid. */
function tryIssuer(issuer: JwtIssuer, state: State, now: number): Outcome {
  const { rule } = issuer;
  const sanitized = [rule.outputPayloadToHeader, ...rule.outputClaimToHeaders.map(({ header }) => header)];
  state.headers = state.headers.filter(([name]) => !sanitized.some((other) => isSameName(name, other)));
  const tokens = tokensFor(rule, state);
  if (tokens.length === 0) return 'missing';
  // Envoy takes the last one first.
  for (const { token, remove } of tokens.toReversed()) {
    const verified = verifyToken(token, issuer, now);
    if ('problem' in verified) return verified;
    state.claims = normalized(verified.claims, rule);
    addHeaders(rule, verified, state);
    if (!rule.forwardOriginalToken) remove(state);
  }
  return 'verified';
}

interface FoundToken {
  readonly token: string;
  readonly remove: (state: State) => void;
}

function tokensFor(rule: JwtRule, { headers, path }: State): readonly FoundToken[] {
  const isDefault = [rule.fromHeaders, rule.fromParams, rule.fromCookies].every((places) => places.length === 0);
  const fromHeaders = isDefault ? [{ name: 'authorization', prefix: 'Bearer ' }] : rule.fromHeaders;
  const fromParams = isDefault ? ['access_token'] : rule.fromParams;
  return [
    ...distinct(fromHeaders, ({ name, prefix }) => name.toLowerCase() + prefix).flatMap(({ name, prefix }) =>
      valuesOf(headers, name).flatMap((value): FoundToken[] => {
        const at = value.indexOf(prefix);
        if (at < 0) return [];
        const token = prefix === '' ? value : afterPrefix(value, at + prefix.length);
        const remove = (state: State): void => {
          state.headers = state.headers.filter(([each]) => !isSameName(each, name));
        };
        return [{ token, remove }];
      }),
    ),
    ...distinct(fromParams, (name) => name).flatMap((name): FoundToken[] => {
      const [token] = paramsOf(path).flatMap(([key, value]) => (key === name ? [value] : []));
      if (token === undefined) return [];
      const remove = (state: State): void => {
        state.path = withoutParam(state.path, name);
      };
      return [{ token, remove }];
    }),
    ...distinct(rule.fromCookies, (name) => name).flatMap((name): FoundToken[] => {
      const token = cookie(headers, name);
      return token === undefined ? [] : [{ token, remove: () => undefined }];
    }),
  ];
}

/** In the order in which Envoy looks: that of their names. */
function distinct<T>(places: readonly T[], keyOf: (place: T) => string): readonly T[] {
  const byKey = new Map(places.map((place) => [keyOf(place), place]));
  return [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, place]) => place);
}

/** What cannot be in a token is skipped; if there is nothing else, all of the value is taken for it. */
function afterPrefix(value: string, after: number): string {
  const start = value.slice(after).search(/[A-Za-z0-9\-_.]/);
  return start < 0 ? value : value.slice(after + start);
}

function paramsOf(path: string): readonly (readonly [string, string])[] {
  const query = /\?([^#]*)/.exec(path)?.[1] ?? '';
  return query.split('&').map((pair) => {
    const [name = '', ...value] = pair.split('=');
    return [percentDecoded(name), percentDecoded(value.join('='))];
  });
}

function withoutParam(path: string, name: string): string {
  const [before = '', query = ''] = path.split(/\?(.*)/s);
  const kept = query.split('&').filter((pair) => percentDecoded(pair.split('=')[0]!) !== name);
  return kept.length === 0 ? before : `${before}?${kept.join('&')}`;
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function cookie(headers: readonly Header[], name: string): string | undefined {
  for (const pair of valuesOf(headers, 'cookie').flatMap((value) => value.split(';'))) {
    const [key = '', ...value] = pair.split('=');
    if (key.trim() === name)
      return value
        .join('=')
        .trim()
        .replace(/^"(.*)"$/, '$1');
  }
  return undefined;
}

function valuesOf(headers: readonly Header[], name: string): readonly string[] {
  return headers.flatMap(([each, value]) => (isSameName(each, name) ? [value] : []));
}

const isSameName = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

interface VerifiedToken {
  readonly claims: Json;
  readonly payload: string;
}

/** Source: Envoy's authenticator.cc, and jwt.cc and verify.cc of its jwt_verify_lib. */
function verifyToken(token: string, { rule, jwks }: JwtIssuer, now: number): VerifiedToken | Failure {
  const parts = token.split('.');
  const [header, claims] = parts.slice(0, 2).map(jsonOf);
  const [, payload = '', signature = ''] = parts;
  if (parts.length !== 3 || !isBase64Url(signature) || header === undefined || claims === undefined)
    return { problem: 'the token is not a JWT' };
  const problem = malformed(header, claims);
  if (problem !== undefined) return { problem };
  const { iss = '', aud = [], exp, nbf } = claims as Claims;
  if (iss !== rule.issuer)
    return {
      problem: `the token is from the issuer ${JSON.stringify(iss)}, which is not this rule's`,
      isForeign: true,
    };
  if (nbf !== undefined && nbf > now + CLOCK_SKEW) return { problem: 'the token is not valid yet' };
  if (exp !== undefined && now > exp + CLOCK_SKEW) return { problem: 'the token has expired' };
  const audiences = rule.audiences.map(plainAudience);
  if (audiences.length > 0 && ![aud].flat().some((one) => audiences.includes(plainAudience(one))))
    return { problem: 'the token is not for the audiences of the rule', isOfAudience: true };
  if (jwks === undefined) return { problem: 'there are no keys for its issuer, so no token is accepted' };
  if (!isSigned(parts.slice(0, 2).join('.'), Buffer.from(signature, 'base64url'), header, jwks))
    return { problem: "the token's signature fits none of the issuer's keys" };
  return { claims, payload };
}

interface Claims {
  readonly iss?: string;
  readonly aud?: string | readonly string[];
  readonly exp?: number;
  readonly nbf?: number;
}

const ALGORITHMS = /^(ES256|ES384|ES512|HS256|HS384|HS512|RS256|RS384|RS512|PS256|PS384|PS512|EdDSA)$/;

function malformed(header: Json, claims: Json): string | undefined {
  const { alg, kid } = header;
  if (typeof alg !== 'string' || !ALGORITHMS.test(alg)) return 'the algorithm of the token is not supported';
  if (kid !== undefined && typeof kid !== 'string') return 'the "kid" of the token is not a text';
  const isText = (value: unknown): boolean => value === undefined || typeof value === 'string';
  const text = ['iss', 'sub', 'jti'].find((name) => !isText(claims[name]));
  if (text !== undefined) return `the claim "${text}" is not a text`;
  const isTime = (value: unknown): boolean => value === undefined || (Number.isInteger(value) && Number(value) >= 0);
  const time = ['iat', 'nbf', 'exp'].find((name) => !isTime(claims[name]));
  if (time !== undefined) return `the claim "${time}" is not a time`;
  const audiences: unknown = claims['aud'];
  if (Array.isArray(audiences) ? !audiences.every((one) => typeof one === 'string') : !isText(audiences))
    return 'the claim "aud" is neither a text nor a list of texts';
  return undefined;
}

/** The issuer that a token names; undefined if it is not a JWT. */
export function claimedIssuer(token: string): string | undefined {
  const issuer = jsonOf(token.split('.')[1] ?? '')?.['iss'];
  return typeof issuer === 'string' ? issuer : undefined;
}

function isBase64Url(text: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(text) && text.length % 4 !== 1;
}

function jsonOf(part: string): Json | undefined {
  if (!isBase64Url(part)) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString());
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** URLs are compared without scheme and last slash. */
function plainAudience(audience: string): string {
  return audience.replace(/^https?:\/\//, '').replace(/\/$/, '');
}

interface Key extends JsonWebKey {
  readonly kid?: string;
  readonly alg?: string;
}

function isSigned(signed: string, signature: Buffer, { alg, kid = '' }: Json, jwks: string): boolean {
  const { keys } = JSON.parse(jwks) as { readonly keys: readonly Key[] };
  return keys.some((key) => {
    if (kid !== '' && (key.kid ?? '') !== '' && key.kid !== kid) return false;
    if ((key.alg ?? '') !== '' && key.alg !== alg) return false;
    try {
      return isSignedBy(key, String(alg), Buffer.from(signed), signature);
    } catch {
      return false;
    }
  });
}

/** The kind of the key decides what is verified; of a token's algorithm, only what is meant for that kind counts. */
function isSignedBy(key: Key, alg: string, signed: Buffer, signature: Buffer): boolean {
  const family = { RSA: /^[RP]S/, EC: /^ES/, oct: /^HS/ }[key.kty ?? ''];
  const hash = family?.test(alg) === true ? `sha${alg.slice(2)}` : 'sha256';
  if (key.kty === 'oct') {
    const mac = createHmac(hash, Buffer.from(key.k ?? '', 'base64url'))
      .update(signed)
      .digest();
    return mac.length === signature.length && timingSafeEqual(mac, signature);
  }
  const publicKey = createPublicKey({ format: 'jwk', key });
  if (key.kty === 'OKP') return verify(null, signed, publicKey, signature);
  if (key.kty === 'EC') return verify(hash, signed, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature);
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  return verify(hash, signed, { key: publicKey, ...(alg.startsWith('PS') && pss) }, signature);
}

/** Claims that are lists in one text become lists. */
function normalized(claims: Json, { spaceDelimitedClaims }: JwtRule): Json {
  const split = new Set(['permission', 'scope', ...spaceDelimitedClaims]);
  return Object.fromEntries(
    Object.entries(claims).map(([name, value]) => [
      name,
      split.has(name) && typeof value === 'string' ? value.split(' ').filter((part) => part !== '') : value,
    ]),
  );
}

function addHeaders(rule: JwtRule, { claims, payload }: VerifiedToken, state: State): void {
  if (rule.outputPayloadToHeader !== '') state.headers.push([rule.outputPayloadToHeader, payload]);
  for (const { header, claim } of rule.outputClaimToHeaders) {
    let value: unknown = claims;
    for (const name of claim.split('.')) value = isObject(value) ? value[name] : undefined;
    if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number')
      if (value !== '') state.headers.push([header, String(value)]);
  }
}
