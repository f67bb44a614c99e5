import { expect, onTestFinished, test } from 'vitest';
import { FakeClock } from '../../testing/fake-clock.ts';
import type { KubeApi } from '../client/client.ts';
import { FreshNamespaces } from './fresh-namespaces.ts';

/** An API server that answers at once, or once it is told to; one that is deaf does not notice that nobody waits any more. */
function setup({ waits = false, deaf = false } = {}) {
  const clock = new FakeClock();
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const reads: string[] = [];
  const answers: (() => void)[] = [];
  const api = {
    get(
      _: string,
      { query, signal }: { readonly query: { readonly fieldSelector: string }; readonly signal: AbortSignal },
    ) {
      const name = query.fieldSelector.replace('metadata.name=', '');
      reads.push(name);
      const found = { items: [{ metadata: { name, labels: { read: `${reads.length}` } } }] };
      if (!waits) return Promise.resolve(found);
      return new Promise((resolve, reject) => {
        answers.push(() => resolve(found));
        if (!deaf) signal.addEventListener('abort', reject);
      });
    },
  } as unknown as KubeApi;
  const namespaces = new FreshNamespaces(api, clock, stopping.signal);
  /** The results so far, in the order of the calls. */
  const readBy = (caller: string, ...names: readonly string[]) => {
    const results: unknown[] = names.map(() => 'pending');
    for (const [i, name] of names.entries()) void namespaces.read(name, caller).then((found) => (results[i] = found));
    return results;
  };
  const read = (...names: readonly string[]) => readBy('api-server', ...names);
  return { clock, reads, answers, read, readBy, stopping };
}

