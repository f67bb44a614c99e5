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
    if (!(error instanceof DocumentError)) return { broken: { line: 1, path: [], message: String(error) } };
    const { kind, offset, path, message } = error;
    const template = kind === 'syntax' ? templateIn(text) : kind === 'key' ? templateAt(text, offset) : undefined;
    if (template !== undefined) return { broken: { line: lineOf(text, template), path: [], message: TEMPLATE } };
    return { broken: { line: lineOf(text, offset), path, message } };
  }
}

/** As kubectl reads JSON; undefined for text that the YAML reader explains better. */
function readJson(text: string): DocumentContent | undefined {
  // As many spaces as the marker has characters.
  const json = /^---[ \t\r\n]/.test(text) ? `   ${text.slice(3)}` : text;
  if (!/^\s*\{/.test(json)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  return isSuspicious(json, MAX_DEPTH) ? undefined : { value };
}

/** For an unrendered template where it is not a valid value. */
export const TEMPLATE = 'looks like a template with {{ ... }}; render it first, for example with "helm template"';

/** Unquoted, `{{` begins a map whose key is a map: the parser's message would not help. */
function templateAt(text: string, key: number): number | undefined {
  return text.startsWith('{{', key - 1) ? key - 1 : undefined;
}

/** A template, on a line of its own or as a value, where the parser may have stumbled. */
function templateIn(text: string): number | undefined {
  const match = /^[ \t]*(?:-[ \t]+)*(?:[^\s'"#:]+:[ \t]+)?\{\{.*\}\}/m.exec(text);
  return match === null ? undefined : match.index + match[0].indexOf('{{');
}

/** Line number of an offset, counted from 1. */
export function lineOf(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) line++;
  return line;
}
