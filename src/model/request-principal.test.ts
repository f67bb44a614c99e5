import { expect, test } from 'vitest';
import { matchesText } from './authorization.ts';
import { principalReadings } from './request-principal.ts';

const issuers = ['https://ci.example', 'https://ci.example/a', 'plain'];

function matches(value: string, isWide: boolean, issuer: string, subject: string | undefined): boolean {
  return principalReadings(value, issuers, isWide).some(
    (reading) =>
      matchesText(reading.issuer, issuer) &&
      (reading.subject === undefined || (subject !== undefined && matchesText(reading.subject, subject))),
  );
}

const [CI, NESTED] = ['https://ci.example', 'https://ci.example/a'];

/** A value, a token that has it, and one that has it only where more is denied than is allowed; one that has it nowhere. */
test.each<[string, [string, string] | undefined, [string, string | undefined] | undefined, [string, string]]>([
  ['*', [CI, 'a/b'], [CI, undefined], ['', '']],
  ['https://ci.example/r:acme/site:ref', [CI, 'r:acme/site:ref'], undefined, [CI, 'site:ref']],
  ['https://ci.example/a/b', [NESTED, 'b'], [CI, 'a/b'], [CI, 'b']],
  ['https://ci.example/r/*', [CI, 'r/s'], undefined, [CI, 'q/s']],
  ['https://ci.example/*', [CI, 'r/s'], [NESTED, 'r'], ['plain', 'r']],
  ['https://ci*', [NESTED, 's'], [CI, undefined], ['plain', 's']],
  ['https://ci.example/a/*', [NESTED, 's'], [CI, 'a/s'], [CI, 's']],
  ['*/alice', ['plain', 'alice'], ['plain', 'x/alice'], ['plain', 'xalice']],
  ['*/heads/main', ['plain', 'refs/heads/main'], undefined, ['plain', 'heads']],
  ['*heads/main', ['plain', 'refs/heads/main'], undefined, ['plain', 'main']],
  ['*example/alice', [CI, 'alice'], ['plain', 'example/alice'], [NESTED, 'alice']],
  ['*main', ['plain', 'refs/heads/main'], undefined, ['plain', 'mai']],
  ['plain', ['plain', ''], undefined, ['plain', 's']],
])('%s', (value, always, ifDenied, never) => {
  const both = ([issuer, subject]: readonly [string, string | undefined]) => [
    matches(value, false, issuer, subject),
    matches(value, true, issuer, subject),
  ];
  if (always !== undefined) expect(both(always)).toEqual([true, true]);
  if (ifDenied !== undefined) expect(both(ifDenied)).toEqual([false, true]);
  expect(both(never)).toEqual([false, false]);
});

test('issuers whose names continue each other do not multiply what Envoy compares', () => {
  const nested = Array.from({ length: 100 }, (_, i) => `i${'/a'.repeat(i)}`);
  const subject = `${nested[99]}/b`;
  expect(principalReadings(subject, nested, true)).toEqual([
    { issuer: { kind: 'present' }, subject: { kind: 'suffix', text: 'b' } },
  ]);
  expect(principalReadings(`${subject}*`, nested, true)).toEqual([{ issuer: { kind: 'present' }, subject: undefined }]);
  expect(principalReadings(subject, nested, false)).toHaveLength(1);
});
