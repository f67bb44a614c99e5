import type { RequestAuthentication } from '../../api/gen/request-authentication.gen.ts';
import type { Problem } from '../../api/problem.ts';
import { quote } from '../../api/quote.ts';
import type { JwtKeys, JwtRule, RequestAuthenticationModel } from '../../model/request-authentication.ts';
import type { Field } from '../field.ts';
import { keySetProblem } from './key-set.ts';
import { readPolicy, readTarget } from './policy-object.ts';

export interface ReconciledRequestAuthentication {
  readonly model: RequestAuthenticationModel;
  readonly problems: readonly Problem[];
}

/** Milliseconds, as in Istio. */
const FETCH_TIMEOUT = 5_000;
const LONGEST_FETCH = 60_000;

/** Each rule is a provider in every connection manager of the workload. */
const mostRules = 100;

/** An issuer with errors stays: its tokens are refused, rather than taken for no tokens. */
export function reconcileRequestAuthentication(
  object: RequestAuthentication,
  source: string,
): ReconciledRequestAuthentication {
  const { base, spec, findings } = readPolicy(object, source, readTarget);
  const fields = spec.get('jwtRules').objects();
  if (fields.length > mostRules)
    spec.get('jwtRules').invalid(`has ${fields.length} rules; only the first ${mostRules} are used.`);
  const rules = fields.slice(0, mostRules).map(readRule);
  return { model: { ...base, rules }, problems: findings.problems };
}

function readRule(rule: Field): JwtRule {
  return {
    issuer: rule.get('issuer').string(),
    audiences: texts(rule.get('audiences')),
    keys: readKeys(rule),
    fromHeaders: rule
      .get('fromHeaders')
      .objects()
      .filter((header) => isHeaderName(header.get('name')))
      .map((header) => ({ name: header.get('name').string(), prefix: header.get('prefix').string() })),
    fromParams: texts(rule.get('fromParams')),
    fromCookies: texts(rule.get('fromCookies')),
    outputPayloadToHeader:
      rule.get('outputPayloadToHeader').isSet && isHeaderName(rule.get('outputPayloadToHeader'))
        ? rule.get('outputPayloadToHeader').string()
        : '',
    forwardOriginalToken: rule.get('forwardOriginalToken').boolean() ?? false,
    outputClaimToHeaders: rule.get('outputClaimToHeaders').objects().flatMap(readClaimHeader),
    spaceDelimitedClaims: texts(rule.get('spaceDelimitedClaims')),
    required: isRequired(rule.get('presence')),
  };
}

/** A value that is not known requires a token, too. */
function isRequired(presence: Field): boolean {
  if (!presence.isSet) return false;
  const before = presence.findings.problems.length;
  const found = presence.oneOf('OPTIONAL', 'REQUIRED', 'PRESENCE_UNSPECIFIED');
  return found === 'REQUIRED' || presence.findings.problems.length > before;
}

function readKeys(rule: Field): JwtKeys {
  const [issuer, jwks] = ['issuer', 'jwks'].map((name) => rule.get(name));
  const uri = rule.get(rule.get('jwksUri').isSet ? 'jwksUri' : 'jwks_uri');
  const timeout = readTimeout(rule.get('timeout'));
  if (jwks!.string() !== '') {
    if (uri.isSet) rule.invalid('may have only one of jwksUri and jwks; jwks is used.');
    const problem = keySetProblem(jwks!.string());
    if (problem === undefined) return { kind: 'inline', jwks: jwks!.string() };
    jwks!.findings.report(jwks!.path, problem.isFatal ? 'Invalid' : 'TooBroad', problem.message);
    return problem.isFatal ? { kind: 'none' } : { kind: 'inline', jwks: jwks!.string() };
  }
  if (uri.string() !== '') {
    if (isUrl(uri.string()))
      return { kind: 'fetched', source: { issuer: issuer!.string(), uri: uri.string(), timeout } };
    uri.invalid(`${quote(uri.string())} is not an http or https URL; no token of this issuer is accepted.`);
    return { kind: 'none' };
  }
  if (issuer!.string() === '') {
    rule.invalid('needs an issuer, and jwks or jwksUri for its keys.');
    return { kind: 'none' };
  }
  if (isUrl(issuer!.string())) return { kind: 'fetched', source: { issuer: issuer!.string(), uri: '', timeout } };
  rule.findings.report(
    rule.path,
    'RefNotFound',
    `has no keys: set jwks or jwksUri, since ${quote(issuer!.string())} is not a URL where they could be discovered. No token of this issuer is accepted.`,
  );
  return { kind: 'none' };
}

function readTimeout(field: Field): number {
  const ms = field.duration();
  if (ms === undefined) return FETCH_TIMEOUT;
  if (ms >= 1) return Math.min(ms, LONGEST_FETCH);
  field.invalid('must be at least 1ms.');
  return FETCH_TIMEOUT;
}

function isUrl(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text);
}

function readClaimHeader(field: Field): JwtRule['outputClaimToHeaders'] {
  const [header, claim] = [field.get('header'), field.get('claim')];
  if (claim.string() === '') claim.invalid('must not be empty.');
  if (!/^[-_A-Za-z0-9]+$/.test(header.string())) {
    header.invalid(`${quote(header.string())} is not a header name of letters, digits, hyphens and underscores.`);
    return [];
  }
  return claim.string() === '' ? [] : [{ header: header.string(), claim: claim.string() }];
}

function isHeaderName(field: Field): boolean {
  // What Envoy accepts in the configuration of a header.
  const isName = /^[-!#$%&'*+.^_`|~0-9A-Za-z]+$/.test(field.string());
  if (!isName) field.invalid(`${quote(field.string())} is not a header name.`);
  return isName;
}

/** Elements that are not empty; Envoy rejects the others. */
function texts(field: Field): string[] {
  return field.list().flatMap((element) => {
    const text = element.string();
    if (text === '') element.invalid('must be a text that is not empty.');
    return text === '' ? [] : [text];
  });
}
