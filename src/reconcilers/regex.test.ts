import { expect, test } from 'vitest';
import { problemOfRegex, problemOfRewrite } from './regex.ts';

test.each(['.*', 'v[12]', '^/api/v([0-9]+)/(.*)$', '(?i)x', '\\pL+', '[[:alpha:]]', '(?P<name>x)', 'x{1,1000}'])(
  'RE2 compiles %s',
  (regex) => {
    expect(problemOfRegex(regex)).toBeUndefined();
  },
);

test.each([
  ['', /must not be empty/],
  ['*', /RE2/],
  ['(?=x)', /RE2/],
  ['(a)\\1', /RE2/],
  ['x{1,2000}', /RE2/],
  ['[', /RE2/],
  ['(((x{50}){50}){50}){50}', /RE2/],
  ['a'.repeat(1025), /at most 1024 characters, not 1025/],
])('RE2 refuses %s', (regex, reason) => {
  expect(problemOfRegex(regex)).toMatch(reason);
});

test.each([
  ['(a)(b)', '/\\2\\1\\0', undefined],
  ['a', 'a\\\\b', undefined],
  ['(a)', '\\2', 'has 1 group, but its rewrite uses \\2'],
  ['a', '\\x', 'has a rewrite with "\\\\x": after a backslash write a digit or another backslash'],
  ['a', 'end\\', 'has a rewrite with "\\\\": after a backslash write a digit or another backslash'],
])('groups of %s are used by the rewrite %s', (regex, substitution, problem) => {
  expect(problemOfRewrite(regex, substitution)).toBe(problem);
});
