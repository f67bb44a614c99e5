import { afterEach, describe, expect, test, vi } from 'vitest';
import { field } from '../../../test/harness/raw-ads.ts';
import { BARRIER_TIMES } from './barrier-times.ts';
import { MAX_ABSENT } from './composition.ts';
import { bytesInUse } from '../../testing/memory.ts';
import type { MemberChange } from '../store/publication.ts';
import type { Part } from '../store/resource.ts';
import { References } from '../store/served.ts';
import { type Item, Lab } from '../testing/lab.ts';
import {
  type Asked,
  CDS,
  decodeFrame,
  EDS,
  encodeRequest,
  LDS,
  RDS,
  resource,
  type Response,
  TestServer,
} from '../testing/world.ts';
import { MAX_NAMES, readRequest } from '../wire/wire-read.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

const kinds: [string, boolean][] = [
  ['delta', true],
  ['state of the world', false],
];

describe.each(kinds)('over %s', (_, delta) => {
  test('pieces of a rejected response that must wait for a cluster let the call end, and others go first', () => {
    const lab = new Lab(delta);
    const tables = ['r', 's'];
    lab.publish([CDS, 'c', '1'], [EDS, 'c', '1'], [RDS, 'r', '1', ['c']], [RDS, 's', '1', ['c']]);
    lab.take({ typeUrl: CDS });
    lab.take({ typeUrl: EDS, names: ['c'] });
    lab.take({ typeUrl: LDS });
    lab.take({ typeUrl: RDS, names: tables });
    lab.publish([RDS, 'r', '2', ['c']], [RDS, 's', '2', ['c']]);
    const { nonce } = lab.next()!;
    lab.ask({ typeUrl: RDS, nonce, names: delta ? [] : tables, error: 'Only unique values for domains are permitted' });
    lab.publish([CDS, 'd', '1'], [EDS, 'd', '1'], [RDS, 'r', '3', ['c', 'd']]);
    expect(lab.next()!.typeUrl).toBe(CDS);
    expect(lab.sent()).toEqual(['s@2']);
    expect(lab.next()).toBeUndefined();
  });

  test('a listener that is replaced keeps what it named until it has drained', () => {
    const lab = new Lab(delta);
    lab.publish([CDS, 'old', '1'], [CDS, 'new', '1'], [LDS, 'l', '1', ['old']]);
    lab.take({ typeUrl: CDS });
    lab.take({ typeUrl: LDS });
    lab.publish([CDS, 'old', undefined], [LDS, 'l', '2', ['new']]);
    expect(lab.pass(50)).toEqual(['1s lds l@2']);
    expect(lab.pass(4)).toEqual([delta ? '51s cds -old' : '51s cds new@1']);
  });

  test('records of responses that are never answered hold each name once', () => {
    const lab = new Lab(delta);
    lab.publish([CDS, 'c', '0']);
    lab.take({ typeUrl: CDS });
    for (let i = 1; i <= 1_000; i++) {
      lab.publish([CDS, 'c', String(i)]);
      lab.now += 10_000;
      lab.next();
    }
    const sent = [...lab.delivery.subscriptions[0]!.inFlight];
    expect(sent.length).toBeLessThanOrEqual(32);
    expect(sent.flatMap(({ batches }) => batches).length).toBeLessThanOrEqual(32);
  });

  test('an assignment that is sent with all others once more, and rejected, leaves the client what it has', () => {
    const lab = new Lab(delta);
    const names = ['c'];
    lab.publish([CDS, 'c', '1'], [EDS, 'c', '1']);
    lab.take({ typeUrl: CDS });
    lab.take({ typeUrl: EDS, names });
    lab.publish([CDS, 'warms', '1']);
    lab.pass(30, delta ? {} : { [EDS]: names }, CDS);
    // The second time that the answer to clusters is overdue, in the second in which the assignment changes.
    lab.publish([EDS, 'c', 'bad']);
    lab.now += 1_000;
    lab.delivery.tick(lab.now);
    const { nonce, resources } = lab.next()!;
    expect([...resources]).toEqual([['c', 'bad']]);
    lab.ask({ typeUrl: EDS, nonce, names: delta ? [] : names, error: 'malformed' });
    expect(lab.sent()).toEqual(['c@1']);
  });

  test('a client that comes back is told when the assignment of a live cluster left, and is left that of another', () => {
    const lab = new Lab(delta);
    lab.publish([CDS, 'c', '2']);
    const held = (names: readonly string[]): Partial<Asked> =>
      delta ? { initial: new Map(names.map((name) => [name, '1'])) } : { version: 'x' };
    lab.ask({ typeUrl: CDS, ...held(['c', 'd']) });
    lab.ask({ typeUrl: EDS, names: ['c', 'd'], ...held(['c', 'd']) });
    expect(lab.sent()).toEqual(['c@2']);
    expect(lab.sent()).toEqual(['c@absent']);
  });

  test('a cluster stays while a table is used that may have been taken from a rejected response', () => {
    const lab = new Lab(delta);
    const names = ['s', 't'];
    const reject = (): void => {
      const { nonce } = lab.next()!;
      lab.ask({
        typeUrl: RDS,
        nonce,
        names: delta ? [] : names,
        error: 'Only unique values for domains are permitted',
      });
    };
    lab.publish([CDS, 'c', '1'], [RDS, 's', '1'], [RDS, 't', '1']);
    for (const typeUrl of [CDS, LDS]) lab.take({ typeUrl });
    lab.take({ typeUrl: RDS, names });
    lab.publish([RDS, 's', 'bad'], [RDS, 't', '2', ['c']]);
    reject();
    lab.publish([CDS, 'c', undefined], [RDS, 't', 'bad']);
    reject();
    reject();
    const log: string[] = [];
    for (let i = 0; i < 30; i++) {
      lab.now += 1_000;
      lab.delivery.tick(lab.now);
      if (lab.delivery.subscriptions[0]!.ledger.kept === undefined) log.push(`${i}s`);
    }
    expect(log).toEqual([]);
  });

  test('what was rejected is tried again once the client has been given back what it had, however late that is', () => {
    const lab = new Lab(delta);
    const names: Readonly<Record<string, readonly string[]>> = delta ? {} : { [EDS]: ['a'], [RDS]: ['t', 'u'] };
    const answer = ({ typeUrl, nonce, version }: Response, error?: string): void =>
      lab.ask({ typeUrl, nonce, version, error, names: names[typeUrl] ?? [] });
    lab.publish([CDS, 'a', '1'], [EDS, 'a', '1'], [RDS, 't', '1', ['a']], [RDS, 'u', '1']);
    lab.take({ typeUrl: CDS });
    lab.take({ typeUrl: EDS, names: ['a'] });
    lab.take({ typeUrl: LDS });
    lab.take({ typeUrl: RDS, names: ['t', 'u'] });
    lab.publish([CDS, 'a', undefined], [RDS, 't', 'bad']);
    const bad = lab.next()!;
    lab.publish([CDS, 'a', '2']);
    const clusters = lab.next()!;
    const assignments = lab.next()!;
    answer(bad, 'Only unique values for domains are permitted');
    lab.publish([RDS, 'u', '2']);
    const other = lab.next()!;
    expect([bad, clusters, assignments, other].map(({ resources }) => [...resources.keys()].join())).toEqual([
      ...['t', 'a', 'a'],
      // The former table names a cluster that the client is yet to accept.
      'u',
    ]);
    answer(assignments);
    answer(clusters);
    // The client takes longer for its answer than a rejection counts.
    expect(lab.pass(61)).toEqual([]);
    answer(other);
    const back = lab.next()!;
    expect([...back.resources]).toEqual([['t', '1']]);
    answer(back);
    expect(lab.pass(1, names, RDS)).toEqual(['62s rds t@bad']);
  });

  test('names that do not exist are answered some thousands at a time, each once', () => {
    const lab = new Lab(delta);
    const names = Array.from({ length: 2 * MAX_ABSENT + 2 }, (_, i) => `n${i}`);
    lab.publish([EDS, 'n0', '1']);
    lab.ask({ typeUrl: EDS, names });
    const answered: string[][] = [];
    for (let response = lab.next(); response !== undefined; response = lab.next()) {
      answered.push([...response.resources.keys()]);
      expect(lab.next()).toBeUndefined();
      lab.ask({ typeUrl: EDS, names: delta ? [] : names, nonce: response.nonce, version: response.version });
    }
    expect(answered.map(({ length }) => length)).toEqual([MAX_ABSENT + 1, MAX_ABSENT, 1]);
    expect(new Set(answered.flat())).toEqual(new Set(names));
  });

  test('while the first answer to clusters is missing, all assignments are sent again without looking at each', () => {
    const lab = new Lab(delta);
    const names = Array.from({ length: 100 }, (_, i) => `c${i}`);
    lab.publish(
      ...names.flatMap((name): Item[] => [
        [CDS, name, '1'],
        [EDS, name, '1'],
      ]),
    );
    lab.ask({ typeUrl: CDS });
    lab.next();
    lab.take({ typeUrl: EDS, names });
    lab.pass(9, delta ? {} : { [EDS]: names }, CDS);
    const looked = vi.spyOn(lab.delivery.view, 'resolve');
    lab.now += 1_000;
    lab.delivery.tick(lab.now);
    expect(looked).not.toHaveBeenCalled();
    expect(lab.sent()).toEqual(names.map((name) => `${name}@1`));
  });

  test('while answers to clusters are missing, those that may be stuck are looked for less and less often', () => {
    const lab = new Lab(delta);
    const names = Array.from({ length: 100 }, (_, i) => `c${i}`);
    lab.publish([CDS, 'c', '1'], [EDS, 'c', '1']);
    lab.take({ typeUrl: CDS });
    lab.take({ typeUrl: EDS, names: ['c'] });
    lab.publish(...names.map((name): Item => [CDS, name, '1']), [EDS, 'c', '2']);
    lab.pass(1, delta ? {} : { [EDS]: ['c'] }, CDS);
    const looked = vi.spyOn(lab.delivery.view, 'resolve');
    lab.pass(60, delta ? {} : { [EDS]: ['c'] }, CDS);
    expect(looked.mock.calls.length).toBeLessThan(15 * names.length);
  });

  test.each([
    ['has all that they wait for, gets back those that it had', ['c', 'd'], ['c@1']],
    ['may still wait for an assignment, is left alone', ['c'], []],
  ])('a client that answers nothing about clusters, although it %s', (_title, asked, expected) => {
    const lab = new Lab(delta);
    lab.publish([CDS, 'c', '1'], [EDS, 'c', '1'], [LDS, 'l', '1', ['c']]);
    lab.take({ typeUrl: CDS });
    lab.take({ typeUrl: EDS, names: ['c'] });
    lab.take({ typeUrl: LDS });
    // Where its name is not asked for, the client may resolve it.
    lab.publish([CDS, 'c', '2'], [CDS, 'd', '1'], ...(asked.includes('d') ? [[EDS, 'd', '1'] as const] : []));
    lab.next();
    lab.ask({ typeUrl: EDS, names: delta ? asked.slice(1) : asked });
    const log = lab.pass(8, delta ? {} : { [EDS]: asked }, CDS);
    const clusters = log.filter((line) => line.includes(' cds c')).map((line) => line.split(' ')[2]);
    expect(clusters).toEqual(expected);
  });

  test('a request that names nothing asks for nothing', () => {
    const lab = new Lab(delta);
    lab.publish([CDS, 'a', '1']);
    lab.ask({ typeUrl: CDS, names: [''] });
    expect(lab.sent() ?? []).toEqual([]);
  });

  test('the message decides who is to blame, not what changed', () => {
    const lab = new Lab(delta);
    lab.publish([LDS, 'a', '1'], [LDS, 'b', '1']);
    lab.ask({ typeUrl: LDS });
    const first = lab.next()!;
    lab.ask({ typeUrl: LDS, nonce: first.nonce, error: 'Error adding/updating listener(s) a: no' });
    expect(lab.server.rejections).toEqual([{ name: 'a', version: '1' }]);
  });
});

