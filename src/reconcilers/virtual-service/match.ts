import { Buffer } from 'node:buffer';
import { compareText } from '../../model/age.ts';
import type { Labels } from '../../model/labels.ts';
import type { ClaimMatch, HeaderMatch, StringMatch } from '../../model/route.ts';
import type { HttpMatch } from '../../model/virtual-service.ts';
import { quote } from '../../api/quote.ts';
import type { Field } from '../field.ts';
import { problemOfRegex, tooManyRegexes, workOf } from '../regex.ts';
import { isHeaderName } from './headers.ts';
import { resolveGateway } from './names.ts';
import { remarkOnAuthority, remarkOnMethod, remarkOnPath, remarkOnScheme } from './remarks.ts';

const claimsPrefix = '@request.auth.claims';

/** One element of `http[].match`. */
export function readHttpMatch(field: Field, namespace: string): HttpMatch {
  const uri = readStringMatch(field.get('uri'), { emptyPrefix: true });
  const method = readStringMatch(field.get('method'));
  const authority = readStringMatch(field.get('authority'));
  const scheme = readStringMatch(field.get('scheme'));
  remarkOnPath(field.get('uri'), uri);
  remarkOnMethod(field.get('method'), method);
  remarkOnScheme(field.get('scheme'), scheme);
  remarkOnAuthority(field.get('authority'), authority);
  const headers: HeaderMatch[] = [];
  const claims: ClaimMatch[] = [];
  for (const [list, invert] of [['headers', false] as const, ['withoutHeaders', true] as const]) {
    for (const [name, member] of field.get(list).entries()) {
      const match = readPresence(member);
      const path = claimPath(name);
      if (path !== undefined) {
        claims.push({ path, match, invert });
      } else {
        if (!isHeaderName(name.replace(/^:/, ''))) member.invalid(`${quote(name)} is not a header name.`);
        headers.push({ name, match, invert });
      }
    }
  }
  const statPrefix = field.get('statPrefix').string();
  return {
    name: field.get('name').string(),
    statPrefix,
    ...(uri === undefined || uri.kind === 'present' ? {} : { uri }),
    ignoreUriCase: field.get('ignoreUriCase').boolean() ?? false,
    ...(scheme === undefined ? {} : { scheme }),
    ...(method === undefined ? {} : { method }),
    ...(authority === undefined ? {} : { authority }),
    headers: headers.sort((a, b) => compareText(a.name, b.name)),
    claims: claims.sort((a, b) => compareText(a.path.join('\0'), b.path.join('\0'))),
    queryParams: field
      .get('queryParams')
      .entries()
      .map(([name, member]) => {
        if (name === '' || Buffer.byteLength(name) > 1024) member.invalid('must have a name of 1 to 1024 bytes.');
        return { name, match: readPresence(member) };
      }),
    port: readMatchPort(field),
    ...readSource(field, namespace),
  };
}

/** What HTTP, TCP and TLS matches say about the client. */
export function readSource(
  field: Field,
  namespace: string,
): { sourceLabels: Labels; sourceNamespace: string; gateways: readonly string[] } {
  const source = field.get('sourceNamespace');
  const sourceNamespace = source.string();
  if (sourceNamespace !== '' && !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(sourceNamespace)) {
    source.invalid(`${quote(sourceNamespace)} is not the name of a namespace.`);
  }
  const labels = field.get('sourceLabels');
  const sourceLabels = labels.stringMap();
  for (const [name, value] of Object.entries(sourceLabels)) {
    if (!isLabel(name, value)) labels.invalid(`${quote(`${name}=${value}`)} is not a label.`);
  }
  return {
    sourceLabels,
    sourceNamespace,
    gateways: field
      .get('gateways')
      .list()
      .map((gateway) => resolveGateway(gateway, namespace)),
  };
}

export function readMatchPort(field: Field): number {
  return field.get('port').integer(0, 65_535) ?? 0;
}

/** A match for headers and query parameters, possibly empty. The regex `*` is Istio's older spelling of that. */
function readPresence(field: Field): StringMatch {
  if (!field.isSet) {
    field.invalid('must be a match, or {} for any value.');
    return { kind: 'present' };
  }
  if (field.get('regex').value === '*') return { kind: 'present' };
  return readStringMatch(field) ?? { kind: 'present' };
}

/** `exact`, `prefix` or `regex`. Undefined if the field is absent. */
export function readStringMatch(
  field: Field,
  { emptyPrefix = false }: { emptyPrefix?: boolean } = {},
): StringMatch | undefined {
  if (!field.expectObject().isSet) return undefined;
  const given = (['exact', 'prefix', 'regex'] as const).filter((kind) => field.get(kind).isSet);
  const [kind] = given;
  if (kind === undefined) return { kind: 'present' };
  if (given.length > 1) field.invalid(`has ${given.join(' and ')}; keep one of them.`);
  const value = field.get(kind).string();
  if (kind === 'prefix' && value === '' && !emptyPrefix) {
    field.get(kind).invalid('must not be empty; write {} to match any value.');
  }
  if (kind === 'regex') {
    const problem = field.findings.spend(workOf(value)) ? problemOfRegex(value) : tooManyRegexes;
    if (problem !== undefined) field.get(kind).invalid(`${quote(value)} ${problem}.`);
  }
  return { kind, value };
}

/** `@request.auth.claims.group.id` or `@request.auth.claims[group][id]`: a claim of the request's token. */
function claimPath(name: string): string[] | undefined {
  if (!name.toLowerCase().startsWith(claimsPrefix)) return undefined;
  const rest = name.slice(claimsPrefix.length);
  const parts = rest.startsWith('.')
    ? rest.slice(1).split('.')
    : rest.startsWith('[') && rest.endsWith(']')
      ? rest.slice(1, -1).split('][')
      : [];
  return parts.length > 0 && parts.every((part) => part !== '' && !/[[\]]/.test(part)) ? parts : undefined;
}

function isLabel(name: string, value: string): boolean {
  return (
    /^([a-zA-Z0-9]([-a-zA-Z0-9._]{0,251}[a-zA-Z0-9])?\/)?[a-zA-Z0-9]([-a-zA-Z0-9._]{0,61}[a-zA-Z0-9])?$/.test(name) &&
    /^([a-zA-Z0-9]([-a-zA-Z0-9._]{0,61}[a-zA-Z0-9])?)?$/.test(value)
  );
}
