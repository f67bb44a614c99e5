import { expect, test } from 'vitest';
import { Concern } from '../store/rollout.ts';
import { Rollouts } from '../store/rollouts.ts';
import { Awaited, type Standing } from './awaited.ts';
import { InFlight } from './in-flight.ts';
import { UNSENT } from './sent.ts';

const recipient = { stream: 's', nodeId: 'n', build: '', tenant: '' };
const everything = { has: () => true, names: { has: () => true } };

test.each([
  ['owed', false],
  ['on its way', true],
])('a client that does not answer is waited for with few concerns, however much is %s', (_, isSent) => {
  const rollouts = new Rollouts({ after: () => {}, settled: () => {}, changed: () => {} });
  const all = Array.from({ length: 100 }, (__, i) => rollouts.begin(`object ${i}`));
  const awaited = new Awaited(recipient);
  const inFlight = new InFlight(true, everything);
  const standing: Standing = { all: false, pending: undefined, inFlight, refusedOf: () => new Map() };
  const open = new Set<Concern>();
  for (const [i, rollout] of all.entries()) {
    awaited.owe(new Concern('type', new Map([[`name ${i}`, [rollout]]])));
    if (isSent) {
      const sent = { ...UNSENT };
      inFlight.add(sent);
      inFlight.handed(sent, { nonce: i + 1, version: '' }, 0);
      awaited.look(standing);
    }
    open.clear();
    for (const { concerns } of all) for (const concern of concerns) if (concern.waiting.size > 0) open.add(concern);
    expect(open.size).toBeLessThanOrEqual(isSent ? 48 : 17);
    expect(all.slice(0, i + 1).every((each) => each.waiting().has(recipient))).toBe(true);
  }
  const last = { ...UNSENT };
  inFlight.add(last);
  inFlight.handed(last, { nonce: 101, version: '' }, 0);
  awaited.look(standing);
  const sent = [...inFlight];
  inFlight.clear();
  awaited.answered(sent, [], standing);
  expect(all.some((each) => each.waiting().has(recipient))).toBe(false);
});

test('an only client that leaves has acknowledged nothing', () => {
  const rollouts = new Rollouts({ after: () => {}, settled: () => {}, changed: () => {} });
  const rollout = rollouts.begin('object');
  const awaited = new Awaited(recipient);
  awaited.owe(new Concern('type', new Map([['name', [rollout]]])));
  expect(rollout.reached()).toBe(1);
  awaited.close([]);
  expect(rollout.reached()).toBe(0);
});
