import { quote } from '../../api/quote.ts';
import { type AuthorizationRule, type Clause, textMatch } from '../../model/authorization.ts';
import type { AuthorizationAction } from '../../model/authorization.ts';
import type { Field } from '../field.ts';
import { methodMeant } from '../methods.ts';

/** At most this many remarks about one object. */
const mostRemarks = 20;

/** What is valid, but rarely what its owner means, as far as the object itself tells. */
export function remarkOnRules(rules: readonly AuthorizationRule[], field: Field, action: AuthorizationAction): void {
  const remarks: [string, 'Ineffective' | 'TooBroad', string][] = [];
  for (const rule of rules) {
    const path = `${field.path}[${rule.index}]`;
    const clauses = [...rule.from, ...rule.to, rule.when];
    const isEmpty = clauses.every((clause) => clause.length === 0);
    if (rule.broken) continue;
    if (isEmpty && action === 'ALLOW')
      remarks.push([
        path,
        'TooBroad',
        'is empty, and allows every request and connection. Name who, or what, is allowed.',
      ]);
    for (const clause of clauses)
      remarks.push(
        ...remarksOnHosts(clause, path),
        ...remarksOnStars(clause, path),
        ...remarksOnShapes(clause, path),
        ...remarksOnMethods(clause, path),
      );
  }
  for (const [path, reason, message] of remarks.slice(0, mostRemarks)) field.findings.report(path, reason, message);
}

/** Kinds of which no value has a star itself; in paths, it is rare. */
const withoutStars = new Set(['path', 'host', 'method', 'principal', 'requestPrincipal', 'sni']);

/** A star means something only at one end of a value. */
function remarksOnStars(clause: Clause, path: string): [string, 'Ineffective', string][] {
  return clause.flatMap(({ attribute, values, notValues }) => {
    if (!withoutStars.has(attribute.kind)) return [];
    const found = [...values, ...notValues].find((value) => isPlainStarInside(value));
    if (found === undefined) return [];
    const instead =
      attribute.kind === 'path'
        ? `; ${quote('{*}')} stands for one segment, and ${quote('{**}')} for any number of them`
        : '';
    const message = `compares the * in ${quote(found)} as it stands: it means anything only at the beginning or the end of a value, and not at both${instead}.`;
    return [[path, 'Ineffective', message] as [string, 'Ineffective', string]];
  });
}

/** What no value of a kind has, and why. */
const misshapen: Readonly<Record<string, readonly [RegExp, string]>> = {
  host: [/\//, 'a host has neither a scheme nor a path'],
  sni: [/\//, 'a server name has neither a scheme nor a path'],
  // As in Istio, what is compared is followed by /sa/ACCOUNT.
  namespace: [/^[^*]*\/(?!sa$)[^*]*$/, 'a namespace is a name alone'],
};

function remarksOnShapes(clause: Clause, path: string): [string, 'Ineffective', string][] {
  return clause.flatMap(({ attribute, values, notValues }) => {
    const [shape, why] = misshapen[attribute.kind] ?? [];
    const found = [...values, ...notValues].find((value) => shape?.test(value));
    if (found === undefined) return [];
    return [[path, 'Ineffective', `has ${quote(found)}, which nobody has: ${why}.`] as [string, 'Ineffective', string]];
  });
}

/** Methods are compared with their case. */
function remarksOnMethods(clause: Clause, path: string): [string, 'Ineffective', string][] {
  return clause.flatMap(({ attribute, values, notValues }) => {
    const [found] = attribute.kind === 'method' ? [...values, ...notValues].filter((value) => methodMeant(value)) : [];
    if (found === undefined) return [];
    const message = `compares the method ${quote(found)}, which no request has: methods are in upper case. Write ${methodMeant(found)}.`;
    return [[path, 'Ineffective', message] as [string, 'Ineffective', string]];
  });
}

function isPlainStarInside(value: string): boolean {
  const match = textMatch(value);
  return match.kind !== 'present' && match.text.replaceAll(/\{\*\*?\}/g, '').includes('*');
}

/** Envoy compares the host as the client wrote it. */
function remarksOnHosts(clause: Clause, path: string): [string, 'Ineffective', string][] {
  return clause.flatMap(({ attribute, values, notValues }) => {
    if (attribute.kind !== 'host') return [];
    const all = [...values, ...notValues];
    const bare = all.find((host) => !host.endsWith('*') && !/:\d+$/.test(host) && !all.includes(`${host}:*`));
    if (bare === undefined) return [];
    const message = `compares the host ${quote(bare)} as clients write it, and does not match one with a port; add ${quote(`${bare}:*`)}.`;
    return [[path, 'Ineffective', message] as [string, 'Ineffective', string]];
  });
}
