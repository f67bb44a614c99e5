import { describe, expect, test } from 'vitest';
import { BARRIER_TIMES } from './barrier.ts';
import { Lab } from '../testing/lab.ts';
import { CDS, EDS, LDS, RDS, UNREADY } from '../testing/world.ts';

/** A client that routes by table t, which names cluster a; it has b, too. */
function labOf(delta: boolean): Lab {
  const lab = new Lab(delta);
  for (const name of ['a', 'b']) lab.publish([CDS, name, '1'], [EDS, name, 'ready']);
  lab.publish([LDS, 'l', '1:t'], [RDS, 't', '1:a', ['a']]);
  lab.take({ typeUrl: CDS });
  lab.take({ typeUrl: EDS, names: ['a', 'b'] });
  lab.take({ typeUrl: LDS });
  lab.take({ typeUrl: RDS, names: ['t'] });
  return lab;
}

describe.each([
  ['delta', true],
  ['state of the world', false],
])('over %s', (_, delta) => {
  const answer = (lab: Lab, names: readonly string[]): string[] => {
    const { typeUrl, nonce, version, resources } = lab.next()!;
    lab.ask({ typeUrl, nonce, version, names: delta ? [] : names });
    return [...resources].map(([name, content]) => `${typeUrl} ${name}@${content}`);
  };

  test('an assignment loses its last endpoint after the table that leaves its cluster', () => {
    const lab = labOf(delta);
    lab.publish([EDS, 'a', UNREADY], [EDS, 'b', 'other'], [RDS, 't', '2:b', ['b']]);
    expect(answer(lab, ['a', 'b'])).toEqual([`${EDS} b@other`]);
    expect(answer(lab, ['t'])).toEqual([`${RDS} t@2:b`]);
    expect(answer(lab, ['a', 'b'])).toEqual([`${EDS} a@${UNREADY}`]);
  });

  test('a cluster that stays in use is emptied at once', () => {
    const lab = labOf(delta);
    lab.publish([EDS, 'a', UNREADY], [RDS, 't', '2:a', ['a']]);
    expect(answer(lab, ['a', 'b'])).toEqual([`${EDS} a@${UNREADY}`]);
    expect(answer(lab, ['t'])).toEqual([`${RDS} t@2:a`]);
  });

  test('it is emptied when the table is accepted, and without an answer when the wait is over', () => {
    for (const accepts of [true, false]) {
      const lab = labOf(delta);
      lab.publish([EDS, 'a', UNREADY], [RDS, 't', '2:b', ['b']]);
      const { typeUrl, nonce, version } = lab.next()!;
      expect(lab.next()).toBeUndefined();
      if (accepts) lab.ask({ typeUrl, nonce, version, names: delta ? [] : ['t'] });
      else lab.now += BARRIER_TIMES.timeoutMs;
      expect(answer(lab, ['a', 'b'])).toEqual([`${EDS} a@${UNREADY}`]);
    }
  });

  test('a table waits for the first endpoint of its cluster while an earlier assignment is unanswered', () => {
    const lab = labOf(delta);
    lab.publish([EDS, 'b', UNREADY]);
    const { typeUrl, nonce, version } = lab.next()!;
    lab.publish([EDS, 'b', 'ready'], [RDS, 't', '2:b', ['b']]);
    expect(lab.next()).toBeUndefined();
    lab.ask({ typeUrl, nonce, version, names: delta ? [] : ['a', 'b'] });
    expect(answer(lab, ['a', 'b'])).toEqual([`${EDS} b@ready`]);
    expect(answer(lab, ['t'])).toEqual([`${RDS} t@2:b`]);
  });
});
