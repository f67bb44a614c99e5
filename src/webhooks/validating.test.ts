import { expect, test } from 'vitest';
import { failingSoft, validate } from './validating.ts';

test('an object that a bug of ours keeps from being checked is admitted, with a warning', () => {
  const bug = new RangeError('too deep');
  const errors: unknown[] = [];
  const check = failingSoft(
    () => {
      throw bug;
    },
    (error) => errors.push(error),
  );
  const object = {
    apiVersion: 'networking.istio.io/v1',
    kind: 'VirtualService',
    metadata: { name: 'v', namespace: 'shop' },
    spec: {},
  };
  const request = { uid: '1', operation: 'CREATE', subresource: '', namespace: 'shop', name: 'v', object } as const;
  expect(validate(request as unknown as Parameters<typeof validate>[0], check)).toEqual({
    allowed: true,
    warnings: ['was not checked because of an internal error in Fairlead; please report it'],
  });
  expect(errors).toEqual([bug]);
});
