import { describe, expect, test } from 'vitest';
import { Lab } from '../testing/lab.ts';
import { CDS, EDS, LDS, RDS } from '../testing/world.ts';

/** Clients that ask for everything with `*`, beside names or for a time. */

test('state of the world: what `*` brought stays in the state when it is asked for by name and another is rejected', () => {
  const lab = new Lab(false);
  lab.publish([LDS, 'a', '1'], [LDS, 'b', '1']);
  lab.take({ typeUrl: LDS });
  lab.publish([LDS, 'a', 'bad']);
  const names = ['*', 'b'];
  lab.ask({ typeUrl: LDS, names, nonce: String(lab.delivery.subscriptions[2]!.inFlight.ackedNonce) });
  lab.ask({ typeUrl: LDS, names, nonce: lab.next()!.nonce, version: 'x', error: 'no' });
  expect(lab.sent()).toEqual(['a@1', 'b@1']);
});

test('state of the world: what was asked for by name stays in the state when it is rejected after all was asked for', () => {
  const lab = new Lab(false);
  lab.publish([LDS, 'a', '1'], [LDS, 'b', '1']);
  lab.take({ typeUrl: LDS, names: ['a'] });
  lab.publish([LDS, 'a', 'bad']);
  lab.ask({ typeUrl: LDS, names: ['*', 'a'], nonce: String(lab.delivery.subscriptions[2]!.inFlight.ackedNonce) });
  const { nonce } = lab.next()!;
  lab.ask({
    typeUrl: LDS,
    names: ['*', 'a'],
    nonce,
    version: 'x',
    error: 'Error adding/updating listener(s) a: no',
  });
  expect(lab.sentNames()).toEqual(['a', 'b']);
});

test('state of the world: an empty list after `*` gives all up', () => {
  const lab = new Lab(false);
  lab.publish([LDS, 'a', '1']);
  lab.take({ typeUrl: LDS, names: ['*'] });
  lab.ask({ typeUrl: LDS, names: [], nonce: lab.delivery.subscriptions[2]!.inFlight.ackedNonce.toString() });
  lab.publish([LDS, 'a', '2']);
  expect(lab.next()).toBeUndefined();
});

test('delta: names asked for beside `*` are answered when `*` is given up before the first answer', () => {
  const lab = new Lab(true);
  lab.publish([CDS, 'a', '1'], [CDS, 'b', '1']);
  lab.ask({ typeUrl: CDS, names: ['*', 'b'] });
  lab.ask({ typeUrl: CDS, unsubscribe: ['*'] });
  expect(lab.sent()).toEqual(['b@1']);
});

test.each([EDS, RDS])(
  'delta: %s that only `*` brought is told to be gone, and what was asked for by name is kept',
  (typeUrl) => {
    const lab = new Lab(true);
    for (const name of ['a', 'b', 'c']) lab.publish([typeUrl, name, '1']);
    lab.take({ typeUrl, names: ['*', 'a', 'b'] });
    lab.publish([typeUrl, 'a', undefined], [typeUrl, 'b', undefined], [typeUrl, 'c', undefined]);
    const { removed, nonce } = lab.next()!;
    expect(removed).toEqual(['c']);
    lab.ask({ typeUrl, nonce });
    const { kept } = lab.delivery.subscriptions.find((each) => each?.type.typeUrl === typeUrl)!.ledger;
    expect([...kept!.keys()]).toEqual(['a', 'b']);
    lab.ask({ typeUrl, unsubscribe: ['a'] });
    expect(lab.next()!.removed).toEqual(['a']);
  },
);

test('delta: what left the world while `*` was given up is told to be gone if it was on its way', () => {
  const lab = new Lab(true);
  lab.publish([LDS, 'a', '1']);
  lab.ask({ typeUrl: LDS, names: ['*'] });
  const { nonce } = lab.next()!;
  lab.ask({ typeUrl: LDS, unsubscribe: ['*'] });
  lab.publish([LDS, 'a', undefined]);
  lab.ask({ typeUrl: LDS, names: ['*'] });
  lab.ask({ typeUrl: LDS, nonce });
  expect(lab.next()!.removed).toEqual(['a']);
});

test('delta: of a name that `*` takes the place of in the same request the client is told that it is gone', () => {
  const lab = new Lab(true);
  lab.publish([CDS, 'a', '1'], [CDS, 'b', '1']);
  lab.take({ typeUrl: CDS, names: ['a'] });
  lab.publish([CDS, 'a', undefined]);
  lab.ask({ typeUrl: CDS, names: ['*'], unsubscribe: ['a'] });
  expect(lab.pass(70).filter((line) => line.endsWith(`${CDS} -a`))).toHaveLength(1);
});

describe.each([
  ['delta', true],
  ['state of the world', false],
])('over %s, who gives `*` up is sent nothing more that only `*` brought', (_, delta) => {
  function giveUp(lab: Lab, typeUrl: string): void {
    const nonce = String(lab.delivery.subscriptions.find((each) => each?.type.typeUrl === typeUrl)!.inFlight.sentNonce);
    lab.ask(delta ? { typeUrl, unsubscribe: ['*'] } : { typeUrl, names: ['b'], nonce });
  }

  test('although it changed before', () => {
    const lab = new Lab(delta);
    lab.publish([LDS, 'a', '1'], [LDS, 'b', '1']);
    lab.take({ typeUrl: LDS, names: ['*', 'b'] });
    lab.publish([LDS, 'a', '2']);
    giveUp(lab, LDS);
    expect(lab.next()).toBeUndefined();
  });

  test('although it was rejected, and would be tried again', () => {
    const lab = new Lab(delta);
    lab.publish([LDS, 'a', '1'], [LDS, 'b', '1']);
    lab.take({ typeUrl: LDS, names: ['*', 'b'] });
    lab.publish([LDS, 'a', 'bad']);
    const { nonce, version } = lab.next()!;
    lab.ask({ typeUrl: LDS, names: delta ? [] : ['*', 'b'], nonce, version, error: 'listener(s) a: no' });
    lab.pass(1, delta ? {} : { [LDS]: ['*', 'b'] });
    giveUp(lab, LDS);
    expect(lab.pass(70)).toEqual([]);
  });

  test('although it was kept for something that may use it', () => {
    const lab = new Lab(delta);
    lab.publish([CDS, 'a', '1'], [CDS, 'b', '1']);
    lab.take({ typeUrl: CDS, names: ['*', 'b'] });
    lab.publish([CDS, 'a', undefined]);
    giveUp(lab, CDS);
    expect(lab.pass(70)).toEqual([]);
  });
});
