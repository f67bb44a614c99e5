import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { isObject } from '../../src/api/json.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** Names of values in the second column of the table, and after it. */
function named(): string[] {
  const [, section = ''] = /^## Values of istiod's chart\n(.*)/ms.exec(read('docs/guide/from-istiod-and-back.md')) ?? [];
  const columns = section.split('\n').flatMap((line) => (line.startsWith('| `') ? [line.split(' | ')[1] ?? ''] : []));
  expect(columns.length).toBeGreaterThan(20);
  const after = section.slice(section.indexOf('Only in Fairlead:'));
  const names = [...`${columns.join()}${after}`.matchAll(/`([a-z][A-Za-z.]+)`/g)].map(([, name = '']) => name);
  return names.filter((name) => !['value', 'valueFrom', 'defaultConfig.tracing.sampling', 'global'].includes(name));
}

test('every value of the chart that the guide names beside one of istiod exists', () => {
  const values = parse(read('charts/fairlead/values.yaml')) as unknown;
  const exists = (name: string): boolean => {
    let place = values;
    for (const step of name.split('.')) {
      if (!isObject(place) || !Object.hasOwn(place, step)) return false;
      place = place[step];
    }
    return true;
  };
  expect(named().filter((name) => !exists(name))).toEqual([]);
});
