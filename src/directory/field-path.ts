/** Steps from the top of a document or an object to a value in it. */
export type FieldPath = readonly (string | number)[];

/** As kubectl prints it: `spec.http[0].route[1]`; a key that is no plain name stands in brackets. */
export function printPath(path: FieldPath): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z0-9_$-]+$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${step}]`;
  }
  return text;
}

/**
 * Reads what {@link printPath} and the reconcilers print. A path is free text: what cannot be read as a step is one
 * step, which then names no value.
 */
export function parsePath(text: string): FieldPath {
  const path: (string | number)[] = [];
  for (const match of text.matchAll(/\[("?)([^\]]*)\1\]|[^.[\]]+/g)) {
    const inner = match[2];
    if (inner === undefined) path.push(match[0]);
    else path.push(/^\d+$/.test(inner) ? Number(inner) : inner);
  }
  return path;
}
