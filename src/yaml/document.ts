import type { FieldPath } from '../api/schema-path.ts';
import { DocumentError } from './document-error.ts';
import { isSuspicious } from './json-scan.ts';
import { toPlainJson } from './plain-json.ts';
import { MAX_DEPTH, parseTree } from './tree.ts';

export type DocumentContent = { readonly value: unknown } | { readonly broken: Broken };

interface Broken {
  readonly line: number;
  readonly path: FieldPath;
  readonly message: string;
}

/** Reads one document as kubectl does. Lines count from 1 within the text. Never throws. */
export function readDocument(text: string): DocumentContent {
  try {
    return readJson(text) ?? { value: toPlainJson(parseTree(text)) };
  } catch (error) {
    const { offset, path } = error instanceof DocumentError ? error : { offset: 0, path: [] };
    const message = error instanceof Error ? error.message : String(error);
    return { broken: templateIn(text, message) ?? { line: lineOf(text, offset), path, message } };
  }
}

/** Many times faster than YAML; undefined for text that YAML's reader explains better. */
function readJson(text: string): DocumentContent | undefined {
  if (!/^\s*\{/.test(text)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isSuspicious(text, MAX_DEPTH) ? undefined : { value };
}

/** Unquoted, `{{` begins a map whose key is a map: the parser's message for that would not help. */
function templateIn(text: string, problem: string): Broken | undefined {
  if (!/not valid YAML|a key that is not a string/.test(problem)) return undefined;
  const match = /^[ \t]*(?:-[ \t]+)*(?:[^\s'"#:]+:[ \t]+)?\{\{.*\}\}/m.exec(text);
  if (match === null) return undefined;
  const message = 'looks like a template with {{ ... }}, as Helm has them; render it first, as with "helm template"';
  return { line: lineOf(text, match.index + match[0].indexOf('{{')), path: [], message };
}

/** Line of an offset, counted from 1. */
export function lineOf(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) line++;
  return line;
}
