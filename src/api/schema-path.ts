/** Steps from an object to a value in it: members by name, list elements by number. */
export type FieldPath = readonly (string | number)[];

/** `spec.http[0].match[1].uri`, as kubectl prints it; a key that is not a plain name is in brackets. */
export function printPath(path: FieldPath): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[\w$-]+$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${step}]`;
  }
  return text;
}
