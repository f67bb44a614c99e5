import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cases } from './analyzer-cases.ts';
import { check, checked, places } from './checked.ts';

describe('what analyzers of Istio find', () => {
  test.each(cases.map((each) => [each.code, each] as const))('%s', (_, { wrong, told, mended }) => {
    expect(places(wrong)).toEqual(told);
    expect(checked(mended)).toEqual([]);
  });

  test('has a line, and a sentence that says what to do', () => {
    for (const { code, wrong } of cases)
      for (const { line, message } of check(wrong).findings) {
        expect([code, typeof line]).toEqual([code, 'number']);
        expect([code, message]).toEqual([code, expect.stringMatching(/^.{20,}[^.?][.?]$|^must be/s)]);
      }
  });
});

describe('docs/check.md', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/check.md'), 'utf8');
  const rows = [...page.matchAll(/^\| (IST\d{4}) \| .+? \| (.+) \|$/gm)].map(([, code = '', said = '']) => ({
    code,
    said,
  }));
  /** Given by Istio, and not retired. */
  const given = [
    ...[1, 2, 101, 102, 103],
    ...[106, 107, 108, 109, 110, 111, 112, 116, 118, 123],
    ...Array.from({ length: 177 - 124 }, (_, i) => i + 125),
  ].map((number) => `IST${String(number).padStart(4, '0')}`);

  test('has every message of Istio once', () => {
    expect(rows.map(({ code }) => code)).toEqual(given);
  });

  test('says of each what check says, which a case here proves, or why nothing', () => {
    // Sidecars for one workload: sidecars.test.ts.
    const proven = new Set([...cases.map(({ code }) => code), 'IST0110']);
    for (const { code, said } of rows) {
      expect([code, said.startsWith('— ')]).toEqual([code, !proven.has(code)]);
      expect(said.length).toBeGreaterThan(4);
    }
  });
});
