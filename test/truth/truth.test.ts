import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createCheckSound } from '../harness/sound.ts';
import { caseNames, runCase } from './cases.ts';
import { isOfArea, judge, knownDifferenceOf, knownDifferences } from './known-differences.ts';

const known = new Map(knownDifferences().map((entry) => [entry.case, entry]));
const names = caseNames();
const checkSound = createCheckSound();
const equal = { primary: 0, telemetry: 0 };

describe('what Istio was recorded to serve', () => {
  test.each(names)('%s', (name) => {
    const { primary, telemetry, proxies } = runCase(name);
    if (primary.length === 0) equal.primary++;
    if (primary.length + telemetry.length === 0) equal.telemetry++;
    expect(judge(primary, knownDifferenceOf(known, name))).toEqual([]);
    expect(proxies.flatMap(({ proxy, snapshot }) => checkSound(snapshot).map((line) => `${proxy}: ${line}`))).toEqual(
      [],
    );
  });

  afterAll(() => {
    console.log(
      `${equal.primary} of ${names.length} recorded answers are equal (${equal.telemetry} of them in telemetry too), ${known.size} are known to differ.`,
    );
  });
});

test('the README says how many answers are the same, better, or about kinds that are not served', () => {
  const entries = names.map((name) => knownDifferenceOf(known, name));
  const better = entries.filter((entry) => entry?.verdict === 'better on purpose').length;
  const unserved = entries.filter((entry) => entry !== undefined && isOfArea(entry)).length;
  const same = entries.filter((entry) => entry === undefined).length;
  expect(same + better + unserved).toBe(names.length);
  const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8').replaceAll(/\s+/g, ' ');
  expect(readme).toContain(
    `answers for ${names.length} small meshes. Fairlead gives the same answer to ${same} of them`,
  );
  expect(readme).toContain(`a better one to ${better},`);
  expect(readme).toContain(`; ${unserved} ask about kinds that it does not serve.`);
});

test('every known difference is that of a case, with its reason', () => {
  const isCase = (entry: string) => names.some((name) => name === entry || `${name.split('/')[0]}/*` === entry);
  expect([...known.keys()].filter((entry) => !isCase(entry))).toEqual([]);
  expect(known.size).toBe(knownDifferences().length);
  for (const entry of known.values()) {
    expect(['better on purpose', 'not supported yet']).toContain(entry.verdict);
    expect(entry.reason).toMatch(/\.$/);
    if (isOfArea(entry)) expect(entry).toMatchObject({ verdict: 'not supported yet' });
    else expect(entry.differs?.length).toBeGreaterThan(0);
  }
});
