import { quote } from '../../api/quote.ts';
import { parseCidr } from '../../model/cidr.ts';
import type { Field } from '../field.ts';
import type { ValueKind } from './attributes.ts';

/** The values of a condition; not ok if one of them cannot be read. */
interface Values {
  readonly ok: boolean;
  readonly values: readonly string[];
}

/** Of the identity in a certificate, which is a URI. A principal is what follows. */
const SPIFFE = 'spiffe://';

const problemOf: Readonly<Record<ValueKind, (value: string) => string | undefined>> = {
  text: () => undefined,
  principal: (value) =>
    value === SPIFFE
      ? `${quote(value)} is not a principal; write ${quote('TRUST_DOMAIN/ns/NAMESPACE/sa/ACCOUNT')}.`
      : undefined,
  path: pathProblem,
  port: (value) =>
    /^\d{1,5}$/.test(value) && Number(value) <= 65_535
      ? undefined
      : `${quote(value)} is not a port; use a number from 0 to 65535.`,
  addresses: (value) =>
    parseCidr(value) === undefined
      ? `${quote(value)} is not an IP address or a range such as ${quote('10.0.0.0/8')}.`
      : undefined,
  serviceAccount: accountProblem,
  trustDomain: (value) =>
    value.includes('/') || value.slice(1, -1).includes('*') || (value.length > 1 && /^\*.*\*$/.test(value))
      ? `${quote(value)} is not a trust domain; it has no slash, and * only at one end.`
      : undefined,
};

/** Many of them become regular expressions, of which Envoy limits the size: 12 instructions for a *. */
const longestValue = 2_000;

/** @param namespace for service accounts that name none. */
export function readValues(field: Field, kind: ValueKind, namespace: string): Values {
  if (!field.isSet) return { ok: true, values: [] };
  if (!Array.isArray(field.value)) {
    field.invalid('must be a list.');
    return { ok: false, values: [] };
  }
  const mostAccounts = 16;
  let ok = true;
  if (kind === 'serviceAccount' && field.value.length > mostAccounts) {
    field.invalid(`has ${field.value.length} elements; at most ${mostAccounts} are allowed.`);
    ok = false;
  }
  const values = field.list().map((element) => {
    const value = element.string();
    const problem =
      value === ''
        ? typeof element.value === 'string'
          ? 'must not be empty.'
          : notText(element)
        : value.length > longestValue
          ? `is longer than ${longestValue} characters.`
          : problemOf[kind](value);
    if (problem !== undefined) element.invalid(problem);
    else if (kind === 'principal') remarkOnPrincipal(element, value);
    if (value === '' || problem !== undefined) ok = false;
    return canonical(value, kind, namespace);
  });
  return { ok, values };
}

/** What is read, and rarely meant. */
function remarkOnPrincipal(field: Field, value: string): void {
  const rest = value.startsWith(SPIFFE) ? value.slice(SPIFFE.length) : value;
  const message = value.startsWith(SPIFFE)
    ? `begins with ${SPIFFE}, as no principal does; it is left out, but in Istio the value matches nobody. Write ${quote(rest)}.`
    : !/[/*]/.test(rest) || /^\/|:\/\//.test(rest)
      ? `${quote(value)} matches nobody: a principal is ${quote('TRUST_DOMAIN/ns/NAMESPACE/sa/ACCOUNT')}.`
      : undefined;
  if (message !== undefined) field.findings.report(field.path, 'Ineffective', message);
}

function canonical(value: string, kind: ValueKind, namespace: string): string {
  if (kind === 'serviceAccount' && !value.includes('/')) return `${namespace}/${value}`;
  return kind === 'principal' && value.startsWith(SPIFFE) ? value.slice(SPIFFE.length) : value;
}

/** `string()` has reported values of other types. */
function notText({ isSet }: Field): string | undefined {
  return isSet ? undefined : 'must be a string.';
}

function accountProblem(value: string): string | undefined {
  const parts = value.split('/');
  const readable =
    value.length <= 320 && !value.includes('*') && parts.length <= 2 && parts.every((part) => part !== '');
  return readable
    ? undefined
    : `${quote(value)} is not a service account; write ACCOUNT or NAMESPACE/ACCOUNT, without *.`;
}

/** Whether the path is a template: it has segments `{*}` (any one) or `{**}` (any number). */
export function isPathTemplate(path: string): boolean {
  return path.includes('{*}') || path.includes('{**}');
}

/** Literal segments beside a template, as RFC 3986 has them. */
const LITERAL = /^[a-zA-Z0-9\-._~%!$&'()+,;:@=]*$/;

function pathProblem(path: string): string | undefined {
  if (!isPathTemplate(path)) return undefined;
  const longest = 250;
  const segments = path.split('/');
  if (!path.startsWith('/') || path.includes('//') || path.length > longest)
    return `${quote(path)} is not a path template; it begins with /, has no //, and at most ${longest} characters.`;
  const rest = segments.indexOf('{**}');
  const wrong = segments.find((segment) => segment !== '{*}' && segment !== '{**}' && !LITERAL.test(segment));
  if (wrong !== undefined)
    return `${quote(path)} has the segment ${quote(wrong)}; beside {*} and {**}, use plain segments without * and braces.`;
  if (rest >= 0 && segments.slice(rest + 1).some((segment) => segment.startsWith('{')))
    return `${quote(path)} has a {*} or {**} behind {**}, which matches everything up to there; leave it out.`;
  return undefined;
}
