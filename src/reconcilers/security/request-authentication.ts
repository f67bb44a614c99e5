import type { RequestAuthentication } from '../../api/gen/request-authentication.gen.ts';
import type { Problem } from '../../api/problem.ts';
import { quote } from '../../api/quote.ts';
import type { JwtKeys, JwtRule, RequestAuthenticationModel } from '../../model/request-authentication.ts';
import type { Field } from '../field.ts';
import { readKeySet } from './key-set.ts';
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
  const { base, spec, findings, isAstray } = readPolicy(object, source, readTarget);
  const fields = spec.get('jwtRules').objects();
  if (fields.length > mostRules)
    spec.get('jwtRules').invalid(`has ${fields.length} rules; only the first ${mostRules} are used.`);
  // Those that keep requests out come first: leaving them away would let these in.
  const sorted =
    fields.length > mostRules ? [...fields.filter(requires), ...fields.filter((f) => !requires(f))] : fields;
  const rules = sorted.slice(0, mostRules).map(readRule);
  // Elsewhere, another policy may accept what is not from this issuer.
  const closed = rules.map((rule): JwtRule => ({ ...rule, keys: { kind: 'none' } }));
  return { model: { ...base, rules: isAstray ? closed : rules }, problems: findings.problems };
}

function requires(rule: Field): boolean {
  const presence = rule.get('presence');
  return presence.isSet && presence.value !== 'OPTIONAL' && presence.value !== 'PRESENCE_UNSPECIFIED';
}

function readRule(rule: Field): JwtRule {
  const before = rule.findings.invalidValues;
  const audiences = texts(rule.get('audiences'));
  // Without audiences, tokens for anybody would be accepted.
  const isForNobody = audiences.length === 0 && rule.findings.invalidValues > before;
  const keys = readKeys(rule);
  return {
    field: rule.path,
    issuer: rule.get('issuer').string(),
    audiences,
    keys: isForNobody ? { kind: 'none' } : keys,
    fromHeaders: rule
      .get('fromHeaders')
      .objects()
      .filter((header) => isHeaderName(header.get('name')) && isHeaderValue(header.get('prefix')))
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
  const before = presence.findings.invalidValues;
  const found = presence.oneOf('OPTIONAL', 'REQUIRED', 'PRESENCE_UNSPECIFIED');
  return found === 'REQUIRED' || presence.findings.invalidValues > before;
}

function readKeys(rule: Field): JwtKeys {
  const [issuer, jwks] = ['issuer', 'jwks'].map((name) => rule.get(name));
  const uri = rule.get(rule.get('jwksUri').isSet ? 'jwksUri' : 'jwks_uri');
  const timeout = readTimeout(rule.get('timeout'));
  if (jwks!.string() !== '') {
    if (uri.isSet) rule.invalid('may have only one of jwksUri and jwks; jwks is used.');
    const found = readKeySet(jwks!.string(), (work) => rule.findings.spend(work));
    if ('problem' in found) {
      jwks!.invalid(`${found.problem}; no token of this issuer is accepted.`);
      return { kind: 'none' };
    }
    if (found.isPrivate)
      jwks!.findings.report(
        jwks!.path,
        'TooBroad',
        'contains a private key: whoever can read this object can sign tokens. Leave only the public part.',
      );
    if (issuer!.string() !== '') return { kind: 'inline', jwks: found.text };
    issuer!.invalid('is missing; without it, no token is accepted.');
    return { kind: 'none' };
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
  if (isOutOfReach(claim.string()))
    claim.findings.report(
      claim.path,
      'Ineffective',
      `is never found: in ${quote(claim.string())}, dots lead to claims within claims, so that a claim with a dot in its own name cannot be copied, and requests do not get ${quote(header.string())}. Have the issuer add a claim without dots, or use outputPayloadToHeader.`,
    );
  return claim.string() === '' ? [] : [{ header: header.string(), claim: claim.string() }];
}

/**
 * Envoy takes every dot for a step (StructUtils of its jwt_verify_lib), and no claim is called `https://example`: names
 * that collide with nobody's are URLs, or begin with a domain.
 */
function isOutOfReach(claim: string): boolean {
  return (
    claim.includes('.') && (/[/:]/.test(claim) || claim.split('.').includes('') || /^kubernetes\.io\b/.test(claim))
  );
}

function isHeaderName(field: Field): boolean {
  // What Envoy accepts in the configuration of a header.
  const isName = /^[-!#$%&'*+.^_`|~0-9A-Za-z]+$/.test(field.string());
  if (!isName) field.invalid(`${quote(field.string())} is not a header name.`);
  return isName;
}

function isHeaderValue(field: Field): boolean {
  const isValue = !/[\0\r\n]/.test(field.string());
  if (!isValue) field.invalid('must not have line breaks.');
  return isValue;
}

/** Elements that are not empty; Envoy rejects the others. */
function texts(field: Field): string[] {
  return field.list().flatMap((element) => {
    const text = element.string();
    if (text === '') element.invalid('must be a text that is not empty.');
    return text === '' ? [] : [text];
  });
}
