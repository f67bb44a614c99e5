import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../testing/runs.ts';
import { hostsMatch } from './host.ts';
import { hostSet, overlaps } from './host-set.ts';

const label = fc.constantFrom('a', 'b', 'a-b', 'b-a');
const name = fc.array(label, { minLength: 1, maxLength: 3 }).map((labels) => labels.join('.'));
const host = fc.oneof(
  name,
  name.map((text) => `*.${text}`),
  name.map((text) => `*${text}`),
  fc.constant('*'),
);

test('a host overlaps a set if it and any of the set can match the same name', () => {
  fc.assert(
    fc.property(fc.array(host, { maxLength: 5 }), host, (hosts, one) => {
      expect(overlaps(hostSet(hosts), one)).toBe(hosts.some((other) => hostsMatch(other, one)));
    }),
    { numRuns: runs(2_000) },
  );
});
