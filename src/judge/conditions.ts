import { isObject, type Json } from '../api/json.ts';
import {
  type Attribute,
  type Clause,
  type Condition,
  type NamedRule,
  type TextMatch,
  matchesText,
  textMatch,
} from '../model/authorization.ts';
import { covers, parseCidr } from '../model/cidr.ts';
import { otherTypesOf } from '../model/claim-value.ts';
import { principalReadings } from '../model/request-principal.ts';
import type { Connection, Header } from './request.ts';
import { type Truth, type Unknown, all, not, some } from './truth.ts';

/** What conditions compare, as Envoy sees it when it does. */
export interface Facts extends Connection {
  readonly remoteIp: string | Unknown;
  /** Undefined: a connection. */
  readonly http: HttpFacts | undefined;
}

export interface HttpFacts {
  readonly method: string;
  readonly host: string | Unknown;
  /** Normalized, with its query. */
  readonly path: string;
  readonly headers: readonly Header[];
  /** The proxy has added the peer's address to x-forwarded-for. */
  readonly addsAddress: boolean;
  /** Of the token that was verified last, or undefined if there is none. */
  readonly claims: Json | undefined;
}

/** Whether a rule matches. */
export function ruleMatches({ permissions, principals, isWide }: NamedRule, facts: Facts): Truth {
  const matches = (clause: Clause): Truth => all(clause, (condition) => conditionHolds(condition, isWide, facts));
  return all([permissions, principals], (alternatives) => some(alternatives, matches));
}

function conditionHolds({ attribute, values, notValues }: Condition, isWide: boolean, facts: Facts): Truth {
  const isOneOf = (few: readonly string[], wide: boolean): Truth =>
    some(few, (value) => has(attribute, value, wide, facts));
  return all([true, false], (isPositive) => {
    if (isPositive) return values.length === 0 || isOneOf(values, isWide);
    return notValues.length === 0 || not(isOneOf(notValues, !isWide));
  });
}

function has(attribute: Attribute, value: string, isWide: boolean, facts: Facts): Truth {
  const { http } = facts;
  switch (attribute.kind) {
    case 'port':
      return facts.port === Number(value);
    case 'destinationIp':
      return isIn(value, facts.destinationIp);
    case 'sourceIp':
      return isIn(value, facts.sourceIp);
    case 'remoteIp':
      return isIn(value, facts.remoteIp);
    case 'sni':
      return typeof facts.sni === 'string' ? isText(value, facts.sni) : facts.sni;
    case 'filterMetadata':
      // Of the filters that are sent, only these write text, and what it is nobody means to compare.
      return /\.(rbac|ext_authz)$/.test(attribute.filter) ? { unknown: `the metadata of ${attribute.filter}` } : false;
    case 'host':
      return http !== undefined && isHost(value, http.host);
    case 'method':
      return http !== undefined && isText(value, http.method);
    case 'path':
      return http !== undefined && isPath(value, withoutQuery(http.path));
    case 'header':
      return http !== undefined && hasHeader(attribute.name, value, http);
    case 'claim':
      return http !== undefined && hasClaim(attribute.path, value, isWide, http.claims);
    case 'requestPrincipal':
      return http !== undefined && isRequestPrincipal(value, attribute.issuers ?? [], isWide, http.claims);
    case 'principal':
    case 'serviceAccount':
    case 'namespace':
    case 'trustDomain':
      return typeof facts.peer === 'object' ? facts.peer : isOfPeer(attribute.kind, value, facts.peer);
  }
}

function isOfPeer(
  kind: 'principal' | 'serviceAccount' | 'namespace' | 'trustDomain',
  value: string,
  peer: string | undefined,
): boolean {
  switch (kind) {
    case 'principal':
      return peer !== undefined && isText(value, peer.slice('spiffe://'.length));
    case 'serviceAccount': {
      const { namespace, account } = partsOf(peer);
      return namespace !== undefined && value === `${namespace}/${account}`;
    }
    case 'namespace':
      // With a slash, it is more than the name.
      return value.includes('/')
        ? peer !== undefined && wildcard(`*/ns/${value}/*`, peer)
        : wildcard(value, partsOf(peer).namespace);
    case 'trustDomain':
      return wildcard(value, partsOf(peer).trustDomain);
  }
}

