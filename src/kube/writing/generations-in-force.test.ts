import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Json } from '../../api/json.ts';
import { FakeClock } from '../../testing/fake-clock.ts';
import { errorOfAnswer } from '../client/api-error.ts';
import { type GenerationInForce, GenerationsInForce } from './generations-in-force.ts';
import { Outages } from '../client/outages.ts';
import { FakeCluster } from '../testing/fake-cluster.ts';
import { FaultyApi } from '../testing/faulty-api.ts';
import { RecordingLog } from '../testing/recording-log.ts';

const PATH = '/apis/fairlead.dev/v1alpha1/generationsinforce';

class Lab {
  readonly clock = new FakeClock();
  readonly cluster = new FakeCluster();
  readonly api = new FaultyApi(this.cluster, this.clock);
  readonly log = new RecordingLog();
  readonly wanted = new Map<string, GenerationInForce | 'undecided'>();
  readonly found = new Map<string, unknown>();
  readonly kept: GenerationsInForce;
  readonly #end = new AbortController();
  #running: Promise<void> | undefined;

  constructor() {
    const { clock, api, log, wanted, found } = this;
    this.kept = new GenerationsInForce({
      api,
      clock,
      random: () => 0.5,
      log,
      outages: new Outages({ log, clock }),
      keys: () => new Set([...wanted.keys(), ...found.keys()]),
      revision: (key) => {
        const content = wanted.get(key);
        return typeof content === 'object' ? content.revision : undefined;
      },
      wanted: (key) => wanted.get(key) ?? 'nothing',
      found: (key, there) => (there === undefined ? found.delete(key) : found.set(key, specOf(there))),
      signal: this.#end.signal,
    });
  }

  async start(): Promise<this> {
    this.#running = this.kept.follow();
    await this.clock.settle();
    return this;
  }

  async stop(): Promise<void> {
    this.#end.abort();
    for (const watch of this.cluster.watches()) watch.finish();
    await this.#running;
  }

  lead(revision = ''): AbortController {
    const term = new AbortController();
    this.kept.lead(term.signal, revision);
    return term;
  }

  want(name: string, newest: number, revision = ''): void {
    const owner = { apiVersion: 'networking.istio.io/v1', kind: 'VirtualService', name, uid: `uid of ${name}` };
    this.wanted.set(`shop/${name}`, { owner, revision, spec: { newest } });
    this.kept.changed(`shop/${name}`);
  }

  unwant(name: string): void {
    this.wanted.delete(`shop/${name}`);
    this.kept.changed(`shop/${name}`);
  }

  /** The API server fails for so long that the next attempt would be minutes away. */
  async outage(): Promise<void> {
    this.cluster.broken.add(PATH);
    for (const watch of this.cluster.watches()) watch.finish();
    await this.clock.advance(450_000);
    this.cluster.broken.clear();
  }

  /** By somebody else. */
  put(name: string, spec: Json): void {
    this.cluster.apply(PATH, { metadata: { name, namespace: 'shop' }, spec });
  }

  there(): Json {
    return Object.fromEntries(
      this.cluster.objects(PATH).map((object) => [(object['metadata'] as Json)['name'], object['spec']]),
    );
  }

  /** Since the last call. */
  writes(): readonly string[] {
    return this.cluster.requests
      .splice(0)
      .filter(({ method }) => method !== 'GET')
      .map(({ method, path }) => `${method} ${path.split('/').at(-1)}`);
  }
}

function specOf(object: object): unknown {
  return (object as { readonly spec?: unknown }).spec;
}

let lab: Lab;
beforeEach(async () => {
  lab = new Lab();
  lab.cluster.install(PATH, 'GenerationInForce');
  await lab.start();
});
afterEach(() => lab.stop());

