import { quote } from '../../api/quote.ts';
import type { StringMatch } from '../../model/route.ts';
import type { Field } from '../field.ts';
import { methodMeant } from '../methods.ts';

/** What is valid in a VirtualService, and can never match or have an effect. */

/** @param field of the match: `uri`. */
export function remarkOnPath(field: Field, match: StringMatch | undefined): void {
  if (match === undefined || (match.kind !== 'exact' && match.kind !== 'prefix')) return;
  const { kind, value } = match;
  if (field.get('exact').isSet && field.get('prefix').isSet) return;
  const why = value.includes('*')
    ? `compares the * in ${quote(value)} as it stands; use prefix for what follows, or regex`
    : /[?#]/.test(value)
      ? `never matches ${quote(value)}: paths are compared without query and fragment. Use queryParams`
      : value !== '' && !value.startsWith('/')
        ? `never matches ${quote(value)}: paths begin with /`
        : /[^\x21-\x7e]/.test(value)
          ? `never matches ${quote(value)}: spaces and letters beyond ASCII are percent-encoded`
          : undefined;
  if (why !== undefined) ineffective(field.get(kind), `${why}.`);
}

/** @param field of the match: `method`. */
export function remarkOnMethod(field: Field, match: StringMatch | undefined): void {
  if (match?.kind !== 'exact' && match?.kind !== 'prefix') return;
  const { kind, value } = match;
  const meant = methodMeant(value);
  if (meant !== undefined)
    ineffective(field.get(kind), `never matches ${quote(value)}: methods are in upper case. Write ${meant}.`);
}

/** @param field of the match: `scheme`. */
export function remarkOnScheme(field: Field, match: StringMatch | undefined): void {
  if (match?.kind !== 'exact' && match?.kind !== 'prefix') return;
  const { kind, value } = match;
  if (/[^a-z0-9+.-]/.test(value))
    ineffective(
      field.get(kind),
      `never matches ${quote(value)}: a scheme is in lower case, and without ://. Write http or https.`,
    );
}

/** @param field of the match: `authority`. */
export function remarkOnAuthority(field: Field, match: StringMatch | undefined): void {
  if (match?.kind !== 'exact' && match?.kind !== 'prefix') return;
  const { kind, value } = match;
  const why = value.includes('*')
    ? `compares the * in ${quote(value)} as it stands; use regex`
    : value.includes('/')
      ? `never matches ${quote(value)}: an authority is a host, with or without a port`
      : undefined;
  if (why !== undefined) ineffective(field.get(kind), `${why}.`);
}

/** A path or authority that is sent as it stands, and refers to groups of a regex. */
export function remarkOnPlainText(field: Field, text: string): void {
  const group = /\$\d|\$\{\w+\}|\\\d/.exec(text)?.[0];
  if (group !== undefined)
    ineffective(field, `is sent as it stands, with ${quote(group)}; only uriRegexRewrite has groups.`);
}

/** The text that replaces what a regex matched. */
export function remarkOnSubstitution(field: Field, text: string): void {
  const found = /\$(?:(\d)|\{(\w+)\})/.exec(text);
  if (found === null) return;
  const instead = found[1] ?? (/^\d$/.test(found[2] ?? '') ? found[2] : undefined);
  const write = instead === undefined ? 'a number' : `\\${instead}`;
  ineffective(
    field,
    `is sent with ${quote(found[0])} as it stands: groups are written with a backslash. Write ${write}.`,
  );
}

/** @param verb what the fault does to requests. */
export function remarkOnShare(field: Field, verb: 'delayed' | 'aborted'): void {
  if (field.get('percentage').isSet || field.get('percent').isSet) return;
  ineffective(field, `has no percentage, so that no request is ${verb}; set percentage.value.`);
}

function ineffective(field: Field, message: string): void {
  field.findings.report(field.path, 'Ineffective', message);
}