test('a reconnecting SotW client keeps resources whose version is unknown', () => {
  for (const typeUrl of [EDS, RDS]) {
    const lab = new Lab(false);
    lab.publish([CDS, 'a', '1'], [typeUrl, 'a', 'bad']);
    lab.ask({ typeUrl, names: ['a'], version: '17' });
    const { nonce } = lab.next()!;
    lab.ask({ typeUrl, names: ['a'], nonce, version: '17', error: 'no' });
    expect(lab.pass(30, { [typeUrl]: ['a'] })).toEqual([]);
  }
});

test.each([CDS, LDS])('state of the world: what %s rejects after it came back stays in the state', (typeUrl) => {
  const lab = new Lab(false);
  lab.publish([typeUrl, 'a', 'bad'], [typeUrl, 'b', '1']);
  lab.ask({ typeUrl, version: '17' });
  const reject = (nonce: string): void =>
    lab.ask({ typeUrl, nonce, version: '17', error: 'Error adding/updating cluster(s) a: no' });
  reject(lab.next()!.nonce);
  const repeated = lab.next()!;
  expect([...repeated.resources.keys()].sort()).toEqual(['a', 'b']);
  reject(repeated.nonce);
  expect(lab.next()).toBeUndefined();
  lab.publish([typeUrl, 'b', '2']);
  expect(lab.sent()!.sort()).toEqual(['a@bad', 'b@2']);
});