describe('a leader', () => {
  test('creates, replaces and deletes what differs, once, and nothing else', async () => {
    lab.lead();
    lab.want('a', 2);
    await lab.clock.advance(60_000);
    expect([lab.there(), lab.writes()]).toEqual([{ a: { newest: 2 } }, ['POST generationsinforce']]);
    lab.want('a', 3);
    await lab.clock.advance(60_000);
    expect([lab.there(), lab.writes()]).toEqual([{ a: { newest: 3 } }, ['PUT a']]);
    lab.unwant('a');
    await lab.clock.advance(60_000);
    expect([lab.there(), lab.writes()]).toEqual([{}, ['DELETE a']]);
  });

  test('goes on from its own write before it hears of it', async () => {
    lab.lead();
    for (const watch of lab.cluster.watches()) watch.mute();
    lab.want('a', 2);
    await lab.clock.advance(100);
    lab.want('a', 3);
    await lab.clock.advance(100);
    lab.unwant('a');
    await lab.clock.advance(100);
    lab.want('a', 4);
    await lab.clock.advance(100);
    expect(lab.writes()).toEqual(['POST generationsinforce', 'PUT a', 'DELETE a', 'POST generationsinforce']);
    for (const watch of lab.cluster.watches()) watch.finish();
    await lab.clock.advance(60_000);
    expect([lab.there(), lab.writes()]).toEqual([{ a: { newest: 4 } }, []]);
  });

  test('leaves what is undecided, and deletes what nobody wants', async () => {
    lab.put('stray', {});
    lab.put('open', { newest: 7 });
    lab.wanted.set('shop/open', 'undecided');
    lab.lead();
    await lab.clock.advance(60_000);
    expect(lab.there()).toEqual({ open: { newest: 7 } });
  });

  test('does not delete another object of the name than the one that it saw', async () => {
    lab.lead();
    lab.want('a', 2);
    await lab.clock.advance(100);
    for (const watch of lab.cluster.watches()) watch.mute();
    lab.cluster.delete(PATH, 'shop', 'a');
    lab.put('a', { newest: 9 });
    lab.unwant('a');
    await lab.clock.advance(100);
    expect(lab.there()).toEqual({ a: { newest: 9 } });
  });

  test('does not delete again and again what has no uid, and does not go', async () => {
    let deletions = 0;
    lab.api.remove = () => Promise.resolve(++deletions);
    lab.cluster.apply(PATH, { metadata: { name: 'stray', namespace: 'shop', uid: undefined }, spec: {} });
    await lab.clock.settle();
    lab.lead();
    await lab.clock.advance(60_000);
    expect(deletions).toBe(1);
  });

  test('writes at a bounded rate', async () => {
    lab.lead();
    for (let i = 0; i < 200; i++) lab.want(`a${i}`, 2);
    await lab.clock.advance(1_000);
    expect(lab.writes()).toHaveLength(70);
    await lab.clock.advance(10_000);
    expect(Object.keys(lab.there())).toHaveLength(200);
  });

  test('backs off where somebody keeps overwriting it', async () => {
    lab.lead();
    lab.want('a', 2);
    await lab.clock.advance(100);
    for (let i = 0; i < 600; i++) {
      lab.cluster.apply(PATH, { metadata: { name: 'a', namespace: 'shop' }, spec: { newest: -i } });
      await lab.clock.advance(1_000);
    }
    expect(lab.writes().length).toBeLessThan(20);
  });

  test('tries again what the server refused, less and less often', async () => {
    lab.lead();
    lab.want('a', 2);
    lab.api.fault = 'refused';
    await lab.clock.advance(1_000_000);
    expect(lab.there()).toEqual({});
    lab.api.fault = 'none';
    await lab.clock.advance(300_000);
    expect([lab.there(), lab.writes()]).toEqual([{ a: { newest: 2 } }, ['POST generationsinforce']]);
  });

  test('tries again as soon as the server is reached again', async () => {
    lab.lead();
    lab.want('a', 2);
    await lab.outage();
    await lab.clock.advance(11_000);
    expect(lab.there()).toEqual({ a: { newest: 2 } });
  });

  test('does not try again because of that what the server does not take', async () => {
    lab.lead();
    let posts = 0;
    lab.api.post = () => {
      posts++;
      return Promise.reject(errorOfAnswer(422, ''));
    };
    lab.want('a', 2);
    await lab.outage();
    const before = posts;
    await lab.clock.advance(11_000);
    expect(posts).toBe(before);
  });

  test('does not write again what was written, but not answered', async () => {
    const term = lab.lead();
    lab.want('a', 2);
    lab.api.fault = 'lost';
    await lab.clock.advance(100);
    term.abort();
    lab.api.fault = 'none';
    lab.lead();
    await lab.clock.advance(60_000);
    expect([lab.there(), lab.writes()]).toEqual([{ a: { newest: 2 } }, ['POST generationsinforce']]);
  });

  test('writes about objects of its revisions only, until its term ends', async () => {
    const term = lab.lead('canary');
    lab.want('a', 2);
    lab.want('b', 2, 'canary');
    await lab.clock.advance(1_000);
    expect(lab.there()).toEqual({ b: { newest: 2 } });
    term.abort();
    lab.want('b', 3, 'canary');
    await lab.clock.advance(60_000);
    expect([lab.there(), lab.writes()]).toEqual([{ b: { newest: 2 } }, ['POST generationsinforce']]);
  });

  test('does not write again what the server stores otherwise', async () => {
    lab.lead();
    lab.api.post = async (path, body, options) => {
      const { spec: _, ...rest } = body as Json;
      return lab.cluster.post(path, { ...rest, spec: { pruned: true } }, options);
    };
    lab.want('a', 2);
    await lab.clock.advance(600_000);
    expect(lab.writes()).toEqual(['POST generationsinforce']);
  });
});

