import type { FieldPath } from '../api/schema-path.ts';

/**
 * Reads what schemas and reconcilers print. A path is free text: what cannot be read as a step is one
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