test('state of the world: a rejection names what is unchanged, too', () => {
  const lab = new Lab(false);
  lab.publish([LDS, 'a', '1'], [LDS, 'b', '1']);
  lab.take({ typeUrl: LDS });
  lab.publish([LDS, 'b', '2']);
  const { nonce } = lab.next()!;
  lab.ask({ typeUrl: LDS, nonce, version: 'x', error: 'Error adding/updating listener(s) a: address in use' });
  expect(lab.server.rejections).toEqual([{ name: 'a', version: '1' }]);
});

test('state of the world: what is rejected in a state that is tried again stays in the state', () => {
  const lab = new Lab(false);
  lab.publish([LDS, 'a', '1'], [LDS, 'b', '1'], [LDS, 'c', '1']);
  lab.take({ typeUrl: LDS });
  const reject = (error: string): void => lab.ask({ typeUrl: LDS, nonce: lab.next()!.nonce, version: 'x', error });
  lab.publish([LDS, 'c', undefined]);
  reject('no');
  lab.publish([LDS, 'a', 'bad']);
  reject('no');
  lab.now += 120_000;
  lab.delivery.tick(lab.now);
  reject('Error adding/updating listener(s) a: no');
  lab.publish([LDS, 'b', '2']);
  expect(lab.sentNames()).toEqual(['a', 'b']);
});

