import { expect, test } from 'vitest';
import { FakeClock } from '../testing/fake-clock.ts';
import { Refusals } from './refusals.ts';

test('every refusal is counted, and an address is named once a minute', async () => {
  const clock = new FakeClock();
  const said: string[] = [];
  const refusals = new Refusals(
    (reason, address) => said.push(`${address} ${reason}`),
    () => clock.now(),
  );
  for (const reason of ['token', 'token', 'handshake']) refusals.add(reason, '10.0.0.1');
  refusals.add('token', '10.0.0.2');
  await clock.advance(60_000);
  refusals.add('none', '10.0.0.1');
  expect(said).toEqual(['10.0.0.1 token', '10.0.0.2 token', '10.0.0.1 none']);
  expect([...refusals.counts]).toEqual([
    ['token', 3],
    ['handshake', 1],
    ['none', 1],
  ]);
});

test('addresses that are no longer heard of are forgotten', () => {
  let lines = 0;
  const refusals = new Refusals(
    () => lines++,
    () => 0,
  );
  for (let i = 0; i <= 10_000; i++) refusals.add('token', `10.0.0.${i}`);
  refusals.add('token', '10.0.0.0');
  expect(lines).toBe(10_002);
});
