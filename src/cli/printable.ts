import { printRef } from '../api/object.ts';
import type { CheckResult, Finding } from './program.ts';

/** `file:line: kind/namespace/name: field: sentence`; a warning is marked as such before the sentence. */
export function printFinding({ severity, file, line, object, field, message }: Finding): string {
  const place = [file, line].filter((part) => part !== undefined).join(':');
  const parts = [
    place,
    object === undefined ? '' : printRef(object),
    field,
    `${severity === 'error' ? '' : `${severity}: `}${message}`,
  ];
  return parts
    .filter((part) => part !== '')
    .map(printable)
    .join(': ');
}

/** For programs: an object is named in three fields. */
export function findingAsJson({ severity, file, line, object, field, reason, message }: Finding): object {
  const { kind, namespace, name } = object ?? {};
  return { severity, file, line, kind, namespace, name, field, reason, message };
}

/** The counts in words: `3 objects: 1 error, 2 warnings`. */
export function printCounts({ objects, ignored, findings }: CheckResult): string {
  const count = (severity: Finding['severity']): number => findings.filter((f) => f.severity === severity).length;
  const many = (n: number, word: string): string => `${n} ${word}${n === 1 ? '' : 's'}`;
  const other = ignored === 0 ? '' : ` (${ignored} of other kinds ignored)`;
  return `${many(objects, 'object')}${other}: ${many(count('error'), 'error')}, ${many(count('warning'), 'warning')}`;
}

/** Names and values come from files: nothing in them may move the cursor or end the line. */
export function printable(text: string): string {
  return text.toWellFormed().replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    return `\\u{${character.codePointAt(0)!.toString(16)}}`;
  });
}