test('state of the world: what was given up and asked for again before the response came is taken from that', () => {
  const lab = new Lab(false);
  const ask = ({ nonce, version }: Response, names: readonly string[]): void =>
    lab.ask({ typeUrl: RDS, names, nonce, version });
  lab.publish([RDS, 'a', '1']);
  lab.ask({ typeUrl: RDS, names: ['a'] });
  const first = lab.next()!;
  ask(first, ['a']);
  lab.publish([RDS, 'a', '2']);
  const second = lab.next()!;
  ask(first, []);
  ask(first, ['a']);
  ask(second, ['a']);
  expect(lab.next()).toBeUndefined();
});

test('state of the world: what a state left out that was rejected for something unchanged is left out once more', () => {
  const lab = new Lab(false);
  lab.publish([LDS, 'a', '1'], [LDS, 'b', '1']);
  lab.take({ typeUrl: LDS });
  lab.publish([LDS, 'a', undefined]);
  const reject = (nonce: string): void =>
    lab.ask({ typeUrl: LDS, nonce, version: 'x', error: 'Error adding/updating listener(s) b: no' });
  reject(lab.next()!.nonce);
  const { nonce, resources } = lab.next()!;
  expect([...resources]).toEqual([['b', '1']]);
  reject(nonce);
  expect(lab.next()).toBeUndefined();
});

test('state of the world: while answers to clusters are held back, tables go on, and one state each time a wait ends', () => {
  const lab = new Lab(false);
  lab.publish([CDS, 'c', '1'], [EDS, 'c', '1'], [RDS, 'r', '0', ['c']], [RDS, 's', '0', ['c']]);
  lab.take({ typeUrl: CDS });
  lab.take({ typeUrl: EDS, names: ['c'] });
  lab.take({ typeUrl: LDS });
  lab.take({ typeUrl: RDS, names: ['r', 's'] });
  const eds = ['c', 'n1', 'n2', 'n3', 'n4', 'n5'];
  for (let i = 1; i <= 5; i++) {
    lab.publish(
      [CDS, `n${i}`, '1'],
      [EDS, `n${i}`, '1'],
      [RDS, 'r', `${i}`, ['c', `n${i}`]],
      [RDS, 's', `${i}`, ['c']],
    );
    const log = lab.pass(12, { [EDS]: eds.slice(0, i + 1), [RDS]: ['r', 's'] }, CDS);
    expect(log.filter((line) => line.includes('rds')).map((line) => line.replace(/^\S+ /, ''))).toEqual(
      expect.arrayContaining([`rds r@${i}`, `rds s@${i}`]),
    );
  }
});

test('state of the world: three states of clusters go out without an answer, and then the newest each time a wait ends', () => {
  const lab = new Lab(false);
  lab.publish([CDS, 'c', '0']);
  lab.take({ typeUrl: CDS });
  const sent = [1, 2, 3, 4, 5].map((content) => {
    lab.publish([CDS, 'c', String(content)]);
    return lab.sent();
  });
  expect(sent).toEqual([['c@1'], ['c@2'], ['c@3'], undefined, undefined]);
  lab.now += BARRIER_TIMES.timeoutMs;
  expect(lab.sent()).toEqual(['c@5']);
  lab.publish([CDS, 'c', '6']);
  expect(lab.sent()).toBeUndefined();
});

