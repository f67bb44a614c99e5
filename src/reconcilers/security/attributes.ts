import { quote } from '../../api/quote.ts';
import type { Attribute } from '../../model/authorization.ts';

/** What the values of a condition are. */
export type ValueKind = 'text' | 'principal' | 'path' | 'port' | 'addresses' | 'serviceAccount' | 'trustDomain';

type Found = { readonly attribute: Attribute; readonly values: ValueKind } | { readonly problem: string };

const plain: Readonly<Record<string, { readonly attribute: Attribute; readonly values: ValueKind }>> = {
  'source.ip': { attribute: { kind: 'sourceIp' }, values: 'addresses' },
  'remote.ip': { attribute: { kind: 'remoteIp' }, values: 'addresses' },
  'source.namespace': { attribute: { kind: 'namespace' }, values: 'text' },
  'source.principal': { attribute: { kind: 'principal' }, values: 'principal' },
  'source.serviceAccount': { attribute: { kind: 'serviceAccount' }, values: 'serviceAccount' },
  'source.trustDomain': { attribute: { kind: 'trustDomain' }, values: 'trustDomain' },
  'request.auth.principal': { attribute: { kind: 'requestPrincipal' }, values: 'text' },
  'request.auth.audiences': { attribute: { kind: 'claim', path: ['aud'] }, values: 'text' },
  'request.auth.presenter': { attribute: { kind: 'claim', path: ['azp'] }, values: 'text' },
  'destination.ip': { attribute: { kind: 'destinationIp' }, values: 'addresses' },
  'destination.port': { attribute: { kind: 'port' }, values: 'port' },
  'connection.sni': { attribute: { kind: 'sni' }, values: 'text' },
};

const headers = 'request.headers[';
const claims = 'request.auth.claims[';
const filters = 'experimental.envoy.filters.';

/** Keys of Istio's API that never worked with Envoy. */
const retired = ['destination.namespace', 'destination.labels', 'destination.name', 'destination.user'];

/** The attribute for the key of a `when` condition. */
export function whenAttribute(key: string): Found {
  const longest = 2_000;
  if (key.length > longest) return { problem: `is longer than ${longest} characters.` };
  const found = Object.hasOwn(plain, key) ? plain[key] : undefined;
  if (found !== undefined) return found;
  const name = inBrackets(key);
  if (name === '') return { problem: `${quote(key)} needs a name in the brackets.` };
  if (name !== undefined && /[\0\r\n]/.test(name))
    return { problem: `${quote(key)} has a line break in the brackets.` };
  if (name !== undefined && key.startsWith(headers)) return { attribute: { kind: 'header', name }, values: 'text' };
  if (name !== undefined && key.startsWith(claims))
    return { attribute: { kind: 'claim', path: claimPath(name) }, values: 'text' };
  if (name !== undefined && key.startsWith(filters)) {
    const filter = key.slice('experimental.'.length, key.indexOf('['));
    return { attribute: { kind: 'filterMetadata', filter, key: name }, values: 'text' };
  }
  if (retired.some((old) => key.startsWith(old)))
    return { problem: `${quote(key)} is not supported; use a selector, or to.operation, for the destination.` };
  return {
    problem: `${quote(key)} is not a known attribute; use one such as ${quote('source.namespace')} or ${quote('request.headers[x-name]')}.`,
  };
}

/** Undefined if there are no brackets at the end. */
function inBrackets(key: string): string | undefined {
  const open = key.indexOf('[');
  return open > 0 && key.endsWith(']') ? key.slice(open + 1, -1) : undefined;
}

/** `a][b` is a claim in a claim. Other brackets are part of the name. */
function claimPath(text: string): readonly string[] {
  const names = text.split('][');
  return names.some((name) => name === '' || /[[\]]/.test(name)) ? [text] : names;
}
