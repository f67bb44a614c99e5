import { describe, expect, test } from 'vitest';
import { BARRIER_TIMES } from './barrier-times.ts';
import { type Item, Lab } from '../testing/lab.ts';
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

  test('an assignment loses its last endpoint a while after the table that leaves its cluster', () => {
    const lab = labOf(delta);
    lab.publish([EDS, 'a', UNREADY], [EDS, 'b', 'other'], [RDS, 't', '2:b', ['b']]);
    expect(answer(lab, ['a', 'b'])).toEqual([`${EDS} b@other`]);
    expect(answer(lab, ['t'])).toEqual([`${RDS} t@2:b`]);
    // Requests that the former table has routed may be tried again.
    lab.now += BARRIER_TIMES.lingerMs - 1;
    expect(lab.next()).toBeUndefined();
    lab.now += 1;
    expect(answer(lab, ['a', 'b'])).toEqual([`${EDS} a@${UNREADY}`]);
  });

  test('a cluster that has been emptied once is waited for as before', () => {
    const lab = labOf(delta);
    const leave = (content: string): void => {
      lab.publish([EDS, 'a', UNREADY], [RDS, 't', content, ['b']]);
      expect(answer(lab, ['t'])).toEqual([`${RDS} t@${content}`]);
      expect(lab.next()).toBeUndefined();
      lab.now += BARRIER_TIMES.lingerMs;
      expect(answer(lab, ['a', 'b'])).toEqual([`${EDS} a@${UNREADY}`]);
    };
    leave('2:b');
    lab.now += BARRIER_TIMES.timeoutMs;
    lab.publish([EDS, 'a', 'ready'], [RDS, 't', '3:a', ['a']]);
    expect(answer(lab, ['a', 'b'])).toEqual([`${EDS} a@ready`]);
    expect(answer(lab, ['t'])).toEqual([`${RDS} t@3:a`]);
    leave('4:b');
  });

  test('a cluster that is changed meanwhile has the endpoints that it had: without any it would warm until then', () => {
    const lab = labOf(delta);
    lab.publish([CDS, 'a', '2'], [EDS, 'a', UNREADY], [RDS, 't', '2:b', ['b']]);
    expect(lab.next()!.resources.get('a')).toBe('2');
    expect(answer(lab, ['a', 'b'])).toEqual([`${EDS} a@ready`]);
    expect(answer(lab, ['t'])).toEqual([`${RDS} t@2:b`]);
    expect(lab.next()).toBeUndefined();
    lab.now += BARRIER_TIMES.lingerMs;
    expect(answer(lab, ['a', 'b'])).toEqual([`${EDS} a@${UNREADY}`]);
    expect(lab.next()).toBeUndefined();
  });

  test('a cluster that stays in use is emptied at once', () => {
    const lab = labOf(delta);
    lab.publish([EDS, 'a', UNREADY], [RDS, 't', '2:a', ['a']]);
    expect(answer(lab, ['a', 'b'])).toEqual([`${EDS} a@${UNREADY}`]);
    expect(answer(lab, ['t'])).toEqual([`${RDS} t@2:a`]);
  });

  test('it is emptied without an answer to the table when the wait is over', () => {
    const lab = labOf(delta);
    lab.publish([EDS, 'a', UNREADY], [RDS, 't', '2:b', ['b']]);
    lab.next();
    lab.now += BARRIER_TIMES.timeoutMs - 1;
    expect(lab.next()).toBeUndefined();
    lab.now += 1;
    expect(answer(lab, ['a', 'b'])).toEqual([`${EDS} a@${UNREADY}`]);
  });

  test('it is emptied at once when a table leads to its cluster again', () => {
    const lab = labOf(delta);
    lab.publish([EDS, 'a', UNREADY], [RDS, 't', '2:b', ['b']]);
    expect(answer(lab, ['t'])).toEqual([`${RDS} t@2:b`]);
    expect(lab.next()).toBeUndefined();
    lab.publish([RDS, 't', '3:a', ['a']]);
    expect(answer(lab, ['a', 'b'])).toEqual([`${EDS} a@${UNREADY}`]);
  });

  test('while an assignment is held back, what listeners refer to is looked up once', () => {
    const lab = labOf(delta);
    let reads = 0;
    const clusters = new Proxy(['b'], { get: (all, key) => (reads++, Reflect.get(all, key) as unknown) });
    lab.publish([LDS, 'tcp', '1', clusters]);
    answer(lab, []);
    lab.publish([EDS, 'a', UNREADY], [RDS, 't', '2:b', ['b']]);
    lab.next();
    expect(lab.next()).toBeUndefined();
    const before = reads;
    expect(before).toBeGreaterThan(0);
    lab.now += 1;
    expect(lab.next()).toBeUndefined();
    expect(reads).toBe(before);
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

  test('a table waits for a cluster that comes back as another one while the client still has the former', () => {
    const lab = labOf(delta);
    lab.publish([RDS, 't', '2:b', ['b']]);
    answer(lab, ['t']);
    lab.publish([CDS, 'a', undefined], [EDS, 'a', undefined]);
    expect(lab.next()).toBeUndefined();
    lab.publish([CDS, 'a', '2'], [EDS, 'a', 'other'], [RDS, 't', '3:a', ['a']]);
    expect(lab.next()!.resources.get('a')).toBe('2');
    const { typeUrl, nonce, version } = lab.next()!;
    expect([typeUrl, lab.next()]).toEqual([EDS, undefined]);
    lab.ask({ typeUrl, nonce, version, names: delta ? [] : ['a', 'b'] });
    expect(answer(lab, ['t'])).toEqual([`${RDS} t@3:a`]);
  });
});

