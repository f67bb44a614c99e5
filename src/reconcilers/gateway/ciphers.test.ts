import { expect, test } from 'vitest';
import { cipherListProblem } from './ciphers.ts';

// Verdicts of Envoy 1.40 on TLS contexts with these lists.
test.each([
  [['ALL']],
  [['DES-CBC3-SHA']],
  [['[AES128-SHA|AES256-SHA]', '[ECDHE-RSA-AES128-SHA]']],
  [['ALL', '[AES128-SHA|AES256-SHA]']],
  [['ALL', '!AES128-SHA']],
  [['-ALL', 'AES128-SHA']],
  [['AES128-SHA', '+AES128-SHA', 'AES256-SHA']],
  [[]],
])('Envoy takes %j', (ciphers) => {
  expect(cipherListProblem(ciphers)).toBeUndefined();
});

test.each([
  [['-ALL']],
  [['+AES128-SHA']],
  [['AES128-SHA', '-AES128-SHA']],
  [['!AES128-SHA', 'AES128-SHA']],
  [['ECDHE-RSA-AES128-GCM-SHA256', '[AES128-SHA|AES256-SHA]', '-AES128-SHA']],
])('Envoy refuses %j', (ciphers) => {
  expect(cipherListProblem(ciphers)).toBeDefined();
});
