import { expect, test } from 'vitest';
import { addToEvery, removeFromEvery, splitEvery, wrongInEvery } from './every-container.ts';

const pod = {
  spec: {
    containers: [
      { name: 'cart', env: [{ name: 'A', value: 'own' }] },
      { name: 'istio-proxy', env: [] },
      { name: '__proto__', volumeMounts: [{ name: 'v', mountPath: '/v' }] },
    ],
  },
};
const env = ['A', 'B'].map((name) => ({ name, value: 'ours' }));

test('all containers but the proxy get what they do not have, and lose it again', () => {
  const { patch, every } = splitEvery({ spec: { containers: [{ name: '*', env }, { name: 'istio-proxy' }] } });
  expect(patch).toEqual({ spec: { containers: [{ name: 'istio-proxy' }] } });
  const { pod: extended, inContainers } = addToEvery(pod, every);
  expect(extended['spec']).toEqual({
    containers: [
      { name: 'cart', env: [env[1], { name: 'A', value: 'own' }] },
      { name: 'istio-proxy', env: [] },
      { name: '__proto__', env, volumeMounts: [{ name: 'v', mountPath: '/v' }] },
    ],
  });
  expect(removeFromEvery(extended, JSON.parse(JSON.stringify(inContainers)))).toEqual(pod);
});

test.each([7, [], { cart: 7 }, { cart: { env: 'A' } }, { cart: { env: [7] }, more: {} }])(
  'a record that somebody has changed to %j removes nothing',
  (record) => expect(removeFromEvery(pod, record)).toEqual(pod),
);

test('a template can add nothing else to all containers', () => {
  expect(wrongInEvery({ spec: { containers: [{ name: '*', env, image: 'a' }] } })).toMatch(
    /^has image; .*env and volumeMounts/,
  );
  expect(wrongInEvery({ spec: { containers: [{ name: '*', env }] } })).toBeUndefined();
});