interface Identity {
  readonly trustDomain: string | undefined;
  readonly namespace: string | undefined;
  readonly account: string | undefined;
}

/** Source: the identities that the mesh's authority signs. */
function partsOf(peer: string | undefined): Identity {
  const [, trustDomain, namespace, account] = /^spiffe:\/\/([^/]+)\/ns\/([^/]+)\/sa\/([^/]+)$/.exec(peer ?? '') ?? [];
  return { trustDomain, namespace, account };
}

/** A star stands for any text, wherever it is. */
function wildcard(value: string, text: string | undefined): boolean {
  if (text === undefined) return false;
  const [first = '', ...others] = value.split('*');
  if (others.length === 0) return text === value;
  const last = others.pop()!;
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of others) {
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

function isText(value: string, text: string): boolean {
  return matchesText(textMatch(value), text);
}

function isHost(value: string, host: string | Unknown): Truth {
  if (value === '*') return true;
  return typeof host === 'string' ? isText(value.toLowerCase(), host.toLowerCase()) : host;
}

function isIn(range: string, address: string | Unknown): Truth {
  return typeof address === 'string' ? covers(parseCidr(range)!, address) : address;
}

function withoutQuery(path: string): string {
  return path.replace(/[?#].*$/s, '');
}

function isPath(value: string, path: string): boolean {
  if (!/\{\*\*?\}/.test(value)) return isText(value, path);
  return isTemplate(value.split('/'), path.split('/'));
}

/** `{*}` stands for one segment that is not empty, `{**}` for any number of them. */
function isTemplate([first, ...template]: readonly string[], [segment, ...path]: readonly string[]): boolean {
  if (first === undefined) return segment === undefined;
  if (segment === undefined) return false;
  if (first === '{**}') return [segment, ...path].some((_, i) => isTemplate(template, path.slice(i)));
  const isSame = first === '{*}' ? segment !== '' : segment === first;
  return isSame && isTemplate(template, path);
}

/** Set by the proxy itself, whatever a client sends. */
const written =
  /^(x-request-id|x-forwarded-proto|x-forwarded-client-cert|x-envoy-.*|:scheme|connection|transfer-encoding|te|upgrade)$/;

function hasHeader(header: string, value: string, { headers, method, path, host, addsAddress }: HttpFacts): Truth {
  const name = header.toLowerCase();
  if (written.test(name)) return { unknown: `the header ${name}, which proxies set` };
  if (addsAddress && name === 'x-forwarded-for')
    return { unknown: `the header ${name}, to which gateways add the address of the client` };
  if (name === ':authority' && value !== '*' && typeof host !== 'string') return host;
  const own: readonly (readonly [string, unknown])[] = [
    [':method', method],
    [':path', path],
    [':authority', host],
  ];
  return [...own, ...headers].some(
    ([each, text]) => each.toLowerCase() === name && (value === '*' || isText(value, String(text))),
  );
}

function hasClaim(path: readonly string[], value: string, isWide: boolean, claims: Json | undefined): boolean {
  let found: unknown = claims;
  for (const name of path) found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  if (isWide && value === '*') return found !== undefined;
  return (Array.isArray(found) ? found : [found]).some((one) => isValue(value, isWide, one));
}

function isValue(value: string, isWide: boolean, claim: unknown): boolean {
  if (typeof claim === 'string') return isText(value, claim);
  if (!isWide) return false;
  const { truths, numbers } = otherTypesOf(value);
  if (typeof claim === 'number') return numbers === 'all' || numbers === claim;
  return typeof claim === 'boolean' && truths.includes(claim);
}

function isRequestPrincipal(
  value: string,
  issuers: readonly string[],
  isWide: boolean,
  claims: Json | undefined,
): boolean {
  const has = (name: string, match: TextMatch | undefined): boolean =>
    match === undefined || (typeof claims?.[name] === 'string' && matchesText(match, claims[name]));
  return principalReadings(value, issuers, isWide).some(
    ({ issuer, subject }) => has('iss', issuer) && has('sub', subject),
  );
}
