import { expect, test, vi } from 'vitest';
import { namesIn, Rejections, shortMessage } from './rejections.ts';

test.each([
  [
    'Error adding/updating cluster(s) bad1: cannot create, bad2: cluster manager: no',
    ['bad1', 'bad2', 'bad', 'good'],
    ['bad1', 'bad2'],
  ],
  [
    'Error adding/updating listener(s) 0.0.0.0_80: Proto constraint',
    ['0.0.0.0_80', '0.0.0.0_8080', '0'],
    ['0.0.0.0_80'],
  ],
  [
    'Error adding/updating cluster(s) outbound|80||a.b: no',
    ['outbound|80||a.b', 'outbound|80||a.b.c', 'outbound|80||a'],
    ['outbound|80||a.b'],
  ],
  ['Error adding/updating listener(s) [::]_80: no', ['[::]_80', '_80'], ['[::]_80']],
  ['malformed IP address: nonsense', ['a', 'IP.address'], []],
  [
    'xDS response validation errors: [resource index 0: cluster_1: INVALID_ARGUMENT]',
    ['cluster_1', 'cluster_2'],
    ['cluster_1'],
  ],
  ['cluster[a]: no, [b] no', ['a', 'b', 'cluster'], ['cluster', 'a', 'b']],
  ['in a:: no', ['a', 'a:', 'a::'], ['a::']],
  ['', ['a', ''], []],
])('%s', (message, names, mentioned) => {
  expect(namesIn(message, new Set(names))).toEqual(mentioned);
});

test('a message costs its length to search, however many names it may mention', () => {
  const names = new CountingSet(Array.from({ length: 1_000 }, (_, i) => 'a'.repeat(i + 1)));
  expect(namesIn('a'.repeat(16_384), names)).toEqual([]);
  expect(names.looks).toBeLessThanOrEqual(2);
});

class CountingSet extends Set<string> {
  looks = 0;

  override has(name: string): boolean {
    this.looks++;
    return super.has(name);
  }

  override *[Symbol.iterator](): SetIterator<string> {
    for (const name of super[Symbol.iterator]()) {
      this.looks++;
      yield name;
    }
  }
}

test('a long message is cut to what was found wrong', () => {
  const config = 'goo.gle/debugproto   \nstat_prefix: "x"\n'.repeat(1000);
  const message = `Error adding/updating listener(s) a: ${config}: Proto constraint validation failed (X: value length)`;
  expect(shortMessage(message)).toBe('Proto constraint validation failed (X: value length)');
  expect(shortMessage('x'.repeat(5000))).toHaveLength(1024);
  expect(shortMessage('goo.gle/debugproto  \nname: "80"\nvirtual_hosts {')).toBe(
    'invalid, but the message ends before it says why',
  );
  expect(shortMessage('cannot bind\n')).toBe('cannot bind');
});

test('of a client that rejects very many names, little is kept of what it says of each', () => {
  const rejections = new Rejections();
  const words = 'x'.repeat(1_000);
  for (let i = 0; i < 5_000; i++)
    rejections.reject(`${i}`, {
      ...{ version: '1', held: undefined, now: 0, about: 1, after: 1 },
      suspected: false,
      message: words,
    });
  const lengths = Array.from({ length: 5_000 }, (_, i) => rejections.messageOf(`${i}`, '1')!.length);
  expect(lengths[0]).toBe(1_000);
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBeLessThan(1_500_000);
});

test('a rejected version is tried again after a time that doubles with every rejection, up to an hour', () => {
  const rejections = new Rejections();
  const reject = (now: number): void =>
    rejections.reject('a', { version: 'v', held: undefined, now, about: 1, after: 1, suspected: false, message: 'no' });
  let now = 0;
  const waits: number[] = [];
  reject(now);
  for (let i = 0; i < 9; i++) {
    expect(rejections.forbids('a', 'v')).toBe(true);
    let wait = 0;
    while ([...rejections.due(now + wait, undefined)].length === 0) wait += 30_000;
    waits.push(wait / 60_000);
    now += wait;
    expect(rejections.forbids('a', 'v')).toBe(false);
    reject(now);
  }
  expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
});

test('another version is not a rejected version', () => {
  const rejections = new Rejections();
  rejections.reject('a', { version: 'v', held: 'u', now: 0, about: 1, after: 1, suspected: false, message: 'no' });
  expect(rejections.forbids('a', 'w')).toBe(false);
  expect(rejections.forbids('b', 'v')).toBe(false);
  rejections.accepted('a', 'w', 2, true);
  expect(rejections.has('a')).toBe(false);
});

test('of what was rejected, all that is due is tried again, once', () => {
  const rejections = new Rejections();
  const reject = (name: string, now: number): void =>
    rejections.reject(name, {
      version: '1',
      held: undefined,
      now,
      about: 1,
      after: 1,
      suspected: false,
      message: 'no',
    });
  reject('first', 0);
  reject('later', 1_000);
  expect([...rejections.due(59_999, undefined)]).toEqual([]);
  expect([...rejections.due(60_000, undefined)]).toEqual([['first', undefined]]);
  expect([...rejections.due(60_500, undefined)]).toEqual([]);
  expect([...rejections.due(61_000, undefined)]).toEqual([['later', undefined]]);
});

test('what was rejected is not looked at while nothing is due', () => {
  const rejections = new Rejections();
  rejections.reject('a', {
    version: '1',
    held: undefined,
    now: 0,
    about: 1,
    after: 1,
    suspected: false,
    message: 'no',
  });
  let looked = 0;
  const values = vi.spyOn(Map.prototype, 'values').mockImplementation(function () {
    looked++;
    return new Map<unknown, unknown>().entries();
  });
  const due = [...rejections.due(59_999, undefined)];
  values.mockRestore();
  expect({ due, looked }).toEqual({ due: [], looked: 0 });
});
