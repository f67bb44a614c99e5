import type { FieldPath } from '../api/schema-path.ts';

/**
 * Parses paths as schemas and reconcilers print them. A path is free text: a part that cannot be parsed becomes one
 * step, which then matches no value.
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
