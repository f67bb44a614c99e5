import { compareText } from '../model/age.ts';
import type { ClaimMatch, HeaderMatch, StringMatch } from '../model/route.ts';
import type { HttpMatch } from '../model/virtual-service.ts';

/**
 * The matches of a delegate's route, combined with those of the root's delegating route. Undefined if one of the
 * delegate's matches fits none of the root's: otherwise the route would apply to requests that it is not for.
 */
export function mergeMatches(
  root: readonly HttpMatch[],
  delegate: readonly HttpMatch[],
): readonly HttpMatch[] | undefined {
  if (root.length === 0) return delegate;
  if (delegate.length === 0) return root;
  const merged: HttpMatch[] = [];
  for (const match of delegate) {
    const compatible = root.filter((candidate) => !contradicts(candidate, match));
    if (compatible.length === 0) return undefined;
    for (const candidate of compatible) merged.push(mergeMatch(candidate, match));
  }
  return merged;
}

export function joinNames(root: string, delegate: string): string {
  return root !== '' && delegate !== '' ? `${root}-${delegate}` : root || delegate;
}

function mergeMatch(root: HttpMatch, delegate: HttpMatch): HttpMatch {
  const uri = delegate.uri ?? root.uri;
  const scheme = delegate.scheme ?? root.scheme;
  const method = delegate.method ?? root.method;
  const authority = delegate.authority ?? root.authority;
  return {
    name: joinNames(root.name, delegate.name),
    statPrefix: delegate.statPrefix || root.statPrefix,
    ...(uri === undefined ? {} : { uri }),
    ignoreUriCase: delegate.ignoreUriCase,
    ...(scheme === undefined ? {} : { scheme }),
    ...(method === undefined ? {} : { method }),
    ...(authority === undefined ? {} : { authority }),
    headers: mergeNamed(root.headers, delegate.headers, headerKey),
    claims: mergeNamed(root.claims, delegate.claims, claimKey),
    queryParams: mergeNamed(root.queryParams, delegate.queryParams, ({ name }) => name),
    port: delegate.port || root.port,
    sourceLabels: { ...root.sourceLabels, ...delegate.sourceLabels },
    sourceNamespace: delegate.sourceNamespace || root.sourceNamespace,
    gateways: delegate.gateways.length > 0 ? delegate.gateways : root.gateways,
  };
}

/** Where both have an entry, the delegate's wins. */
function mergeNamed<Entry>(
  root: readonly Entry[],
  delegate: readonly Entry[],
  keyOf: (entry: Entry) => string,
): readonly Entry[] {
  if (root.length === 0) return delegate;
  if (delegate.length === 0) return root;
  const merged = new Map([...root, ...delegate].map((entry) => [keyOf(entry), entry]));
  return [...merged].sort(([a], [b]) => compareText(a, b)).map(([, entry]) => entry);
}

const headerKey = ({ name, invert }: HeaderMatch): string => `${name}\0${invert ? 1 : 0}`;
const claimKey = ({ path, invert }: ClaimMatch): string => [...path, invert ? 1 : 0].join('\0');

function contradicts(root: HttpMatch, delegate: HttpMatch): boolean {
  const labels = Object.entries(delegate.sourceLabels);
  return (
    textContradicts(root.uri, delegate.uri) ||
    textContradicts(root.scheme, delegate.scheme) ||
    textContradicts(root.method, delegate.method) ||
    textContradicts(root.authority, delegate.authority) ||
    namedContradict(root.headers, delegate.headers, headerKey) ||
    namedContradict(root.claims, delegate.claims, claimKey) ||
    namedContradict(root.queryParams, delegate.queryParams, ({ name }) => name) ||
    root.ignoreUriCase !== delegate.ignoreUriCase ||
    (root.port !== 0 && delegate.port !== 0 && root.port !== delegate.port) ||
    (root.sourceNamespace !== '' && root.sourceNamespace !== delegate.sourceNamespace) ||
    labels.some(([name, value]) => Object.hasOwn(root.sourceLabels, name) && root.sourceLabels[name] !== value) ||
    (root.gateways.length > 0 && delegate.gateways.some((gateway) => !root.gateways.includes(gateway)))
  );
}

function namedContradict<Entry extends { readonly match: StringMatch }>(
  root: readonly Entry[],
  delegate: readonly Entry[],
  keyOf: (entry: Entry) => string,
): boolean {
  if (root.length === 0 || delegate.length === 0) return false;
  const matches = new Map(root.map((entry) => [keyOf(entry), entry.match]));
  return delegate.some((entry) => textContradicts(matches.get(keyOf(entry)), entry.match));
}

/** The delegate's match must be clearly narrower than the root's; for a regex, this cannot be determined. */
function textContradicts(root: StringMatch | undefined, delegate: StringMatch | undefined): boolean {
  if (root === undefined || delegate === undefined) return false;
  if (root.kind === 'exact') return delegate.kind !== 'exact' || delegate.value !== root.value;
  if (root.kind === 'prefix' && (delegate.kind === 'prefix' || delegate.kind === 'exact')) {
    return !delegate.value.startsWith(root.value);
  }
  return true;
}
