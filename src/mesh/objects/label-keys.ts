import type { Labels } from '../../model/labels.ts';

/** `namespace|key=value` for each label: lets selectors find what they select without scanning a namespace. */
export function labelKeys(namespace: string, labels: Labels): string[] {
  return Object.keys(labels).map((key) => `${namespace}|${key}=${labels[key]}`);
}

/** The one key under which to look for what this selector selects; undefined for an empty selector. */
export function selectorKey(namespace: string, selector: Labels): string | undefined {
  return labelKeys(namespace, selector).sort()[0];
}
