import { expect, test } from 'vitest';
import type { Recipient, Rejected } from './recipient.ts';
import { Concern, type Rollout } from './rollout.ts';
import { RejectedState } from './rejected-by-name.ts';
import { Rollouts } from './rollouts.ts';

const [one, other, third] = ['one', 'other', 'third'].map((stream): Recipient => ({
  stream,
  nodeId: '',
  build: '',
  tenant: '',
})) as [Recipient, Recipient, Recipient];
const a: Rejected = { typeUrl: 'cds', name: 'a', version: 'v', message: 'no', origins: new Set() };
const rejected = new Map([['a', a]]);

class Lab {
  #timers: (() => void)[] = [];
  readonly rollouts = new Rollouts({
    after: (_, work) => void this.#timers.push(work),
    settled: () => {},
    changed: () => {},
  });
  readonly rollout: Rollout = this.rollouts.begin('object');

  concern(typeUrl: string, ...recipients: readonly Recipient[]): Concern {
    const concern = new Concern(typeUrl, new Map([['a', [this.rollout]]]));
    for (const recipient of recipients) concern.begin(recipient);
    return concern;
  }

  /** It has changed again, and they acknowledge it. */
  takes(name: string, ...recipients: readonly Recipient[]): void {
    const concern = new Concern('cds', new Map([[name, [this.rollout]]]));
    for (const recipient of recipients) concern.begin(recipient);
    for (const recipient of recipients) concern.end(recipient);
    this.pass();
  }

