import { expect, test } from 'vitest';
import type { Delivery } from '../protocol/delivery.ts';
import { type Asked, decodeFrame, EDS, encodeRequest, resource, TestServer } from '../testing/world.ts';
import { Turns, type Waiting } from './turns.ts';

/** Changes each second, for so many seconds, to one of so many assignments. */
const PER_SECOND = 50;
const SECONDS = 30;
const NAMES = Array.from({ length: 40 }, (_, i) => `a${i}`);
const STREAMS = 200;
/** What the server does with a stream's turn, and with an answer, on a machine that leaves it a tenth of its time. */
const TURN_MS = 10 * 0.2;
const ANSWER_MS = 10 * 0.05;
/** Changes are published together once the last publication is this long ago, as the committer does it. */
const QUIET_MS = 50;

class Stream implements Waiting {
  readonly address: string;
  readonly delivery: Delivery;
  readonly #server: TestServer;
  queued = false;
  behind: Waiting | undefined;
  responses = 0;
  /** By name, the newest content. */
  readonly has = new Map<string, number>();
  unanswered: string[] = [];

  constructor(server: TestServer, i: number) {
    this.address = `10.0.0.${i}`;
    this.#server = server;
    // Each in a world of its own, as proxies are.
    this.delivery = server.open(server.store.enter({ roots: ['mesh', `own-${i}`], qualifiers: [] }), true);
  }

  ask(asked: Partial<Asked>, now: number): void {
    this.delivery.request(encodeRequest({ typeUrl: EDS, ...asked }, true, this.#server.hasher), now);
  }

  take(now: number): void {
    for (let frame = this.delivery.next(now); frame !== undefined; frame = this.delivery.next(now)) {
      const { nonce, resources } = decodeFrame(frame.slices, true);
      for (const [name, content] of resources) this.has.set(name, Number(content));
      this.unanswered.push(nonce);
      this.responses++;
    }
  }
}

test('on a machine that is ten times too slow, every stream sees every change, and none falls further behind', async () => {
  const server = new TestServer();
  let now = 0;
  let changes = 0;
  let publishedAt = 0;
  /** By name, which change was its last, and when it came. */
  const newest = new Map<string, number>();
  const cameAt: number[] = [];
  const streams = Array.from({ length: STREAMS }, (_, i) => new Stream(server, i));
  const publish = (names: Iterable<string>): void => {
    const members = Array.from(names, (name) => ({
      ...{ list: 'mesh', typeUrl: EDS, name, qualifier: '' },
      resource: resource(EDS, name, String(newest.get(name))),
    }));
    server.store.apply({ members, lists: [] });
    server.frames.outdate();
  };
  for (const name of NAMES) newest.set(name, -1);
  publish(NAMES);
  for (const stream of streams) {
    stream.ask({ names: NAMES }, now);
    stream.take(now);
    for (const nonce of stream.unanswered.splice(0)) stream.ask({ nonce }, now);
    stream.responses = 0;
  }

  const lags: { readonly at: number; readonly ms: number }[] = [];
  const pending = new Set<string>();
  /** What has come since the last round of the event loop. */
  const come = (): void => {
    while (changes < PER_SECOND * SECONDS && changes * (1_000 / PER_SECOND) <= now) {
      const name = NAMES[changes % NAMES.length]!;
      newest.set(name, changes);
      pending.add(name);
      cameAt.push(changes * (1_000 / PER_SECOND));
      changes++;
    }
    if (pending.size === 0 || now < publishedAt + QUIET_MS) return;
    publish(pending);
    pending.clear();
    publishedAt = now;
    for (const stream of streams) turns.add(stream, true);
  };
  const turns: Turns<Stream> = new Turns<Stream>({
    now: () => now,
    begin() {
      for (const stream of streams)
        for (const nonce of stream.unanswered.splice(0)) {
          now += ANSWER_MS;
          stream.ask({ nonce }, now);
          if (stream.delivery.owes) turns.add(stream, true);
        }
      come();
    },
    serve(stream) {
      now += TURN_MS;
      const had = new Map(stream.has);
      stream.take(now);
      for (const [name, content] of stream.has) {
        const before = had.get(name)!;
        // The oldest change of this name that it had not seen: a later one may have come in its place.
        const oldest = before < 0 ? NAMES.indexOf(name) : before + NAMES.length;
        if (before !== content) lags.push({ at: now, ms: now - cameAt[oldest]! });
      }
    },
    isFull: () => false,
  });
  // The event loop goes round as long as something happens.
  for (let idle = 0; idle < 50;) {
    if (turns.waiting === 0) now += 10;
    come();
    await new Promise((resolve) => setImmediate(resolve));
    idle = turns.waiting === 0 && changes === PER_SECOND * SECONDS && pending.size === 0 ? idle + 1 : 0;
  }

  for (const { has } of streams) expect([...has].filter(([name, content]) => newest.get(name) !== content)).toEqual([]);
  const worst = (from: number, to: number): number =>
    lags.reduce((most, { at, ms }) => (at >= from * 1_000 && at < to * 1_000 ? Math.max(most, ms) : most), 0);
  expect(worst(0, Infinity)).toBeLessThan(3_000);
  expect(worst(20, 30)).toBeLessThan(1.5 * worst(5, 15));
  // What comes while a stream waits is sent together: the fewest got nearly as many responses as the most.
  const responses = streams.map((stream) => stream.responses);
  expect(Math.max(...responses)).toBeLessThan(PER_SECOND * SECONDS);
  expect(Math.min(...responses)).toBeGreaterThan(0.8 * Math.max(...responses));
});
