import { expect, test } from 'vitest';
import { whyUnmatched } from './unmatched-paths.ts';

const modes = ['NONE', 'BASE', 'MERGE_SLASHES', 'DECODE_AND_MERGE_SLASHES'] as const;

test.each<[string, string]>([
  ['/a?b', '1111'],
  ['/a#b', '1111'],
  ['a', '1111'],
  ['/a b', '1111'],
  ['/é', '1111'],
  ['/a/../b', '0111'],
  ['/a/./*', '0111'],
  ['*/..', '0111'],
  ['/a\\b', '0111'],
  ['/%41dmin', '0111'],
  ['/a%2Db', '0111'],
  ['/a%7e', '0111'],
  ['/a|b', '0111'],
  ['/{a}', '0111'],
  ['/a//b', '0011'],
  ['*//b', '0011'],
  ['/a%2Fb', '0001'],
  ['/a%2fb', '0001'],
  ['/a%5Cb', '0001'],
  ['/a', '0000'],
  ['/a/*', '0000'],
  ['*', '0000'],
  ['*.html', '0000'],
  ['/a/.*', '0000'],
  ['/a..b', '0000'],
  ['/.well-known/x', '0000'],
  ['/...', '0000'],
  ['/a%20b', '0000'],
  ['/a%3Ab', '0000'],
  ['/a%252fb', '0000'],
  ['/%7Bx%7D', '0000'],
  ['/{*}/b/{**}', '0000'],
])('%s: unmatched without normalization, with it, with merged slashes, with decoded ones: %s', (path, expected) => {
  expect(modes.map((mode) => (whyUnmatched(path, mode) === undefined ? 0 : 1)).join('')).toBe(expected);
});
