import { type Json, isObject } from '../api/json.ts';
import { quote } from '../api/quote.ts';
import { type FieldPath, printPath } from '../api/schema-path.ts';
import { Lines } from '../directory/lines.ts';
import { readDocument, lineOf } from '../yaml/document.ts';
import { fill, placeholdersIn, type Values } from './placeholders.ts';
import { wrongInEvery } from './every-container.ts';
import { podShape, templateShape } from './pod-shape.ts';
import type { FileProblem } from './problem.ts';
import { mismatchOf } from './shape.ts';
import { exampleValues, isValueName, valueTable } from './template-values.ts';

/** A part of a Pod with placeholders. */
export interface Template {
  readonly name: string;
  readonly file: string;
  readonly text: string;
  readonly content: Json;
}

const MAX_PROBLEMS = 20;

/** A template that can be used, or everything that is wrong with its text. */
export function readTemplate(
  file: string,
  text: string,
): { readonly template: Template } | { readonly problems: readonly FileProblem[] } {
  const read = readDocument(text);
  const at = (line: number, message: string): FileProblem => ({ file, line, message });
  if ('broken' in read) return { problems: [at(read.broken.line, read.broken.message)] };
  if (!isObject(read.value)) return { problems: [at(1, 'must be a map with metadata and spec of a Pod')] };
  // Comments may name what they like.
  const used = new Set(placeholdersIn(JSON.stringify(read.value)).map(({ name }) => name));
  const unknown = placeholdersIn(text).filter(({ name }) => used.has(name) && !isValueName(name));
  if (unknown.length > 0)
    return {
      problems: unknown
        .slice(0, MAX_PROBLEMS)
        .map(({ name, offset }) => at(lineOf(text, offset), `\${${name}} is unknown; ${nearest(name)}`)),
    };
  const template = { name: file.replace(/\.ya?ml$/, ''), file, text, content: read.value };
  const filled = fill(template.content, exampleValues);
  const mismatch = mismatchOf(filled, templateShape);
  if (mismatch === undefined) {
    const wrong = wrongInEvery(filled);
    if (wrong === undefined) return { template };
    return { problems: [at(placeIn(template, ['spec', 'containers']), `spec.containers ${wrong}`)] };
  }
  return { problems: [at(placeIn(template, mismatch.path), `${printPath(mismatch.path)} ${mismatch.message}`)] };
}

/** The template for one Pod, or what it would break in it. */
export function instantiate(
  template: Template,
  values: Values,
): { readonly patch: Json } | { readonly broken: string } {
  const patch = fill(template.content, values);
  const mismatch = mismatchOf(patch, templateShape);
  if (mismatch === undefined) return { patch };
  const { path, message } = mismatch;
  return { broken: `template ${template.name}, line ${placeIn(template, path)}: ${printPath(path)} ${message}` };
}

/** What is wrong with a Pod to which templates have been applied; the line is that of the last that has the place. */
export function brokenBy(templates: readonly Template[], pod: Json): string | undefined {
  const mismatch = mismatchOf(pod, podShape);
  if (mismatch === undefined) return undefined;
  const template = templates.at(-1);
  const place = template === undefined ? '' : `template ${template.name}, line ${placeIn(template, mismatch.path)}: `;
  return `${place}${printPath(mismatch.path)} ${mismatch.message}`;
}

function placeIn({ text }: Template, path: FieldPath): number {
  return new Lines().of(text, path);
}

function nearest(name: string): string {
  const known = Object.keys(valueTable);
  const near = known.find((each) => each.toLowerCase() === name.toLowerCase());
  return near === undefined ? `known are ${known.join(', ')}` : `did you mean ${quote(near)}`;
}
