import { expect, test } from 'vitest';
import type { Verdict } from '../mesh/findings/conditions.ts';
import type { AllocatedAddress } from '../model/address-claim.ts';
import { StatusesWithAddresses } from './statuses-with-addresses.ts';

const verdict = (kind: Verdict['kind']): Verdict => {
  return { kind, namespace: 'shop', name: 'a', uid: 'u', generation: 1, said: [] };
};

test('a ServiceEntry is written again when its addresses change, and other kinds have none', () => {
  const written: [key: string, addresses: readonly string[] | undefined][] = [];
  let addresses: readonly AllocatedAddress[] = [];
  const statuses = new StatusesWithAddresses(
    {
      set: (key, status) => written.push([key, status.addresses?.map(({ value }) => value)]),
      forget: () => undefined,
    },
    () => addresses,
  );
  // Nothing is known about its conditions yet: they would be taken away.
  statuses.again('entry');
  statuses.set('entry', verdict('ServiceEntry'));
  addresses = [{ value: '240.240.0.1', host: 'a.com' }];
  statuses.again('entry');
  statuses.set('rule', verdict('DestinationRule'));
  statuses.again('rule');
  statuses.forget('entry');
  statuses.again('entry');
  expect(written).toEqual([
    ['entry', []],
    ['entry', ['240.240.0.1']],
    ['rule', undefined],
  ]);
});