test('state of the world: equal content has an equal version, whoever serves it', () => {
  const versions = [1, 2].map((n) => {
    const lab = new Lab(false);
    if (n === 2) lab.publish([CDS, 'a', '0']);
    lab.publish(...(n === 1 ? (['a', 'b'] as const) : (['b', 'a'] as const)).map((name): Item => [CDS, name, '1']));
    lab.ask({ typeUrl: CDS });
    return lab.next()!.version;
  });
  expect(versions[0]).toMatch(/^[0-9a-f]{24}$/);
  expect(versions[0]).toBe(versions[1]);
});

test.each([
  ['before', ['b@1']],
  ['after', ['b@1', 'b@1']],
])('state of the world: a table that is given up and asked for again %s it comes', (when, sends) => {
  const lab = new Lab(false);
  lab.publish([CDS, 'c', '1'], [RDS, 'b', '0']);
  lab.take({ typeUrl: CDS });
  lab.take({ typeUrl: RDS, names: ['b'] });
  lab.publish([RDS, 'b', '1', ['c']]);
  const { nonce, version, resources } = lab.next()!;
  const sent = [[...resources].map(([name, content]) => `${name}@${content}`)];
  const old = { typeUrl: RDS, nonce: '2' };
  lab.ask({ ...old, names: [] });
  if (when === 'before') lab.ask({ ...old, names: ['b'] });
  lab.ask({ typeUrl: RDS, nonce, version, names: ['b'] });
  for (let more = lab.sent(); more !== undefined; more = lab.sent()) sent.push(more);
  expect(sent.flat()).toEqual(sends);
});

test('state of the world: a cluster stays while a table that was asked for again on the way names it', () => {
  const lab = new Lab(false);
  lab.publish([CDS, 'c', '1'], [RDS, 'b', '0']);
  lab.take({ typeUrl: CDS });
  lab.take({ typeUrl: RDS, names: ['b'] });
  lab.publish([RDS, 'b', '1', ['c']]);
  const { nonce, version } = lab.next()!;
  for (const names of [[], ['b']]) lab.ask({ typeUrl: RDS, nonce: '2', names });
  lab.ask({ typeUrl: RDS, nonce, version, names: ['b'] });
  lab.publish([CDS, 'c', undefined], [RDS, 'b', undefined]);
  expect(lab.pass(30, { [RDS]: ['b'] })).toEqual([]);
});

test('delta: a name that was given up and asked for again is answered when what was on its way is rejected', () => {
  const lab = new Lab(true);
  lab.publish([EDS, 'a', '1']);
  lab.ask({ typeUrl: EDS, names: ['a'], initial: new Map([['a', '0']]) });
  const { nonce } = lab.next()!;
  lab.publish([EDS, 'a', undefined]);
  lab.ask({ typeUrl: EDS, unsubscribe: ['a'] });
  lab.ask({ typeUrl: EDS, names: ['a'] });
  lab.ask({ typeUrl: EDS, nonce, error: 'malformed' });
  expect(lab.sent()).toEqual(['a@absent']);
});

test.each([
  ['on its way', true],
  ['still to be sent', false],
])('delta: what is asked for once more, and rejected, leaves the client what it has: %s', (_, onItsWay) => {
  const lab = new Lab(true);
  lab.publish([EDS, 'a', '1']);
  lab.take({ typeUrl: EDS, names: ['a'] });
  const change = (): void => lab.publish([EDS, 'a', 'bad']);
  if (onItsWay) change();
  const sent = onItsWay ? lab.next() : undefined;
  lab.ask({ typeUrl: EDS, names: ['a'] });
  if (!onItsWay) change();
  const { nonce } = sent ?? lab.next()!;
  lab.ask({ typeUrl: EDS, nonce, error: 'malformed' });
  expect(lab.sent()).toEqual(['a@1']);
});

test('delta: what left the world, is asked for once more and comes back leaves the client what it has if it is rejected', () => {
  const lab = new Lab(true);
  lab.ask({ typeUrl: EDS, names: ['a'], initial: new Map([['a', '1']]) });
  lab.ask({ typeUrl: EDS, names: ['a'] });
  lab.publish([EDS, 'a', 'bad']);
  lab.ask({ typeUrl: EDS, nonce: lab.next()!.nonce, error: 'malformed' });
  expect(lab.sent()).toBeUndefined();
});

test('delta: a removal that was rejected is tried again, although what was sent in between is accepted', () => {
  const lab = new Lab(true);
  lab.ask({ typeUrl: CDS, names: ['a'] });
  const { nonce: rejected, removed } = lab.next()!;
  expect(removed).toEqual(['a']);
  lab.ask({ typeUrl: CDS, nonce: rejected, error: 'no' });
  lab.publish([CDS, 'a', '1']);
  const { nonce } = lab.next()!;
  lab.publish([CDS, 'a', undefined]);
  expect(lab.pass(10)).toEqual([]);
  lab.ask({ typeUrl: CDS, nonce });
  expect(lab.pass(120).map((line) => line.replace(/^\d+s /, ''))).toEqual([`${CDS} -a`]);
});

