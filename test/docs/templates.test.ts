import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { valueTable } from '../../src/injection/template-values.ts';

const guide = readFileSync(join(import.meta.dirname, '../../docs/guide/sidecars.md'), 'utf8');

test('the guide has every value of templates with its meaning, and no other', () => {
  const rows = [...guide.matchAll(/^\| `\$\{(\w+)\}` \| (.*) \|$/gm)].map(([, name, meaning]) => [name, meaning]);
  expect(rows).toEqual(Object.entries(valueTable).map(([name, [meaning]]) => [name, meaning]));
});
