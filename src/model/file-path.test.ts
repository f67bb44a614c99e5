import { expect, test } from 'vitest';
import { readFilePath } from './file-path.ts';

test.each([
  ['/etc/ssl/ca.pem', '/etc/ssl/ca.pem'],
  ['//etc/./ssl//x/../ca.pem', '/etc/ssl/ca.pem'],
  ['/../etc/ca.pem', '/etc/ca.pem'],
  ['/etc/ca.pem/', '/etc/ca.pem'],
  ['/etc/..data/ca.pem', '/etc/..data/ca.pem'],
  ['/process/ca.pem', '/process/ca.pem'],
])('%s is spelled %s', (text, path) => {
  expect(readFilePath(text)).toEqual({ path });
});

test.each([
  ['etc/ca.pem', 'is not an absolute path'],
  ['./ca.pem', 'is not an absolute path'],
  ['/proc/self/pagemap', 'is in /proc'],
  ['/etc/..//proc/./self/pagemap', 'is in /proc'],
  ['/sys', 'is in /sys'],
  ['/dev/zero', 'is in /dev'],
  ['/', 'is a directory'],
  ['/etc/..', 'is a directory'],
  ['/a~/b', 'control character or ~'],
  ['/a\u0000', 'control character or ~'],
  [`/${'x'.repeat(1024)}`, 'is longer than 1024 bytes'],
])('%j is not a file that can be named: %s', (text, problem) => {
  expect(readFilePath(text)).toMatchObject({ problem: expect.stringContaining(problem) as string });
});
