import type { Names } from './served.ts';

/** The names that are in both. Costs as much as the smaller. */
export function* common(a: Names, b: Names): Generator<string> {
  const [few, many] = a.size <= b.size ? [a, b] : [b, a];
  for (const name of few.keys()) if (many.has(name)) yield name;
}

export function haveCommon(a: Names, b: Names): boolean {
  const [few, many] = a.size <= b.size ? [a, b] : [b, a];
  for (const name of few.keys()) if (many.has(name)) return true;
  return false;
}
