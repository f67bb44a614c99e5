import { expect, test } from 'vitest';
import { reconcileMeshConfig } from './mesh-config.ts';

const read = (text: string) => {
  const { config, problems } = reconcileMeshConfig(text);
  return { selectors: config.discoverySelectors, said: problems.map(({ field, message }) => `${field} ${message}`) };
};

test('selectors are read with their requirements', () => {
  expect(
    read(`
discoverySelectors:
- matchLabels: { a: b }
- matchExpressions: [{ key: env, operator: In, values: [one, two] }, { key: old, operator: DoesNotExist }]
- {}
`),
  ).toEqual({
    selectors: [
      { matchLabels: { a: 'b' }, matchExpressions: [] },
      {
        matchLabels: {},
        matchExpressions: [
          { key: 'env', operator: 'In', values: ['one', 'two'] },
          { key: 'old', operator: 'DoesNotExist', values: [] },
        ],
      },
      { matchLabels: {}, matchExpressions: [] },
    ],
    said: [],
  });
});

test.each([
  ['{ operator: Is, key: a }', 'operator "Is" is not one of In, NotIn, Exists, DoesNotExist.'],
  ['{ operator: In, key: a }', 'values must not be empty with In.'],
  ['{ operator: Exists, key: a, values: [b] }', 'values must be empty with Exists.'],
  ['{ operator: Exists }', 'key is not set; name a label.'],
  ['7', ' must be an object.'],
])('a mistake is named, and then all namespaces are selected: %s', (requirement, message) => {
  const { selectors, said } = read(
    `discoverySelectors: [{ matchLabels: { a: b } }, { matchExpressions: [${requirement}] }]`,
  );
  expect(selectors).toEqual([]);
  expect(said).toEqual([`discoverySelectors[1].matchExpressions[0]${message.startsWith(' ') ? '' : '.'}${message}`]);
});
