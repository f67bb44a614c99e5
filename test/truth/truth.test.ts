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

test('docs/compatibility.md and the README say how many answers are the same, better, or about kinds that are not served', () => {
  const counts = new Map<string, number[]>();
  for (const name of ['all', ...names]) counts.set(name.split('/')[0]!, [0, 0, 0, 0]);
  for (const name of names) {
    const entry = knownDifferenceOf(known, name);
    const column = entry === undefined ? 1 : entry.verdict === 'better on purpose' ? 2 : isOfArea(entry) ? 3 : NaN;
    expect(column, name).not.toBeNaN();
    for (const row of [counts.get(name.split('/')[0]!)!, counts.get('all')!])
      for (const each of [0, column]) row[each]!++;
  }
  const read = (path: string): string => readFileSync(join(import.meta.dirname, '../..', path), 'utf8');
  const page = read('docs/compatibility.md');
  const rows = [...page.matchAll(/^\| .*?(?:\(`([\w-]+)`\)|\*\*(all)\*\*) \| (\d.*) \|$/gm)].map(
    ([, area, all, cells = '']) => [area ?? all, cells.split(' | ').map(Number)] as const,
  );
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(counts));
  const [total, same, better, unserved] = counts.get('all')!;
  expect(page.replaceAll(/\s+/g, ' ')).toContain(
    `for ${total} small meshes. Fairlead must give the same answer to ${same} of them. For ${better}, its answer is better on purpose`,
  );
  expect(page).toContain(`${unserved} are about kinds that Fairlead does not serve.`);
  expect(read('README.md').replaceAll(/\s+/g, ' ')).toContain(
    `${total} recorded meshes: the same answer to ${same}, a better one to ${better} on purpose, and ${unserved} about kinds that it does not serve`,
  );
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
