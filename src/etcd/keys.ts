/** One key, or all keys from `key` up to `end`, exclusive. */
export interface KeyRange {
  readonly key: string;
  readonly end?: string;
}

export function singleKey(key: string): KeyRange {
  return { key };
}

/** All keys that begin with the prefix, which must not be empty. */
export function keysUnder(prefix: string): KeyRange {
  return { key: prefix, end: prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1) };
}

export function isWithin(key: string, { key: first, end }: KeyRange): boolean {
  return end === undefined ? key === first : key >= first && key < end;
}

/** The first key after this one. */
export function after(key: string): string {
  return `${key}\0`;
}
