import { type Document, LineCounter, parseDocument, type ScalarTag } from 'yaml';
import type { FieldPath } from '../api/schema-path.ts';
import { isSuspicious } from './json-scan.ts';
import { DocumentError, MAX_DEPTH, toPlainJson } from './plain-json.ts';

export type DocumentContent =
  | { readonly value: unknown }
  | { readonly broken: { readonly line: number; readonly path: FieldPath; readonly message: string } };

/** Parses one document. Lines count from 1 within the text. Never throws. */
export function readDocument(text: string): DocumentContent {
  const json = readJson(text);
  if (json !== undefined) return json;
  const lines = new LineCounter();
  try {
    const document = parseYaml(text, lines);
    const error = document.errors[0];
    if (error !== undefined) throw new DocumentError(sentence(error.code, error.message), error.pos[0]);
    return { value: toPlainJson(document) };
  } catch (error) {
    const { offset, path } = error instanceof DocumentError ? error : { offset: 0, path: [] };
    const message = error instanceof Error ? error.message : String(error);
    return { broken: { line: Math.max(lines.linePos(offset).line, 1), path, message } };
  }
}

/** Many times faster than YAML; text that needs a word of explanation goes the other way. */
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

/** kubectl reads booleans as YAML 1.1 has them, but nothing else of it. */
const truths = new Set(['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON']);

const bool: ScalarTag = {
  identify: (value) => typeof value === 'boolean',
  default: true,
  tag: 'tag:yaml.org,2002:bool',
  test: /^(?:[yYnN]|[yY]es|YES|[nN]o|NO|[tT]rue|TRUE|[fF]alse|FALSE|[oO]n|ON|[oO]ff|OFF)$/,
  resolve: (text) => truths.has(text),
};

/** The tree of one document, with positions; what is wrong with it stands in its `errors`. */
export function parseYaml(text: string, lineCounter: LineCounter): Document {
  return parseDocument(text, {
    lineCounter,
    // Its own check compares every key with every other one.
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
    customTags: (tags) => tags.map((tag) => (typeof tag === 'object' && tag.tag === bool.tag ? bool : tag)),
  });
}

function sentence(code: string, message: string): string {
  switch (code) {
    case 'TAB_AS_INDENT':
      return 'is indented with a tab; YAML allows spaces only';
    case 'RESOURCE_EXHAUSTION':
      return 'is nested too deeply';
    default:
      return `is no valid YAML: ${message}`;
  }
}