test('whoever does not lead writes nothing, and hears of everything', async () => {
  lab.want('a', 2);
  lab.put('b', { newest: 1 });
  await lab.clock.advance(60_000);
  expect([lab.writes(), Object.fromEntries(lab.found)]).toEqual([[], { 'shop/b': { newest: 1 } }]);
  lab.cluster.delete(PATH, 'shop', 'b');
  await lab.clock.advance(100);
  expect(lab.found.size).toBe(0);
});

describe('before a leader writes', () => {
  beforeEach(async () => {
    await lab.stop();
    lab = new Lab();
  });

  test('the kind is installed', async () => {
    await lab.start();
    lab.lead();
    lab.want('a', 2);
    await lab.clock.advance(60_000);
    expect([await lab.kept.read(), lab.writes()]).toEqual([undefined, []]);
    lab.cluster.install(PATH, 'GenerationInForce');
    await lab.clock.advance(20_000);
    expect(lab.there()).toEqual({ a: { newest: 2 } });
  });

  test('it has read what is there', async () => {
    lab.cluster.install(PATH, 'GenerationInForce');
    lab.cluster.denied.add(PATH);
    await lab.start();
    lab.lead();
    lab.want('a', 2);
    const read = lab.kept.read();
    await lab.clock.advance(20_000);
    expect([await read, lab.kept.isRead, lab.writes()]).toEqual(['403 Forbidden', false, []]);
    lab.cluster.denied.clear();
    await lab.clock.advance(20_000);
    expect([lab.kept.isRead, lab.there()]).toEqual([true, { a: { newest: 2 } }]);
  });
});

describe('a replica that starts', () => {
  /** What it knows, after a minute and when the API server is well again. */
  async function start(lists: 'broken' | 'denied' | undefined) {
    const late = new Lab();
    const { cluster, clock, found } = late;
    cluster.install(PATH, 'GenerationInForce');
    late.put('a', { newest: 1 });
    if (lists !== undefined) cluster[lists].add(PATH);
    onTestFinished(() => late.stop());
    await late.start();
    const answers: unknown[] = [];
    void late.kept.read().then((trouble) => answers.push(trouble));
    await clock.advance(59_000);
    const soon = answers.length;
    await clock.advance(2_000);
    if (lists !== undefined) cluster[lists].clear();
    await clock.advance(60_000);
    return { soon, answers, found: found.size };
  }

  test('waits until it has read what is kept', async () => {
    expect(await start(undefined)).toEqual({ soon: 1, answers: [undefined], found: 1 });
  });

  test('waits for a minute if that fails, or not at all if it is not allowed, and is told when it works', async () => {
    const text = (pattern: RegExp): unknown => expect.stringMatching(pattern);
    expect(await start('broken')).toEqual({ soon: 0, answers: [text(/^500 /)], found: 1 });
    expect(await start('denied')).toEqual({ soon: 1, answers: [text(/^403 /)], found: 1 });
  });
});
