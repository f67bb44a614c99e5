import { describe, expect, test } from 'vitest';
import { Lab } from '../testing/lab.ts';
import { CDS, EDS, LDS, RDS } from '../testing/world.ts';

/** A listener that is about to lead to another table, once the client can use the cluster of that. */
function labWithOwedListener(delta: boolean): Lab {
  const lab = new Lab(delta);
  lab.publish([CDS, 'a', '1'], [EDS, 'a', '1'], [LDS, 'l', 'to t', ['a']], [RDS, 't', '1', ['a']]);
  for (const asked of [{ typeUrl: CDS }, { typeUrl: EDS, names: ['a'] }, { typeUrl: LDS }]) lab.take(asked);
  lab.take({ typeUrl: RDS, names: ['t'] });
  lab.publish([CDS, 'b', '1'], [EDS, 'b', '1'], [LDS, 'l', 'to v', ['b']], [RDS, 'v', '1', ['b']]);
  expect(lab.sentNames()).toContain('b');
  expect(lab.sent()).toBeUndefined();
  return lab;
}

describe.each([
  ['delta', true],
  ['state of the world', false],
])('over %s', (_, delta) => {
  const asks = { typeUrl: RDS, names: delta ? ['u'] : ['t', 'u'], ...(!delta && { nonce: '4' }) };

  test('a table that left the world is not answered while the listener that replaces its own is owed', () => {
    const lab = labWithOwedListener(delta);
    lab.ask(asks);
    expect(lab.sent()).toBeUndefined();
    // The client can use the cluster: it gets the listener, and then the answer, if it still asks.
    lab.ask({ typeUrl: CDS, nonce: '5', version: '5' });
    expect(lab.sent()).toEqual(['l@to v']);
    expect(lab.sent()).toEqual(['u@absent']);
  });

  test('it is answered after a time in any case', () => {
    const lab = labWithOwedListener(delta);
    lab.ask(asks);
    expect(lab.sent()).toBeUndefined();
    lab.now += lab.server.times.timeoutMs - 1;
    expect(lab.sent()).toBeUndefined();
    lab.now += 1;
    expect(lab.sent()).toEqual(['u@absent']);
  });

  test('with nothing else on its way, it is answered at once', () => {
    const lab = new Lab(delta);
    lab.publish([LDS, 'l', '1']);
    lab.take({ typeUrl: LDS });
    lab.ask({ typeUrl: RDS, names: ['u'] });
    expect(lab.sent()).toEqual(['u@absent']);
  });
});

describe('a client that comes back in state of the world, while what it asked for leaves the world', () => {
  /** `version`: as the client reports it for the type. */
  function labThatLoses(typeUrl: string, name: string, version: string): Lab {
    const lab = new Lab(false);
    lab.publish([CDS, 'a', '1'], [EDS, 'a', '1'], [LDS, 'l', 'to t'], [RDS, 't', '1'], [RDS, 'u', '1']);
    lab.ask({ typeUrl: CDS, version: '7' });
    lab.ask({ typeUrl, names: [name], version });
    lab.publish([typeUrl, name, undefined]);
    const { version: ofClusters, nonce } = lab.next()!;
    lab.ask({ typeUrl: CDS, version: ofClusters, nonce });
    return lab;
  }

  test('a table is kept: former listeners may route by it', () => {
    expect(labThatLoses(RDS, 'u', '7').sent() ?? []).toEqual([]);
  });

  test('a table that it cannot have is answered', () => {
    expect(labThatLoses(RDS, 'u', '').sent()).toEqual(['u@absent']);
  });

  test('the assignment of a live cluster is answered: the cluster would wait for it', () => {
    expect(labThatLoses(EDS, 'a', '7').sent()).toEqual(['a@absent']);
  });
});
