import { expect, test } from 'vitest';
import { problemOfRegex, problemOfRewrite } from './regex.ts';

test.each([
  '.*',
  'v[12]',
  '^/api/v([0-9]+)/(.*)$',
  '(?i)x',
  '\\pL+',
  '[[:alpha:]]',
  '(?P<name>x)',
  'x{1,1000}',
  '\\x{ff}',
  '\\x{000ff}',
  '\\\\x{100}',
  '[a-z]{1,1000}',
  '\\p{Kawi}\\p{^Greek}\\PN',
  '\\\\p{LC}',
  '[а-я]é+',
])('RE2 compiles %s', (regex) => {
  expect(problemOfRegex(regex)).toBeUndefined();
});

test.each([
  ['', /must not be empty/],
  ['*', /RE2/],
  ['(?=x)', /RE2/],
  ['(a)\\1', /RE2/],
  ['x{1,2000}', /RE2/],
  ['[', /RE2/],
  ['(((x{50}){50}){50}){50}', /too complex/],
  ['\\pL{1000}'.repeat(50), /too complex/],
  ['\\x{10FFFF}', /x\{10FFFF\}; write the character/],
  ['\\\\\\x{00100}', /x\{100\}/],
  ['a\\\\\\p{^LC}', /has the class \\p\{\^LC\}/],
  ['\\P{Garay}', /has the class \\P\{Garay\}/],
  ['[\\xff-Ā]', /range that is reversed/],
  ['[\\377-я]', /range that is reversed/],
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

test.each([
  '(a|b){1,1000}'.repeat(70),
  '(((a{10}){10}){10})'.repeat(50),
  '((a?){30}){30}'.repeat(60),
  `(?i)${'[a-zé]{1,900}'.repeat(50)}`,
])('%s is refused before it is compiled', (regex) => {
  expect(problemOfRegex(regex)).toMatch(/too complex/);
});

test.each(['[{]{3}', '[]{100}]', '\\{1000}', '\\p{Greek}{1000}', '[[:alpha:]{999}]'])('%s is small', (regex) => {
  expect(problemOfRegex(regex)).toBeUndefined();
});
