import { type Json, isObject } from '../api/json.ts';
import { type JwtIssuer, type JwtRule, writtenHeaders } from '../model/request-authentication.ts';
import { tokenChecks } from '../settle/token-checks.ts';
import { isSameName, valuesOf } from './headers.ts';
import type { Header, HttpRequest } from './request.ts';
import { type TokenCarrier, tokensFor } from './token-places.ts';
import { type Failure, type VerifiedToken, verifyToken } from './verify-token.ts';

export interface Authentication {
  /** Why the request is refused, or undefined if it is not. */
  readonly refusal?: { readonly status: 401 | 403; readonly by: JwtIssuer; readonly reason: string };
  /** Of the token that was verified last, or undefined if there is none. */
  readonly claims: Json | undefined;
  /** As they are afterwards: without tokens, with what is made of them. */
  readonly headers: readonly Header[];
  readonly path: string;
}

/** What Envoy's jwt_authn does to a request. @param now in seconds. */
export function authenticate(issuers: readonly JwtIssuer[], request: HttpRequest, now: number): Authentication {
  const written = new Set(issuers.flatMap(({ rule }) => writtenHeaders(rule).map(asWritten)));
  const headers = request.headers.filter(([name]) => !written.has(asWritten(name)));
  const state: State = { headers, path: request.path, claims: undefined };
  if (issuers.length === 0 || isPreflight({ ...request, headers })) return { ...state };
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
  const isChecked = tokenChecks(issuers).every(({ issuers: looking }) => {
    if (looking.every(({ rule }) => tokensFor(rule, state).length === 0)) return true;
    return looking.some((issuer) => {
      const outcome = tryIssuer(issuer, { ...state }, now);
      outcomes.set(issuer, outcome);
      return outcome === 'verified';
    });
  });
  const isEnough = (): boolean =>
    required.length === 0
      ? issuers.some(isVerified) || issuers.every(passes)
      : issuers.every(passes) || (required.length < issuers.length && required.every(isVerified));
  return isChecked && isEnough() ? { ...state } : { ...state, refusal: refusalOf(issuers, outcomes) };
}

/** Names that CGI and WSGI take for the same are the same. */
const asWritten = (name: string): string => name.toLowerCase().replaceAll('_', '-');

interface State extends TokenCarrier {
  claims: Json | undefined;
}

type Outcome = 'verified' | 'missing' | Failure;

/** The issuer that the token is from says more than the others. */
function refusalOf(
  issuers: readonly JwtIssuer[],
  outcomes: ReadonlyMap<JwtIssuer, Outcome>,
): NonNullable<Authentication['refusal']> {
  const failures = [...outcomes].flatMap(([by, outcome]) => (typeof outcome === 'object' ? [{ by, ...outcome }] : []));
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
  sanitize(rule, state);
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

/** What an issuer before has written is removed, too. */
function sanitize(rule: JwtRule, state: State): void {
  const written = writtenHeaders(rule);
  state.headers = state.headers.filter(([name]) => !written.some((other) => isSameName(name, other)));
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
