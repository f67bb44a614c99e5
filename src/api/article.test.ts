import { expect, test } from 'vitest';
import { withArticle } from './article.ts';

test('a word that begins with a vowel has an', () => {
  expect(['AuthorizationPolicy', 'EnvoyFilter', 'Service', '"Issuer"', '"Gateway"', 'int32'].map(withArticle)).toEqual([
    'an AuthorizationPolicy',
    'an EnvoyFilter',
    'a Service',
    'an "Issuer"',
    'a "Gateway"',
    'an int32',
  ]);
});
