import { expect, test } from 'vitest';
import { SavedFiles } from '../../tools/run/saved-files.ts';

const saving = (...names: readonly (string | null)[]): SavedFiles => {
  const saved = new SavedFiles();
  for (const [index, name] of names.entries()) saved.add(name, 100 + index);
  return saved;
};

test.each([
  [['routes.yaml'], 'routes.yaml was saved'],
  [['routes.yaml', 'gateway.yaml', 'routes.yaml'], 'gateway.yaml and routes.yaml were saved'],
  [['c.yaml', '.c.yaml.swp', 'a.yaml', null, 'b.yaml', '4913'], 'a.yaml, b.yaml and c.yaml were saved'],
  [['f.yaml', 'a.yaml', 'b.yaml', 'c.yaml', 'd.yaml', 'e.yaml'], 'a.yaml, b.yaml, c.yaml and 3 more were saved'],
])('of files that were saved together each is named: %j', (names, sentence) => {
  const saved = saving(...names);
  expect(saved.waited(200)).toBe(100);
  expect(saved.take()).toBe(sentence);
  expect(saved.waited(300)).toBeUndefined();
});

test('what editors keep for themselves does not count as a saved file', () => {
  expect(saving('.routes.yaml.swp', 'routes.yaml~', null).waited(200)).toBeUndefined();
});
