import { expect, test } from 'vitest';
import { refusalOf } from './node-version.ts';

test.each(['v18.20.8', '20.19.0', '22.18.9', 'nonsense'])('Node %s is refused by name', (version) => {
  expect(refusalOf(version)).toMatch(
    `fairlead needs Node 22.19 or newer, and this is Node ${version.replace('v', '')} (/`,
  );
});

test.each(['22.19.0', 'v22.20.1', '24.0.0', process.version])('Node %s is enough', (version) => {
  expect(refusalOf(version)).toBeUndefined();
});
