import { expect, test } from 'vitest';
import { selected, selects } from './labels.ts';

test('those that have all labels are selected, in their order', () => {
  const all = ['v1', 'v2', 'v1'].map((version, i) => ({ i, labels: { app: 'a', version } }));
  for (const selector of [{}, { app: 'a' }, { version: 'v1' }, { app: 'a', version: 'v2' }, { app: 'b' }, { tier: '' }])
    expect(selected(all, selector)).toEqual(all.filter(({ labels }) => selects(selector, labels)));
});

test('labels that nobody has are not looked for in each element', () => {
  let looks = 0;
  const labels = new Proxy<Record<string, string>>(
    { app: 'a' },
    {
      get(target, name) {
        looks++;
        return Reflect.get(target, name) as unknown;
      },
    },
  );
  const all = Array.from({ length: 1_000 }, () => ({ labels }));
  const selector = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`a${i}`, '']));
  expect(selected(all, selector)).toEqual([]);
  expect(looks).toBeLessThanOrEqual(all.length);
});
