import type { Labels } from '../model/labels.ts';

/** `namespace|key=value` for each label: how selectors find what they select without looking at a whole namespace. */
export function labelKeys(namespace: string, labels: Labels): string[] {
  return Object.keys(labels).map((key) => `${namespace}|${key}=${labels[key]}`);
}

/** The one key under which what this selector selects is looked for; undefined for an empty selector. */
export function selectorKey(namespace: string, selector: Labels): string | undefined {
  return labelKeys(namespace, selector).sort()[0];
}