const names = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${prefix}-${i}`);

test('a namespace that creates many Pods at once does not keep another one waiting', async () => {
  const { clock, reads, read } = setup();
  const busy = read(...Array<string>(500).fill('busy'));
  const [quiet] = [read('quiet')];
  await clock.settle();
  expect(quiet).toEqual([expect.objectContaining({ metadata: expect.objectContaining({ name: 'quiet' }) })]);
  expect(busy).not.toContain('pending');
  expect(busy).not.toContain(undefined);
  expect(reads.length).toBeLessThan(4);
});

test('nobody is told what was read before it asked', async () => {
  const { clock, reads, answers, read } = setup({ waits: true });
  const first = read('a');
  await clock.settle();
  const later = read('a', 'a');
  await clock.settle();
  for (const answer of answers) answer();
  await clock.settle();
  expect(first).toMatchObject([{ metadata: { labels: { read: '1' } } }]);
  for (const answer of answers) answer();
  await clock.settle();
  expect(later).toMatchObject([{ metadata: { labels: { read: '2' } } }, { metadata: { labels: { read: '2' } } }]);
  expect(reads).toEqual(['a', 'a']);
});

test('a namespace that asks again and again has its turn after those that asked meanwhile', async () => {
  const { clock, reads, read } = setup();
  // Nothing is left of what may be read at once.
  read(...names('first', 50));
  await clock.settle();
  read('busy', ...names('other', 3));
  await clock.advance(50);
  expect(reads.at(-1)).toBe('busy');
  read('busy');
  await clock.advance(200);
  expect(reads.slice(-4)).toEqual(['other-0', 'other-1', 'other-2', 'busy']);
});

test('many new namespaces wait for no longer than somebody does for a Pod, and others are refused at once', async () => {
  const { clock, reads, read } = setup();
  const many = read(...names('many', 1_000));
  await clock.settle();
  const refused = many.filter((each) => each === undefined).length;
  expect(reads).toHaveLength(50);
  await clock.advance(3_000);
  expect(many).not.toContain('pending');
  expect(many.filter((each) => each === undefined)).toHaveLength(refused);
  expect(reads.length).toBeGreaterThanOrEqual(100);
  // There is room again.
  const next = read('next');
  await clock.advance(50);
  expect(next).toMatchObject([{ metadata: { name: 'next' } }]);
});

test('whoever waits at the end is told', async () => {
  const { clock, read, stopping } = setup();
  const found = read(...names('a', 60));
  await clock.settle();
  expect(found).toContain('pending');
  stopping.abort();
  await clock.settle();
  expect(found).not.toContain('pending');
  expect(clock.pending).toBe(0);
});

test('a caller that asks for invented namespaces again and again keeps no other one waiting', async () => {
  const { clock, reads, readBy } = setup();
  for (let i = 0; i < 5; i++) {
    readBy('anybody', ...names(`invented-${i}`, 1_000));
    const found = readBy('api-server', ...names(`new-${i}`, 3));
    await clock.advance(400);
    expect(found).toEqual([expect.anything(), expect.anything(), expect.anything()]);
    await clock.advance(2_600);
  }
  expect(reads.length).toBeGreaterThan(200);
});

test('a namespace for which several callers wait is read once', async () => {
  const { clock, reads, readBy } = setup();
  readBy('a', ...names('first', 50));
  await clock.settle();
  const found = [readBy('a', 'x'), readBy('b', 'x'), readBy('c', 'y')];
  await clock.advance(200);
  expect(found.flat()).toEqual([expect.anything(), expect.anything(), expect.anything()]);
  expect(reads.slice(50)).toEqual(['x', 'y']);
});

test('an API server that does not answer is given up after a while', async () => {
  const { clock, read } = setup({ waits: true });
  const found = read('a');
  await clock.advance(2_900);
  expect(found).toEqual(['pending']);
  await clock.advance(200);
  expect(found).toEqual([undefined]);
  expect(clock.pending).toBe(0);
});

test('those who asked during a read share the next one, and whoever asks during that is not forgotten', async () => {
  const { clock, reads, answers, readBy } = setup({ waits: true });
  readBy('x', ...names('first', 49), 'a');
  const shared = [readBy('y', 'a'), readBy('z', 'a')];
  await clock.advance(50);
  answers[49]!();
  await clock.settle();
  // Nothing is left of what may be read at once.
  const late = readBy('x', 'a');
  await clock.advance(200);
  for (let i = 0; i < 3; i++) {
    for (const answer of answers) answer();
    await clock.advance(200);
  }
  expect([...shared.flat(), ...late]).toMatchObject(Array(3).fill({ metadata: { name: 'a' } }));
  expect(reads.slice(49)).toEqual(['a', 'a', 'a']);
});

test('a call to the API server that never ends keeps nobody waiting', async () => {
  const { clock, reads, read } = setup({ waits: true, deaf: true });
  const first = read('a');
  await clock.advance(2_000);
  const second = read('a');
  await clock.advance(1_000);
  expect(first).toEqual([undefined]);
  await clock.advance(3_000);
  expect([second, reads]).toEqual([[undefined], ['a', 'a']]);
  expect(clock.pending).toBe(0);
});

test('however many callers there are, no more wait than have their turn in time', async () => {
  const { clock, reads, readBy } = setup();
  readBy('first', ...names('first', 50));
  await clock.settle();
  const found = names('caller', 300).map((caller) => readBy(caller, `of-${caller}`));
  await clock.settle();
  const pending = found.flat().filter((each) => each === 'pending').length;
  expect(pending).toBe(60);
  await clock.advance(3_000);
  expect(found.flat()).not.toContain('pending');
  expect(reads).toHaveLength(50 + 60);
});

test('a caller without a read has its turn, however many one other waits for', async () => {
  const { clock, readBy } = setup();
  const many = readBy('many', ...names('many', 200));
  const one = readBy('one', 'shop');
  await clock.advance(150);
  expect(one).toMatchObject([{ metadata: { name: 'shop' } }]);
  // The last of the many made room for it.
  expect(many.filter((each) => each === undefined)).toHaveLength(200 - 50 - 60 + 1);
});

test('the bound includes those who asked during reads', async () => {
  const { clock, answers, readBy } = setup({ waits: true });
  readBy('a', ...names('n', 50));
  await clock.settle();
  const again = readBy('a', ...names('n', 50));
  const more = readBy('a', ...names('m', 100));
  await clock.settle();
  const toldAtOnce = more.filter((each) => each === undefined).length;
  for (const answer of answers) answer();
  await clock.settle();
  const waiting = [...again, ...more].filter((each) => each === 'pending').length;
  expect([toldAtOnce, waiting]).toEqual([40, 60]);
});

test('nobody waits longer for a turn than somebody does for a Pod, whoever comes between', async () => {
  const { clock, readBy } = setup();
  readBy('first', ...names('first', 50));
  const found = readBy('a', ...names('a', 30));
  const others = names('other', 29);
  for (let i = 0; i < 120; i++) {
    for (const other of others) readBy(other, `of-${other}-${i}`);
    await clock.advance(25);
  }
  await clock.advance(0);
  expect(found).not.toContain('pending');
  expect(found).toContain(undefined);
});
