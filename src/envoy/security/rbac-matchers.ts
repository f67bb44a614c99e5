import {
  type Clause,
  type Condition,
  type OperationAttribute,
  type NamedRule,
  type SourceAttribute,
  type TextMatch,
  isOperation,
  textMatch,
} from '../../model/authorization.ts';
import { parseCidr } from '../../model/cidr.ts';
import { otherTypesOf } from '../../model/claim-value.ts';
import { type PrincipalReading, principalReadings } from '../../model/request-principal.ts';
import type {
  CidrRange,
  HeaderMatcher,
  MetadataMatcher,
  Permission,
  Policy,
  Principal,
  StringMatcher,
  ValueMatcher,
} from '../gen/types.gen.ts';
import type { Traits } from '../../model/traits.ts';
import { quoted, regexMatcher } from '../regex.ts';

/** What decides how regular expressions are written. */
export type RbacTraits = Pick<Traits, 'agent'>;

/** The filter that verifies tokens, and writes their claims into metadata. */
export const jwtFilter = 'envoy.filters.http.jwt_authn';
/** The key under which it does. */
export const jwtPayload = 'payload';

/** A rule of an RBAC filter. Without alternatives, it never matches. */
export function rbacPolicy(
  { permissions, principals, isWide }: Pick<NamedRule, 'permissions' | 'principals' | 'isWide'>,
  to: RbacTraits,
): Policy {
  return {
    permissions:
      permissions.length === 0 ? [{ notRule: { any: true } }] : permissions.map((one) => permissionOfClause(one, to)),
    principals:
      principals.length === 0
        ? [{ notId: { any: true } }]
        : principals.map((one) => principalOfClause(one, isWide, to)),
  };
}

function permissionOfClause(clause: Clause, to: RbacTraits): Permission {
  const rules = clause.flatMap(({ attribute, values, notValues }) => {
    if (!isOperation(attribute)) return [];
    const oneOf = (some: readonly string[]) => anyPermission(some, attribute, to);
    return [
      ...(values.length === 0 ? [] : [oneOf(values)]),
      ...(notValues.length === 0 ? [] : [{ notRule: oneOf(notValues) }]),
    ];
  });
  return { andRules: { rules: rules.length === 0 ? [{ any: true }] : rules } };
}

function principalOfClause(clause: Clause, isWide: boolean, to: RbacTraits): Principal {
  const ids = clause.flatMap(({ attribute, values, notValues }) => {
    if (isOperation(attribute)) return [];
    return [
      ...(values.length === 0 ? [] : [anyPrincipal(values, attribute, isWide, to)]),
      // What is wide inside a negation makes the rule narrow.
      ...(notValues.length === 0 ? [] : [{ notId: anyPrincipal(notValues, attribute, !isWide, to) }]),
    ];
  });
  return { andIds: { ids: ids.length === 0 ? [{ any: true }] : ids } };
}

function anyPermission(values: Condition['values'], attribute: OperationAttribute, to: RbacTraits): Permission {
  if (attribute.kind === 'filterMetadata') {
    const matches = values.map((value) => listOrText(value, to));
    const value: ValueMatcher = matches.length === 1 ? matches[0]! : { orMatch: { valueMatchers: matches } };
    return { metadata: { filter: attribute.filter, path: [{ key: attribute.key }], value } };
  }
  return { orRules: { rules: values.map((value) => permission(value, attribute, to)) } };
}

function permission(
  value: string,
  attribute: Exclude<OperationAttribute, { kind: 'filterMetadata' }>,
  to: RbacTraits,
): Permission {
  switch (attribute.kind) {
    case 'host':
      return { header: headerMatch(':authority', value, to, true) };
    case 'method':
      return { header: headerMatch(':method', value, to) };
    case 'path':
      return /\{\*\*?\}/.test(value) ? pathTemplate(value, to) : { urlPath: { path: textMatcher(value, to) } };
    case 'port':
      return { destinationPort: Number(value) };
    case 'destinationIp':
      return { destinationIp: cidr(value) };
    case 'sni':
      return { requestedServerName: textMatcher(value, to) };
  }
}

/**
 * `{*}` is any segment, `{**}` any number of them. Not Envoy's uri_template, of which a segment has only the characters
 * of RFC 3986: what is denied by a template would be allowed with a `[` in a segment.
 */
function pathTemplate(value: string, to: RbacTraits): Permission {
  const path = quoted(value)
    .replaceAll('\\{\\*\\}', () => '[^/]+')
    .replaceAll('\\{\\*\\*\\}', () => '.*');
  return { urlPath: { path: regex(path, to) } };
}

function anyPrincipal(
  values: Condition['values'],
  attribute: SourceAttribute,
  isWide: boolean,
  to: RbacTraits,
): Principal {
  switch (attribute.kind) {
    case 'claim':
      return { metadata: claimMatch(attribute.path, values, isWide, to) };
    case 'requestPrincipal': {
      const readings = values.flatMap((value) => principalReadings(value, attribute.issuers ?? [], isWide));
      const ids = readings.map((reading) => requestPrincipal(reading, to));
      return ids.length === 1 ? ids[0]! : { orIds: { ids } };
    }
    default:
      return { orIds: { ids: values.map((value) => principal(value, attribute, to)) } };
  }
}

