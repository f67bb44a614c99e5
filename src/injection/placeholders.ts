import { type Json, isObject } from '../api/json.ts';
import { nameOf } from './pod.ts';

/** By name; undefined for what has no value for this Pod. */
export type Values = Readonly<Record<string, unknown>>;

/** `$${` stands for `${`. */
const PLACEHOLDER = /\$(\$\{|\{([^{}\s]*)\})/g;

export interface Placeholder {
  readonly name: string;
  readonly offset: number;
}

export function placeholdersIn(text: string): Placeholder[] {
  return [...text.matchAll(PLACEHOLDER)].flatMap(({ 2: name, index }) =>
    name === undefined ? [] : [{ name, offset: index }],
  );
}

/**
 * A template's content with values in place of its placeholders. It works on what YAML means, not on its text, so no
 * value can change the structure:
 *
 * - a text that is one placeholder takes the value as it is: a number, a map, a list;
 * - such an item of a list takes a list's items one by one;
 * - without a value, the field or item is left out, and so is an environment variable that has nothing but its name;
 * - within other text, a value is printed, or nothing if there is none.
 */
export function fill(content: Json, values: Values): Json {
  return fillMap(content, values);
}

function fillMap(map: Json, values: Values): Json {
  const filled: Json = {};
  for (const [name, member] of Object.entries(map)) {
    const value = fillValue(member, values);
    if (value === undefined) continue;
    filled[name] = name === 'env' && Array.isArray(value) ? value.filter(isVariable) : value;
  }
  return filled;
}

function fillValue(value: unknown, values: Values): unknown {
  if (typeof value === 'string') return fillText(value, values);
  if (Array.isArray(value)) return value.flatMap((item) => fillItem(item, values));
  return isObject(value) ? fillMap(value, values) : value;
}

function fillItem(item: unknown, values: Values): unknown[] {
  const value = fillValue(item, values);
  if (value === undefined) return [];
  return typeof item === 'string' && Array.isArray(value) ? value : [value];
}

function fillText(text: string, values: Values): unknown {
  const whole = /^\$\{([^{}\s]*)\}$/.exec(text);
  if (whole !== null) return values[whole[1] ?? ''];
  return text.replace(PLACEHOLDER, (_, escaped: string, name: string | undefined) =>
    name === undefined ? escaped : printed(values[name]),
  );
}

function printed(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function isVariable(variable: unknown): boolean {
  return !isObject(variable) || nameOf(variable) === '' || 'value' in variable || 'valueFrom' in variable;
}