  pass(): void {
    // What is given up now may be wanted again soon.
    for (let check = 0; check < 2; check++) for (const work of this.#timers.splice(0)) work();
  }
}

test('clients with other interests have opinions on the same resource', () => {
  const lab = new Lab();
  const own = lab.concern('cds', one);
  const others = lab.concern('cds', other, third);
  own.reject(one, rejected);
  expect(own.opinionsOn('a')).toMatchObject({ takers: [] });
  expect([...own.opinionsOn('a').waiting]).toEqual([one, other, third]);
  expect([...others.opinionsOn('a').rejections.keys()]).toEqual([one]);
  others.end(other);
  expect(own.opinionsOn('a')).toMatchObject({ takers: [other], waiting: new Set([one, third]) });
});

test('who has acknowledged it does not change its opinion when nobody else is waited for', () => {
  const lab = new Lab();
  const own = lab.concern('cds', one);
  own.reject(one, rejected);
  lab.concern('cds', other).end(other);
  lab.pass();
  expect(lab.rollout.concerns).toEqual(new Set([own]));
  expect(own.opinionsOn('a').takers).toEqual([other]);
});

test('the same name of another type is something else', () => {
  const lab = new Lab();
  const own = lab.concern('cds', one);
  lab.concern('eds', other).end(other);
  expect(own.opinionsOn('a')).toMatchObject({ takers: [], waiting: new Set([one]) });
});

test('nobody can make it forgotten that others have taken it', () => {
  const lab = new Lab();
  const [liar, mate] = [1, 2].map((i) => ({ ...one, stream: `liar ${i}`, tenant: 'liar' })) as [Recipient, Recipient];
  const own = lab.concern('cds', liar);
  own.reject(liar, rejected);
  const taker = { ...other, tenant: 'other' };
  lab.concern('cds', taker).end(taker);
  lab.pass();
  for (let i = 0; i < 1_000; i++) lab.takes('b', mate);
  expect(own.opinionsOn('a').takers).toEqual([taker]);
  expect([...lab.rollout.present()].length).toBeLessThanOrEqual(129);
});

test('clients that have not proven their tenant cannot make it forgotten either, nor does what they take count', () => {
  const lab = new Lab();
  const own = lab.concern('cds', one);
  const tenants = ['x', 'y', 'z'].map((tenant) => ({ ...other, stream: tenant, tenant }));
  const [x, y] = tenants as [Recipient, Recipient];
  const both = lab.concern('cds', x, y);
  for (const taker of [x, y]) both.end(taker);
  for (let i = 0; i < 98; i++) lab.takes('b', tenants[i % 3]!);
  for (let i = 0; i < 1_000; i++) lab.takes('b', third);
  expect(own.opinionsOn('a').takers).toEqual([x, y]);
  const kept = [...lab.rollout.present()].filter(({ reached }) => [...reached].some(({ tenant }) => tenant !== ''));
  expect(kept).toHaveLength(99);
  expect([...lab.rollout.present()].length).toBeLessThanOrEqual(256);
});

test('what several tenants have in common counts against none of them', () => {
  const lab = new Lab();
  const own = lab.concern('cds', one);
  const [x, y] = ['x', 'y'].map((tenant) => ({ ...other, stream: tenant, tenant })) as [Recipient, Recipient];
  lab.concern('cds', x).end(x);
  for (let i = 0; i < 1_000; i++) lab.takes('b', x, y);
  expect(own.opinionsOn('a').takers).toEqual([x]);
});

test('however many clients come and go, few of them are remembered', () => {
  const lab = new Lab();
  const own = lab.concern('cds', one, third);
  own.end(third);
  const taker = { ...other, tenant: 'other' };
  for (let i = 0; i < 5_000; i++) {
    const guest = i === 0 ? taker : { ...other, stream: `guest ${i}` };
    own.begin(guest);
    own.end(guest);
    lab.rollouts.left(guest);
  }
  expect([...own.reached].length).toBeLessThan(500);
  expect(own.opinionsOn('a').takers).toEqual(expect.arrayContaining([third, taker]));
  expect(lab.rollout.reached()).toBe(2);
});

test('what those have acknowledged who are all gone still counts', () => {
  const lab = new Lab();
  lab.concern('cds', one).end(one);
  lab.rollouts.left(one);
  expect(lab.rollout.reached()).toBe(1);
});

test('what clients made of an earlier generation does not count', () => {
  const lab = new Lab();
  lab.concern('cds', other).end(other);
  lab.concern('cds', third);
  lab.rollout.restart();
  const own = lab.concern('cds', one);
  expect(own.opinionsOn('a')).toMatchObject({ takers: [], waiting: new Set([one]) });
});

test('who has left without an answer has no opinion', () => {
  const lab = new Lab();
  const own = lab.concern('cds', one, other);
  own.leave(other);
  expect(own.opinionsOn('a')).toMatchObject({ takers: [], waiting: new Set([one]) });
});

test('who has not looked yet may come to have an opinion', () => {
  const lab = new Lab();
  const look = Concern.look([lab.rollout]);
  look.begin(other);
  const own = lab.concern('cds', one);
  expect([...own.opinionsOn('a').waiting]).toContain(other);
  look.end(other);
  expect(own.opinionsOn('a')).toMatchObject({ takers: [], waiting: new Set([one]) });
});

test('what is waited for in fewer concerns is as old as the oldest of them', () => {
  const lab = new Lab();
  const former = lab.concern('cds', other);
  lab.rollout.restart();
  const joined = Concern.join([former, lab.concern('cds', other)], other);
  joined.end(other);
  const own = lab.concern('cds', one);
  expect(own.opinionsOn('a').waiting).toContain(one);
  expect(lab.rollout.isAbout(joined)).toBe(false);
});

test('who rejects each of many names is found in as many steps as there are names', () => {
  const lab = new Lab();
  const names = Array.from({ length: 300 }, (_, i) => `name-${i}`);
  const rollouts = names.map((name) => lab.rollouts.begin(name));
  const concern = new Concern('cds', new Map(names.map((name, i) => [name, [rollouts[i]!]])));
  let steps = 0;
  const counted = (name: string): Rejected => ({
    ...a,
    get name() {
      steps++;
      return name;
    },
  });
  concern.begin(one);
  concern.reject(one, new Map(names.map((name) => [name, counted(name)])));
  for (const name of names) expect(concern.opinionsOn(name).rejections.size).toBe(1);
  for (const rollout of rollouts) expect([...rollout.rejections({ alone: true }).keys()]).toEqual([one]);
  expect(steps).toBeLessThan(5 * names.length);
});

test('what a client rejects is not looked up, nor remembered, to find out whom a resource concerns', () => {
  const lab = new Lab();
  const names = Array.from({ length: 100 }, (_, i) => `name-${i}`);
  const concern = new Concern('cds', new Map(names.map((name) => [name, [lab.rollout]])));
  const looks: string[] = [];
  const rejection = {
    id: {},
    of(name: string): Rejected {
      looks.push(name);
      return { ...a, name };
    },
  };
  for (const client of [one, other]) concern.begin(client);
  concern.reject(one, new RejectedState(concern.names, new Map(), rejection));
  expect([...concern.rejectedNames()]).toEqual(names);
  for (const name of names)
    expect(concern.opinionsOn(name)).toMatchObject({ takers: [], waiting: new Set([one, other]) });
  expect(looks).toEqual([]);
  for (let i = 0; i < 2; i++)
    expect(concern.opinionsOn('name-7').rejections.get(one)).toMatchObject({ name: 'name-7' });
  expect(looks).toEqual(['name-7', 'name-7']);
});