test('delta: what nobody has the bytes of is answered when it comes back, whatever was sent in between', () => {
  const lab = new Lab(true);
  lab.ask({ typeUrl: EDS, names: ['a'], initial: new Map([['a', '1']]) });
  lab.ask({ typeUrl: CDS });
  const clusters = (content: string | undefined): void => {
    lab.publish([CDS, 'a', content], [EDS, 'a', content && '1']);
  };
  lab.ask({ typeUrl: CDS, nonce: lab.next()!.nonce });
  clusters('1');
  lab.ask({ typeUrl: CDS, nonce: lab.next()!.nonce });
  // The assignment is owed behind its cluster, and both are gone before it is sent.
  clusters(undefined);
  expect(lab.next()).toBeUndefined();
  lab.publish([EDS, 'b', '1']);
  lab.ask({ typeUrl: EDS, names: ['b'] });
  expect(lab.sent()).toEqual(['b@1']);
  lab.ask({ typeUrl: EDS, nonce: String(lab.delivery.subscriptions[1]!.inFlight.sentNonce) });
  clusters('1');
  expect(lab.sent()).toEqual(['a@1']);
});

test('delta: what was rejected is answered when it is asked for again, where nobody has the bytes of what the client has', () => {
  const lab = new Lab(true);
  lab.publish([RDS, 'a', 'bad']);
  lab.ask({ typeUrl: RDS, names: ['a'], initial: new Map([['a', '1']]) });
  lab.ask({ typeUrl: RDS, nonce: lab.next()!.nonce, error: 'no' });
  expect(lab.next()).toBeUndefined();
  lab.ask({ typeUrl: RDS, names: ['a'] });
  expect(lab.sent()).toEqual(['a@bad']);
});

test('delta: an answer to the assignment of a former cluster says nothing of a new one that has none', () => {
  const lab = new Lab(true);
  lab.publish([CDS, 'c', 'eds'], [EDS, 'c', '1']);
  lab.take({ typeUrl: CDS });
  lab.take({ typeUrl: EDS, names: ['c'] });
  lab.take({ typeUrl: LDS });
  lab.publish([CDS, 'c', undefined], [EDS, 'c', undefined]);
  lab.pass(10);
  // It asks for the assignment of the former cluster until it has heard that this is gone.
  lab.publish([CDS, 'c', 'dns'], [LDS, 'l', '1', ['c']]);
  const { nonce } = lab.next()!;
  const former = lab.next()!;
  expect(former.typeUrl).toBe(EDS);
  lab.ask({ typeUrl: EDS, nonce: former.nonce });
  expect(lab.next()).toBeUndefined();
  lab.ask({ typeUrl: CDS, nonce });
  expect(lab.sent()).toEqual(['l@1']);
});

test('state of the world: who named names in a request that was not heard gives all up with an empty list', () => {
  const lab = new Lab(false);
  lab.publish([CDS, 'c', '1']);
  lab.ask({ typeUrl: CDS });
  const { nonce } = lab.next()!;
  lab.publish([CDS, 'c', '2']);
  const newest = lab.next()!.nonce;
  lab.ask({ typeUrl: CDS, nonce: newest });
  // It answers what is not the newest any more.
  lab.ask({ typeUrl: CDS, nonce, names: ['*', 'd'] });
  lab.ask({ typeUrl: CDS, nonce: newest, names: [] });
  lab.publish([CDS, 'c', '3']);
  expect(lab.next()).toBeUndefined();
});

test('state of the world: an assignment says nothing of a client whose newest cluster has none', () => {
  const lab = new Lab(false);
  lab.take({ typeUrl: CDS });
  lab.take({ typeUrl: LDS });
  lab.publish([CDS, 'c', 'eds'], [EDS, 'c', '1']);
  expect(lab.sent()).toEqual(['c@eds']);
  lab.publish([CDS, 'c', 'dns'], [EDS, 'c', undefined]);
  expect(lab.sent()).toEqual(['c@dns']);
  lab.publish([CDS, 'd', 'dns']);
  expect(lab.sentNames()).toEqual(['c', 'd']);
  // The answers to three responses are missing: the next cluster waits for them, its assignment does not.
  lab.publish([CDS, 'c', 'eds'], [EDS, 'c', '1'], [LDS, 'l', '1', ['c']]);
  lab.take({ typeUrl: EDS, names: ['c'] });
  expect(lab.next()).toBeUndefined();
});

