import { expect, test } from 'vitest';
import { Concern } from '../rollouts/rollout.ts';
import { originKey } from '../store/origins.ts';
import { Rollouts } from '../rollouts/rollouts.ts';
import { Awaited, type Standing } from './awaited.ts';
import { InFlight } from './in-flight.ts';
import { CDS, decodeFrame, encodeRequest, resource, TestServer } from '../testing/world.ts';
import { UNSENT } from './sent.ts';

const recipient = { stream: 's', nodeId: 'n', build: '', tenant: '' };
const ORIGIN = { group: 'g', kind: 'K', source: 'test', namespace: 'n', name: 'o', uid: '', generation: 1 };
const everything = { has: () => true, names: { has: () => true } };

test.each([
  ['owed', false],
  ['on its way', true],
])('a client that does not answer is waited for with few concerns, however much is %s', (_, isSent) => {
  const rollouts = new Rollouts({ after: () => {}, settled: () => {}, changed: () => {} });
  const all = Array.from({ length: 100 }, (__, i) => rollouts.begin(`object ${i}`));
  const awaited = new Awaited(recipient);
  const inFlight = new InFlight(true, everything);
  const standing: Standing = { all: false, pending: undefined, inFlight, rejectedOf: () => new Map() };
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

test('who takes it and leaves while another one says nothing is not counted', () => {
  const server = new TestServer();
  const rollout = server.rollouts.begin(originKey(ORIGIN));
  const view = server.store.enter({ roots: ['mesh'], qualifiers: [] });
  const member = { list: 'mesh', typeUrl: CDS, name: 'a', qualifier: '', rollouts: [rollout] };
  server.store.apply({ members: [{ ...member, resource: resource(CDS, 'a', '1', [], [ORIGIN]) }], lists: [] });
  server.frames.outdate();
  const connect = ({ answers }: { answers: boolean }) => {
    const delivery = server.open(view, true);
    delivery.request(encodeRequest({ typeUrl: CDS, names: ['a'] }, true, server.hasher), 0);
    const { nonce } = decodeFrame(delivery.next(0)!.slices, true);
    if (answers) delivery.request(encodeRequest({ typeUrl: CDS, nonce }, true, server.hasher), 0);
    return delivery;
  };
  connect({ answers: false });
  connect({ answers: true }).close();
  connect({ answers: true });
  expect(rollout.waiting().size).toBe(1);
  expect(rollout.reached()).toBe(2);
});
