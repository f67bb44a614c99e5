/** A set, or the keys of a map. */
export type Keys<K> = Pick<ReadonlySet<K>, 'has' | 'size' | 'keys'>;

/** The names that are in both. Costs as much as the smaller. */
export function* common<K>(a: Keys<K>, b: Keys<K>): Generator<K> {
  const [few, many] = a.size <= b.size ? [a, b] : [b, a];
  for (const name of few.keys()) if (many.has(name)) yield name;
}

export function haveCommon<K>(a: Keys<K>, b: Keys<K>): boolean {
  const [few, many] = a.size <= b.size ? [a, b] : [b, a];
  for (const name of few.keys()) if (many.has(name)) return true;
  return false;
}