test.each(kinds)(
  '%s: who asks for a table that must wait is sent it when it need not, and nothing before',
  (_, delta) => {
    const lab = new Lab(delta);
    lab.take({ typeUrl: CDS });
    lab.publish([LDS, 'l', '1']);
    lab.take({ typeUrl: LDS });
    lab.publish([CDS, 'c', '1'], [RDS, 't', '1', ['c']]);
    const { nonce } = lab.next()!;
    lab.ask({ typeUrl: RDS, names: ['t'] });
    expect(lab.next()).toBeUndefined();
    lab.ask({ typeUrl: CDS, nonce });
    expect(lab.sent()).toEqual(['t@1']);
  },
);

test('delta: what is asked for twice before the first answer was not held before', () => {
  const lab = new Lab(true);
  lab.take({ typeUrl: CDS });
  lab.publish([CDS, 'c', '1'], [RDS, 'a', 'bad']);
  lab.ask({ typeUrl: RDS, names: ['a'] });
  lab.ask({ typeUrl: RDS, names: ['a'] });
  expect(lab.sent()).toEqual(['c@1']);
  lab.ask({ typeUrl: RDS, nonce: lab.next()!.nonce, error: 'malformed' });
  expect(lab.sent()).toEqual(['a@absent']);
});

test('delta: a table that is known by its version only holds no cluster back for longer than listeners drain', () => {
  const lab = new Lab(true);
  lab.publish([CDS, 'a', '1'], [CDS, 'b', '1'], [RDS, 's', '1', ['a']]);
  lab.take({ typeUrl: CDS, initial: new Map([['a', '1']]) });
  lab.ask({ typeUrl: LDS, initial: new Map([['x', '1']]) });
  lab.ask({
    typeUrl: RDS,
    names: ['gone', 's'],
    initial: new Map([
      ['gone', '7'],
      ['s', '1'],
    ]),
  });
  lab.pass(60);
  lab.publish([CDS, 'b', undefined]);
  expect(lab.pass(60)).toEqual([expect.stringContaining('cds -b')]);
});

test('delta: an assignment that comes from another list under another qualifier counts as changed, not as new', () => {
  const server = new TestServer();
  const publish = (list: string, qualifier: string, content: string): void =>
    server.store.apply({
      members: [{ list, typeUrl: EDS, name: 'a', qualifier, resource: resource(EDS, 'a', content) }],
      lists: [],
    });
  publish('one', '', '1');
  publish('two', 'x', '2');
  server.store.apply({ members: [], lists: [{ list: 'root', children: ['one'] }] });
  const delivery = server.open(server.store.enter({ roots: ['root'], qualifiers: ['x'] }), true);
  const ask = (asked: Asked): void => delivery.request(encodeRequest(asked, true, server.hasher), 0);
  const next = (): Response => decodeFrame(delivery.next(0)!.slices, true);
  ask({ typeUrl: EDS, names: ['a'] });
  ask({ typeUrl: EDS, nonce: next().nonce });
  server.store.apply({ members: [], lists: [{ list: 'root', children: ['two'] }] });
  ask({ typeUrl: EDS, nonce: next().nonce, error: 'malformed' });
  expect([...next().resources]).toEqual([['a', '1']]);
});

test.each([
  ['the content of the second', ['first', 'Y'], ['second', 'Z'], ['Y']],
  ['nothing, and the second goes on', ['first', undefined], ['second', 'Z'], ['Z']],
  ['what it had, while the second changes', ['first', 'X'], ['second', 'X'], undefined],
])('a name in two roots is what the first one has: that becomes %s', (_, first, second, sent) => {
  for (const order of [
    [first, second],
    [second, first],
  ]) {
    for (const together of [true, false]) {
      const server = new TestServer();
      const publish = (...contents: readonly (readonly (string | undefined)[])[]): void => {
        const members = contents.map(([list, content]): MemberChange => ({
          list: list!,
          typeUrl: EDS,
          name: 'a',
          qualifier: '',
          ...(content === undefined ? {} : { resource: resource(EDS, 'a', content) }),
        }));
        server.store.apply({ members, lists: [] });
      };
      publish(['first', 'X'], ['second', 'Y']);
      const delivery = server.open(server.store.enter({ roots: ['first', 'second'], qualifiers: [] }), true);
      const ask = (asked: Asked): void => delivery.request(encodeRequest(asked, true, server.hasher), 0);
      const next = (): Response | undefined => {
        const frame = delivery.next(0);
        return frame && decodeFrame(frame.slices, true);
      };
      ask({ typeUrl: EDS, names: ['a'] });
      ask({ typeUrl: EDS, nonce: next()!.nonce });
      if (together) publish(...order);
      else for (const each of order) publish(each);
      const response = next();
      expect(response && [...response.resources.values()]).toEqual(sent);
      if (response === undefined) continue;
      ask({ typeUrl: EDS, nonce: response.nonce, error: 'malformed' });
      expect([...next()!.resources.values()]).toEqual(['X']);
    }
  }
});

