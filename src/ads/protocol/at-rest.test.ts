import { describe, expect, test } from 'vitest';
import { Lab } from '../testing/lab.ts';
import { CDS, EDS, LDS, RDS } from '../testing/world.ts';

const NAMES = { [EDS]: ['a', 'b'], [RDS]: ['t'] };

function labOf(delta: boolean): Lab {
  const lab = new Lab(delta);
  for (const name of ['a', 'b']) lab.publish([CDS, name, '1'], [EDS, name, '1']);
  lab.publish([LDS, 'l', '1'], [RDS, 't', '1', ['a']]);
  return lab;
}

function connect(lab: Lab, asked: { readonly version?: string } = {}): void {
  lab.take({ typeUrl: CDS, names: [], ...asked });
  lab.take({ typeUrl: EDS, names: NAMES[EDS], ...asked });
  lab.take({ typeUrl: LDS, names: [], ...asked });
  lab.take({ typeUrl: RDS, names: NAMES[RDS], ...asked });
}

describe.each([
  ['delta', true],
  ['state of the world', false],
])('%s: time that passes makes no work', (_, delta) => {
  const names = delta ? {} : NAMES;

  test('for a client that has everything', () => {
    const lab = labOf(delta);
    expect(lab.delivery.awaitsTime).toBe(false);
    connect(lab);
    expect(lab.delivery.awaitsTime).toBe(false);
    lab.publish([EDS, 'a', '2']);
    expect(lab.delivery.awaitsTime).toBe(true);
    lab.pass(1, names);
    expect(lab.delivery.awaitsTime).toBe(false);
  });

  test('for a client that came back, once it cannot have former listeners any more', () => {
    const lab = labOf(delta);
    connect(lab, delta ? {} : { version: 'former' });
    lab.pass(60, names);
    expect(lab.delivery.awaitsTime).toBe(false);
  });

  test('once a cluster has come, and once it has gone', () => {
    const lab = labOf(delta);
    connect(lab);
    lab.publish([CDS, 'c', '1'], [EDS, 'c', '1']);
    const { nonce, version } = lab.next()!;
    expect(lab.delivery.awaitsTime).toBe(true);
    lab.ask({ typeUrl: CDS, names: [], nonce, version });
    lab.pass(60, names);
    lab.publish([CDS, 'b', '2']);
    lab.pass(1, names);
    expect(lab.delivery.awaitsTime).toBe(false);
    lab.publish([CDS, 'b', undefined], [EDS, 'b', undefined]);
    lab.pass(1, names);
    expect(lab.delivery.awaitsTime).toBe(true);
    lab.pass(60, names);
    expect(lab.delivery.awaitsTime).toBe(false);
  });

  test('except for what it has rejected, which is tried again', () => {
    const lab = labOf(delta);
    connect(lab);
    lab.publish([LDS, 'l', '2']);
    const { nonce, version } = lab.next()!;
    lab.ask({ typeUrl: LDS, names: [], nonce, version, error: 'l is bad' });
    lab.pass(1, names);
    expect(lab.delivery.awaitsTime).toBe(true);
  });
});

describe('a client that comes back has acknowledged what it was sent before', () => {
  const comesWith = (...initial: readonly (readonly [string, string])[]): Lab => {
    const lab = labOf(true);
    lab.ask({ typeUrl: CDS, names: [], initial: new Map(initial) });
    return lab;
  };

  test('if that is all there is: nothing may be sent to it', () => {
    const lab = comesWith(['a', '1'], ['b', '1']);
    expect(lab.next()).toBeUndefined();
    expect(lab.delivery.acknowledged).toBe(true);
  });

  test('if that is some of what there is', () => {
    expect(comesWith(['a', '1'], ['b', 'former'], ['gone', '1']).delivery.acknowledged).toBe(true);
  });

  test('not if nothing of it is current', () => {
    const lab = comesWith(['a', 'made up'], ['gone', '1']);
    expect(lab.delivery.acknowledged).toBe(false);
    lab.ask({ typeUrl: CDS, names: [], nonce: lab.next()!.nonce });
    expect(lab.delivery.acknowledged).toBe(true);
  });
});
