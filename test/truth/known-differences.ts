import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

/** A case that is answered otherwise than was recorded, and why. */
export interface KnownDifference {
  readonly case: string;
  readonly verdict: 'better on purpose' | 'not supported yet';
  readonly reason: string;
  /** How the paths begin at which the answers differ. Another difference of the case is a failure. */
  readonly differs: readonly string[];
}

export function knownDifferences(): KnownDifference[] {
  return parse(readFileSync(join(import.meta.dirname, 'known-differences.yaml'), 'utf8')) as KnownDifference[];
}

/** What is wrong with the differences of a case: those that nobody knows of, and known ones that are gone. */
export function judge(lines: readonly string[], known: KnownDifference | undefined): string[] {
  const prefixes = known?.differs ?? [];
  const unexpected = lines.filter((line) => !prefixes.some((prefix) => line.startsWith(prefix)));
  const gone = prefixes.filter((prefix) => !lines.some((line) => line.startsWith(prefix)));
  return [
    ...unexpected,
    ...gone.map((prefix) => `${prefix}: is equal now; take it out of test/truth/known-differences.yaml`),
  ];
}