test('looking for what of a table must wait costs as much as the table, or what is new, not both multiplied', () => {
  const leaves = Array.from({ length: 2_000 }, (_, i) => leafNaming(`old-${i}`));
  const nodes = Array.from({ length: 100 }, (_, i) => nodeOf(leaves.slice(i * 20, i * 20 + 20)));
  const wanted = new CountingMap(Array.from({ length: 2_000 }, (_, i) => [`new-${i}`, true]));
  expect(new References().find(nodeOf(nodes), wanted, () => true)).toBe(false);
  expect(wanted.looks).toBeLessThanOrEqual(2_000);
});

class CountingMap extends Map<string, boolean> {
  looks = 0;

  override has(key: string): boolean {
    this.looks++;
    return super.has(key);
  }
}

function leafNaming(cluster: string): Part {
  return { bytes: new Uint8Array(), length: 0, hash: cluster, clusters: [cluster], origins: [] };
}

function nodeOf(children: readonly Part[]): Part {
  return { children, length: 0, hash: '' };
}

test('the words of a rejection are not kept with the names that it mentions', () => {
  const lab = new Lab(false);
  const clusters = Array.from({ length: 20 }, (_, i) => `a-cluster-with-a-long-name-${i}`);
  lab.publish(...clusters.map((name): Item => [CDS, name, '1']), [CDS, 'other', '1']);
  lab.take({ typeUrl: CDS });
  const before = bytesInUse('heapUsed');
  for (const name of clusters) {
    lab.publish([CDS, 'other', name]);
    const message = Buffer.concat([Buffer.from(`${name}: no `), Buffer.alloc(1_000_000, 'x')]);
    const error = field(6, field(2, message));
    for (let response = lab.next(); response !== undefined; response = lab.next()) {
      const { nonce, version } = response;
      const request = Buffer.concat([field(1, version), field(4, CDS), field(5, nonce), error]);
      lab.delivery.request(readRequest(request, lab.server.hasher), lab.now);
    }
  }
  expect([...lab.delivery.subscriptions[0]!.ledger.rejections!.names.keys()].length).toBeGreaterThan(15);
  expect(bytesInUse('heapUsed') - before).toBeLessThan(10_000_000);
});

describe('clusters that were sent one by one to a client that does not answer', () => {
  function lab(): { lab: Lab; nonces: string[] } {
    const lab = new Lab(true);
    lab.publish([LDS, 'l', '1'], [CDS, 'c', '1']);
    lab.take({ typeUrl: CDS });
    lab.take({ typeUrl: LDS });
    const nonces = Array.from({ length: 100 }, (_, i) => {
      lab.publish([CDS, `c${i}`, '1']);
      lab.now += 10;
      return lab.next()!.nonce;
    });
    lab.publish([LDS, 'l', '2', ['c2', 'c98']]);
    return { lab, nonces };
  }

  test('are not looked for one by one', () => {
    const { lab: client } = lab();
    client.publish([LDS, 'l', '3', ['c98']]);
    const looked = vi.spyOn(References.prototype, 'find');
    expect(client.sent()).toBeUndefined();
    expect(looked.mock.calls.length).toBeLessThan(20);
  });

  test('are waited for until the last of them is answered', () => {
    const { lab: client, nonces } = lab();
    for (const nonce of nonces) {
      expect(client.sent()).toBeUndefined();
      client.ask({ typeUrl: CDS, nonce });
      if (nonce === nonces[98]) break;
    }
    expect(client.sent()).toEqual(['l@2']);
  });

  test('are waited for no longer than others', () => {
    const { lab: client } = lab();
    expect(client.pass(11, {}, CDS).filter((line) => line.includes(LDS))).toEqual(['11s lds l@2']);
  });
});

test('a stream has a limited number of names of a type, in one request or in several', () => {
  const names = Array.from({ length: MAX_NAMES }, (_, i) => `${i}`);
  for (const [, delta] of kinds)
    expect(() => new Lab(delta).ask({ typeUrl: RDS, names: [...names, 'more'] })).toThrow('too many names');
  const lab = new Lab(true);
  lab.ask({ typeUrl: RDS, names: names.slice(1) });
  lab.ask({ typeUrl: RDS, names: names.slice(0, 1) });
  expect(() => lab.ask({ typeUrl: RDS, names: ['more'] })).toThrow('the stream has too many names');
});
