import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

/** A case that is answered otherwise than was recorded, and why. */
export interface KnownDifference {
  /** `area/name`, or `area/*` for all cases about something that is not supported yet. */
  readonly case: string;
  readonly verdict: 'better on purpose' | 'not supported yet';
  readonly reason: string;
  /** How the paths begin at which the answers differ. Another difference of the case is a failure. Absent for areas. */
  readonly differs?: readonly string[];
}

export function knownDifferences(): KnownDifference[] {
  return parse(readFileSync(join(import.meta.dirname, 'known-differences.yaml'), 'utf8')) as KnownDifference[];
}

/** What is wrong with the differences of a case: those that nobody knows of, and known ones that are gone. */
export function judge(lines: readonly string[], known: KnownDifference | undefined): string[] {
  if (known !== undefined && isOfArea(known)) return [];
  const prefixes = known?.differs ?? [];
  const unexpected = lines.filter((line) => !prefixes.some((prefix) => line.startsWith(prefix)));
  const gone = prefixes.filter((prefix) => !lines.some((line) => line.startsWith(prefix)));
  return [
    ...unexpected,
    ...gone.map((prefix) => `${prefix}: is equal now; take it out of test/truth/known-differences.yaml`),
  ];
}

export function isOfArea({ case: name }: Pick<KnownDifference, 'case'>): boolean {
  return name.endsWith('/*');
}

/** The entry for a case, or else for its area. */
export function knownDifferenceOf(
  all: ReadonlyMap<string, KnownDifference>,
  name: string,
): KnownDifference | undefined {
  return all.get(name) ?? all.get(name.replace(/\/.*/, '/*'));
}