function principal(
  value: string,
  attribute: Exclude<SourceAttribute, { kind: 'claim' } | { kind: 'requestPrincipal' }>,
  to: RbacTraits,
): Principal {
  switch (attribute.kind) {
    case 'principal':
      return authenticated(principalName(value, to));
    case 'serviceAccount': {
      const [namespace = '', account = ''] = value.split('/').map(quoted);
      return authenticated(regex(`spiffe://.+/ns/${namespace}/(.+/|)sa/${account}(/.+)?`, to));
    }
    case 'namespace':
      return authenticated(regex(`.*/ns/${namespaceRegex(value)}/.*`, to));
    case 'trustDomain':
      return authenticated(trustDomainName(value, to));
    case 'sourceIp':
      return { directRemoteIp: cidr(value) };
    case 'remoteIp':
      return { remoteIp: cidr(value) };
    case 'header':
      return { header: headerMatch(attribute.name, value, to) };
  }
}

/** As Istio has it, except for `*a` and `*sa`: there, the `/sa/` behind every namespace would match. */
function namespaceRegex(value: string): string {
  return quoted(value).replaceAll('\\*', /\*s?a$/.test(value) ? '[^/]*' : '.*');
}

const authenticated = (principalName: StringMatcher): Principal => ({ authenticated: { principalName } });

const regex = (text: string, to: RbacTraits): StringMatcher => ({ safeRegex: regexMatcher(text, to) });

/** The URI in the peer's certificate. */
function principalName(value: string, to: RbacTraits): StringMatcher {
  const scheme = 'spiffe://';
  const match = textMatch(value);
  switch (match.kind) {
    case 'present':
      return regex('.+', to);
    // Not a suffix: that would match the end of another scheme's URI, too.
    case 'suffix':
      return regex(`${scheme}.*${quoted(match.text)}`, to);
    case 'prefix':
      return { prefix: scheme + match.text };
    case 'exact':
      return { exact: scheme + match.text };
  }
}

function trustDomainName(value: string, to: RbacTraits): StringMatcher {
  if (value === '*') return { prefix: 'spiffe://' };
  if (!value.includes('*')) return { prefix: `spiffe://${value}/` };
  return regex(`spiffe://${quoted(value).replaceAll('\\*', '[^/]*')}/.*`, to);
}

export function textMatcher(value: string, to: RbacTraits): StringMatcher {
  return spelledMatch(textMatch(value), to);
}

function spelledMatch(match: TextMatch, to: RbacTraits): StringMatcher {
  switch (match.kind) {
    case 'present':
      return regex('.+', to);
    case 'suffix':
      return { suffix: match.text };
    case 'prefix':
      return { prefix: match.text };
    case 'exact':
      return { exact: match.text };
  }
}

function headerMatch(name: string, value: string, to: RbacTraits, ignoreCase = false): HeaderMatcher {
  if (value === '*') return { name, presentMatch: true };
  return { name, stringMatch: { ...textMatcher(value, to), ...(ignoreCase ? { ignoreCase: true } : {}) } };
}

function cidr(value: string): CidrRange {
  const { address, length } = parseCidr(value)!;
  return { addressPrefix: address, prefixLen: { value: length } };
}

/** `[value]` stands for a list that contains the value. */
function listOrText(value: string, to: RbacTraits): ValueMatcher {
  if (!value.startsWith('[') || !value.endsWith(']')) return { stringMatch: textMatcher(value, to) };
  return { listMatch: { oneOf: { stringMatch: textMatcher(value.slice(1, -1), to) } } };
}

/**
 * A claim is a text, or a list of which one element must match.
 *
 * @param isWide other types count, too.
 */
function claimMatch(
  path: readonly string[],
  values: readonly string[],
  isWide: boolean,
  to: RbacTraits,
): MetadataMatcher {
  const matches = isWide && values.includes('*') ? [{ presentMatch: true }] : values.flatMap(valueMatches);
  const value: ValueMatcher = matches.length === 1 ? matches[0]! : { orMatch: { valueMatchers: matches } };
  return {
    filter: jwtFilter,
    path: [jwtPayload, ...path].map((key) => ({ key })),
    value: { orMatch: { valueMatchers: [{ listMatch: { oneOf: value } }, value] } },
  };

  function valueMatches(value: string): ValueMatcher[] {
    const text = { stringMatch: textMatcher(value, to) };
    return isWide ? [text, ...otherMatches(value)] : [text];
  }
}

/** Except the largest double: Envoy's ranges do not include their end. */
const allNumbers = { range: { start: -Number.MAX_VALUE, end: Number.MAX_VALUE } };

function otherMatches(value: string): ValueMatcher[] {
  const { truths, numbers } = otherTypesOf(value);
  return [
    ...truths.map((boolMatch) => ({ boolMatch })),
    ...(numbers === undefined ? [] : [{ doubleMatch: numbers === 'all' ? allNumbers : { exact: numbers } }]),
  ];
}

function requestPrincipal({ issuer, subject }: PrincipalReading, to: RbacTraits): Principal {
  const claim = (key: string, match: TextMatch): Principal => ({
    metadata: {
      filter: jwtFilter,
      path: [{ key: jwtPayload }, { key }],
      value: { stringMatch: spelledMatch(match, to) },
    },
  });
  return { andIds: { ids: [claim('iss', issuer), ...(subject === undefined ? [] : [claim('sub', subject)])] } };
}