describe('over state of the world, to a client that leaves so many responses unanswered that it is not sent another one', () => {
  const names: Readonly<Record<string, readonly string[]>> = { [EDS]: ['a', 'b'], [RDS]: ['t'] };

  /** Its table names b, and a is gone; it is sent what comes, and answers when the test says so. */
  function slowClient(): { lab: Lab; sent: () => string | undefined; answer: (typeUrl: string) => void } {
    const lab = labOf(false);
    const answers = new Map<string, () => void>();
    const sent = (): string | undefined => {
      const response = lab.next();
      if (response === undefined) return undefined;
      const { typeUrl, nonce, version, resources } = response;
      answers.set(typeUrl, () => lab.ask({ typeUrl, nonce, version, names: names[typeUrl] ?? [] }));
      return [typeUrl, ...Array.from(resources, ([name, content]) => `${name}@${content}`)].join(' ');
    };
    const answer = (typeUrl: string): void => answers.get(typeUrl)!();
    lab.publish([RDS, 't', '2:b', ['b']]);
    sent();
    answer(RDS);
    for (const content of ['2', '3', '4']) {
      lab.publish([CDS, 'b', content]);
      expect(sent()).toBe(`${CDS} a@1 b@${content}`);
    }
    sent();
    answer(EDS);
    lab.publish([CDS, 'a', undefined], [EDS, 'a', undefined]);
    expect(sent()).toBeUndefined();
    return { lab, sent, answer };
  }

  test('a table waits for a cluster that comes back as another one', () => {
    const { lab, sent, answer } = slowClient();
    lab.publish([CDS, 'a', '2'], [EDS, 'a', 'other'], [RDS, 't', '3:a', ['a']]);
    expect(sent()).toBe(`${EDS} a@other`);
    answer(EDS);
    expect(sent()).toBeUndefined();
    answer(CDS);
    expect([sent(), sent()]).toEqual([`${CDS} b@4 a@2`, `${EDS} a@other`]);
    expect(sent()).toBeUndefined();
    answer(CDS);
    expect(sent()).toBe(`${RDS} t@3:a`);
  });

  test.each<[string, Item[]]>([
    ['at once', []],
    ['after it has left once more', [[CDS, 'a', undefined]]],
  ])('no table waits for a cluster that is again what the client has: %s', (_, meanwhile) => {
    const { lab, sent } = slowClient();
    lab.publish([CDS, 'a', '2'], [EDS, 'a', 'ready'], [RDS, 't', '3:a', ['a']]);
    expect(sent()).toBeUndefined();
    if (meanwhile.length > 0) {
      lab.publish(...meanwhile, [RDS, 't', '2:b', ['b']]);
      expect(sent()).toBeUndefined();
    }
    lab.publish([CDS, 'a', '1'], [RDS, 't', '4:a', ['a']]);
    expect(sent()).toBe(`${RDS} t@4:a`);
  });
});
