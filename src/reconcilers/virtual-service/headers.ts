import { Buffer } from 'node:buffer';
import { compareText } from '../../model/age.ts';
import type { HeaderOperations, HeaderValue } from '../../model/route.ts';
import { quote } from '../../api/quote.ts';
import type { Field } from '../field.ts';
import { problemOfFormat } from './header-format.ts';

/** Envoy's limit for a name and for a value, in bytes. */
const longest = 16_384;
/** Values in one list: Envoy allows 1,000, and the values of a route and of its only destination are one list. */
const mostValues = 500;

/** `headers` of a route or of a destination; `byRoot`: of an object in the root namespace. */
export function readHeaderOperations(field: Field, byRoot: boolean): HeaderOperations | undefined {
  if (!field.expectObject().isSet) return undefined;
  const request = field.get('request');
  const response = field.get('response');
  const requestSet = readValues(request.get('set'), { request: true, byRoot });
  const requestAdd = readValues(request.get('add'), { request: true, byRoot });
  const responseSet = readValues(response.get('set'), { request: false, byRoot });
  const responseAdd = readValues(response.get('add'), { request: false, byRoot });
  checkCount(request, requestSet, requestAdd);
  checkCount(response, responseSet, responseAdd);
  return {
    requestSet: requestSet.values,
    requestAdd: requestAdd.values,
    // A value that the owner meant to replace must not come from somebody else.
    requestRemove: [...readNames(request.get('remove')), ...requestSet.leftOut],
    responseSet: responseSet.values,
    responseAdd: responseAdd.values,
    responseRemove: [...readNames(response.get('remove')), ...responseSet.leftOut],
    // If both set it, `set` wins.
    authority: requestSet.authority || requestAdd.authority,
  };
}

/** Whether HTTP allows the name for a header (RFC 7230 token). */
export function isHeaderName(name: string): boolean {
  return name.length <= longest && /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name);
}

/** Reports text that a header cannot contain; Envoy applies the same rule to rewrites and redirects. */
export function readHeaderText(field: Field): string {
  const text = field.string();
  const problem = problemOfHeaderText(text);
  if (problem !== undefined) field.invalid(problem);
  return text;
}

export function problemOfHeaderText(text: string): string | undefined {
  if (/[\0\r\n]/.test(text)) return `${quote(text)} must have no line break and no NUL.`;
  return text.length > longest || Buffer.byteLength(text) > longest ? `must have at most ${longest} bytes.` : undefined;
}

interface Values {
  readonly values: readonly HeaderValue[];
  /** Names of headers with values that some Envoys would reject. */
  readonly leftOut: readonly string[];
  readonly authority: string;
}

function readValues(field: Field, { request, byRoot }: { request: boolean; byRoot: boolean }): Values {
  const values: HeaderValue[] = [];
  const leftOut: string[] = [];
  let authority = '';
  for (const [name, member] of field.entries()) {
    const value = readHeaderText(member);
    if (request && isAuthority(name)) authority = value;
    if (!isSettable(name, member, request)) continue;
    const problem = problemOfFormat(value, byRoot);
    if (problem?.reason === 'Ineffective') {
      leftOut.push(name);
      member.findings.report(member.path, 'Ineffective', `${problem.message} Until then the header is left out.`);
      continue;
    }
    if (problem !== undefined) member.invalid(problem.message);
    values.push({ name, value });
  }
  return { values: values.sort((a, b) => compareText(a.name, b.name)), leftOut, authority };
}

function checkCount(field: Field, set: Values, add: Values): void {
  const count = set.values.length + add.values.length;
  if (count > mostValues) field.invalid(`sets and adds ${count} headers; at most ${mostValues} are allowed.`);
}

function readNames(field: Field): string[] {
  return field
    .list()
    .filter((member) => isSettable(member.string(), member, false))
    .map((member) => member.string());
}

function isAuthority(name: string): boolean {
  return /^(host|:authority)$/i.test(name);
}

/** Pseudo-headers and `host` are left out, as in Istio. Its webhook refuses them, but not every cluster has it. */
function isSettable(name: string, field: Field, authorityAllowed: boolean): boolean {
  if (name.startsWith(':') || isAuthority(name)) {
    if (!(authorityAllowed && isAuthority(name))) {
      field.findings.report(field.path, 'Ineffective', `${quote(name)} cannot be changed and is ignored; remove it.`);
    }
    return false;
  }
  if (isHeaderName(name)) return true;
  field.invalid(`${quote(name)} is not a header name; use letters, digits and - only.`);
  return false;
}
