import { connect } from 'node:http2';
import type { Writable } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { framed, identity, PATH, serveBytes, ways } from '../../../test/harness/byte-streams.ts';
import { BufferPool } from '../wire/buffer-pool.ts';
import { PREFIX } from '../wire/deframer.ts';
import { FairSemaphore } from '../../base/fair-semaphore.ts';
import { HUGE, LARGE, type Receiving, RequestReader } from './request-reader.ts';
import { type Call, http2StreamOf } from './frame-writer.ts';

/** More of a message than may come without room for it. */
const BEGUN = LARGE + 1_000;

const receiving = (large = 1_000_000, huge = 10_000_000): Receiving => ({
  maxFirstLength: 500_000,
  maxLength: 10_000_000,
  budget: { large: new FairSemaphore(large), huge: new FairSemaphore(huge) },
  buffers: new BufferPool(1_000_000),
});

const readerOf = (call: Call, shared: Receiving, events: Events): RequestReader =>
  new RequestReader(call, 'a', shared, events);

type Events = ConstructorParameters<typeof RequestReader>[3];

/** What a server hears of a client. */
class Heard {
  readonly lengths: number[] = [];
  ended = false;
  unreadable = '';
  late = '';
  failed = '';
  /** Of messages, as they come over the connection. */
  pieces = 0;
  bytes = 0;
  reader: RequestReader | undefined;

  events(onMessage: (heard: Heard, bytes: Uint8Array) => void = () => {}): Events {
    return {
      message: (bytes) => {
        this.lengths.push(bytes.length);
        onMessage(this, bytes);
      },
      end: () => (this.ended = true),
      unreadable: (error) => (this.unreadable = error.reason),
      late: (what) => {
        this.late = what;
        this.reader!.close();
      },
      failed: (error) => {
        this.failed = String(error);
        this.reader!.close();
      },
    };
  }
}

describe.each(ways)('%s', (_, interceptors) => {
  test('messages come whole and in order, and the end behind them', async () => {
    const heard = new Heard();
    const { client } = await serveBytes(interceptors, (call) => {
      heard.reader = readerOf(call, receiving(), heard.events());
    });
    const call = client.makeBidiStreamRequest(PATH, identity, identity);
    call.on('error', () => {});
    for (const length of [1, 300_000, 0, 70_000]) call.write(Buffer.alloc(length));
    call.end();
    await expect.poll(() => heard.ended).toBe(true);
    expect(heard.lengths).toEqual([1, 300_000, 0, 70_000]);
  });

  test('the first message may not be as long as the others', async () => {
    const all: Heard[] = [];
    const { client } = await serveBytes(interceptors, (call) => {
      const heard = new Heard();
      all.push(heard);
      heard.reader = readerOf(call, receiving(), heard.events());
    });
    for (const lengths of [[500_000, 700_000], [500_001]]) {
      const call = client.makeBidiStreamRequest(PATH, identity, identity);
      call.on('error', () => {});
      for (const length of lengths) call.write(Buffer.alloc(length));
    }
    await expect.poll(() => all.map(({ lengths }) => lengths)).toEqual([[500_000, 700_000], []]);
    await expect.poll(() => all.map(({ unreadable }) => unreadable)).toEqual(['', 'too long']);
  });

  test('while it is paused no message comes, and none is lost', async () => {
    const heard = new Heard();
    const { client } = await serveBytes(interceptors, (call) => {
      heard.reader = readerOf(
        call,
        receiving(),
        heard.events(({ reader }, bytes) => reader!.hold(bytes)),
      );
    });
    const call = client.makeBidiStreamRequest(PATH, identity, identity);
    call.on('error', () => {});
    for (const length of [1, 2, 100_000]) call.write(Buffer.alloc(length));
    call.end();
    for (const count of [1, 2, 3]) {
      await expect.poll(() => heard.lengths).toHaveLength(count);
      expect(heard.ended).toBe(false);
      heard.reader!.resume();
    }
    await expect.poll(() => heard.ended).toBe(true);
    expect(heard.lengths).toEqual([1, 2, 100_000]);
  });
});

/** Client and server of one method, on which messages are sent byte by byte. */
async function slowly(shared: Receiving) {
  const all: Heard[] = [];
  const { client, port } = await serveBytes([], (call) => {
    const heard = new Heard();
    all.push(heard);
    heard.reader = readerOf(call, shared, heard.events());
    http2StreamOf(call)!.on('data', (chunk: Buffer) => {
      heard.pieces++;
      heard.bytes += chunk.length;
    });
  });
  const session = connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  const open = () => session.request({ ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc' });
  return { all, client, open };
}

const tick = ({ reader }: Heard, ...times: readonly number[]): void => times.forEach((now) => reader!.tick(now));

test('a large message waits until there is room for it', async () => {
  const shared = receiving(250_000);
  const { all, client, open } = await slowly(shared);
  const slow = open();
  const bytes = framed(Buffer.alloc(200_000));
  slow.write(bytes.subarray(0, BEGUN));
  await expect.poll(() => shared.budget.large.taken).toBe(200_000);
  const call = client.makeBidiStreamRequest(PATH, identity, identity);
  call.on('error', () => {});
  call.write(Buffer.alloc(100_000));
  await expect.poll(() => shared.budget.large.waiting).toBe(1);
  expect(all[1]!.reader!.waitsForRoom).toBe(true);
  slow.write(bytes.subarray(BEGUN));
  await expect.poll(() => all[0]!.lengths).toEqual([200_000]);
  await expect.poll(() => all[1]!.lengths).toEqual([100_000]);
  expect(shared.budget.large).toMatchObject({ taken: 0, waiting: 0 });
});

test('a small message does not wait for room', async () => {
  const shared = receiving(250_000);
  const { all, open } = await slowly(shared);
  open().write(framed(Buffer.alloc(250_000)).subarray(0, BEGUN));
  await expect.poll(() => shared.budget.large.taken).toBe(250_000);
  const small = open();
  const bytes = framed(Buffer.alloc(10_000));
  for (const half of [bytes.subarray(0, 5_000), bytes.subarray(5_000)]) small.write(half);
  await expect.poll(() => all[1]?.lengths).toEqual([10_000]);
});

test('a message that does not end is late, and gives its room back', async () => {
  const shared = receiving();
  const { all, open } = await slowly(shared);
  const stream = open();
  stream.write(framed(Buffer.alloc(200_000)).subarray(0, BEGUN));
  await expect.poll(() => shared.budget.large.taken).toBe(200_000);
  tick(all[0]!, 0, 1_000, 9_999);
  expect(all[0]!.late).toBe('');
  tick(all[0]!, 10_000);
  expect(all[0]!.late).toBe('message');
  expect(shared.budget.large.taken).toBe(0);
});

/** A piece of the message comes, and then a look at the clock. */
async function goesOn(heard: Heard, stream: Writable, now: number): Promise<void> {
  const before = heard.pieces;
  stream.write(Buffer.alloc(100));
  await expect.poll(() => heard.pieces).toBeGreaterThan(before);
  tick(heard, now);
}

test('a message that goes on has time for what has come of it', async () => {
  const shared = receiving();
  const { all, open } = await slowly(shared);
  const stream = open();
  stream.write(Buffer.concat([framed(Buffer.alloc(1)), framed(Buffer.alloc(5_000_000)).subarray(0, 2_500_000)]));
  await expect.poll(() => shared.budget.huge.taken).toBe(5_000_000);
  await expect.poll(() => all[0]!.bytes).toBeGreaterThan(2_500_000);
  for (let now = 0; now <= 35_000; now += 5_000) {
    await goesOn(all[0]!, stream, now);
    expect(all[0]!.late).toBe('');
  }
  tick(all[0]!, 40_000);
  expect(all[0]!.late).toBe('message');
});

/** Two have begun to send a message, and there is room for one of them. */
async function contended() {
  const shared = receiving(200_000);
  const { all, open } = await slowly(shared);
  const bytes = framed(Buffer.alloc(200_000)).subarray(0, BEGUN);
  open().write(bytes);
  await expect.poll(() => shared.budget.large.taken).toBe(200_000);
  open().write(bytes);
  await expect.poll(() => shared.budget.large.waiting).toBe(1);
  return { all, shared };
}

test('whoever has room that others wait for has to be quick', async () => {
  const { all, shared } = await contended();
  tick(all[0]!, 0, 1_000, 1_999);
  expect(all[0]!.late).toBe('');
  tick(all[0]!, 2_000);
  expect(all[0]!.late).toBe('message');
  expect(shared.budget.large).toMatchObject({ taken: 200_000, waiting: 0 });
});

test('whoever has room that others wait for has no time for what does not come', async () => {
  const shared = receiving(4_000_000);
  const { all, open } = await slowly(shared);
  const stream = open();
  stream.write(Buffer.concat([framed(Buffer.alloc(1)), framed(Buffer.alloc(4_000_000)).subarray(0, BEGUN)]));
  await expect.poll(() => shared.budget.large.taken).toBe(4_000_000);
  open().write(framed(Buffer.alloc(200_000)).subarray(0, BEGUN));
  await expect.poll(() => shared.budget.large.waiting).toBe(1);
  for (const now of [0, 1_000, 2_000]) await goesOn(all[0]!, stream, now);
  expect(all[0]!.late).toBe('');
  await goesOn(all[0]!, stream, 3_000);
  expect(all[0]!.late).toBe('message');
});

test('time in which this process is busy does not count against whoever has room that others wait for', async () => {
  const { all } = await contended();
  const { reader } = all[0]!;
  for (const [now, idle] of [
    [0, 0],
    [3_000, 1_000],
    [6_000, 1_999],
  ] as const)
    reader!.tick(now, idle);
  expect(all[0]!.late).toBe('');
  reader!.tick(7_000, 2_000);
  expect(all[0]!.late).toBe('message');
});

test('but never longer than without others', async () => {
  const { all } = await contended();
  for (const now of [0, 5_000, 10_000]) all[0]!.reader!.tick(now, 0);
  expect(all[0]!.late).toBe('message');
});

test('to announce a message takes no room', async () => {
  const shared = receiving();
  const { all, open } = await slowly(shared);
  open().write(framed(Buffer.alloc(200_000)).subarray(0, LARGE));
  const other = open();
  other.write(framed(Buffer.alloc(1)));
  await expect.poll(() => all[0]?.bytes).toBe(LARGE);
  await expect.poll(() => all[1]?.lengths).toEqual([1]);
  expect(shared.budget.large.taken).toBe(0);
});

test('messages that are longer than any of a sidecar take no room from those of sidecars', async () => {
  const shared = receiving(200_000, 8_000_000);
  const { all, open } = await slowly(shared);
  for (let i = 0; i < 3; i++) {
    const huge = open();
    huge.write(Buffer.concat([framed(Buffer.alloc(1)), framed(Buffer.alloc(HUGE + 1)).subarray(0, BEGUN)]));
  }
  // One address has half of it.
  await expect.poll(() => shared.budget.huge.waiting).toBe(2);
  open().write(framed(Buffer.alloc(200_000)));
  await expect.poll(() => all[3]?.lengths).toEqual([200_000]);
});

describe('whoever gets no buffer ends alone', () => {
  const failure = 'RangeError: Array buffer allocation failed';

  /** Has no memory for messages of this length. */
  class FullPool extends BufferPool {
    readonly #length: number;

    constructor(length: number) {
      super(1_000_000);
      this.#length = length;
    }

    override take(length: number): Buffer {
      if (length === this.#length) throw new RangeError('Array buffer allocation failed');
      return super.take(length);
    }
  }

  test('when another stream has made room', async () => {
    const shared = { ...receiving(250_000), buffers: new FullPool(150_000) };
    const { all, open } = await slowly(shared);
    const first = open();
    const bytes = framed(Buffer.alloc(200_000));
    first.write(bytes.subarray(0, BEGUN));
    await expect.poll(() => shared.budget.large.taken).toBe(200_000);
    open().write(framed(Buffer.alloc(150_000)).subarray(0, BEGUN));
    await expect.poll(() => shared.budget.large.waiting).toBe(1);
    first.write(Buffer.concat([bytes.subarray(BEGUN), framed(Buffer.alloc(7))]));
    await expect.poll(() => all[0]!.lengths).toEqual([200_000, 7]);
    expect(all.map(({ failed }) => failed)).toEqual(['', failure]);
    expect(shared.budget.large).toMatchObject({ taken: 0, waiting: 0 });
  });

  test.each([
    ['there is room at once', 150_000, 150_000, BEGUN],
    ['none is needed', 100, 50_000, 100],
  ])('when %s', async (_, length, announced, come) => {
    const shared = { ...receiving(), buffers: new FullPool(length) };
    const { all, open } = await slowly(shared);
    open().write(framed(Buffer.alloc(announced)).subarray(0, PREFIX + come));
    await expect.poll(() => all[0]?.failed).toBe(failure);
    open().write(framed(Buffer.alloc(200_000)));
    await expect.poll(() => all[1]?.lengths).toEqual([200_000]);
    expect(shared.budget.large).toMatchObject({ taken: 0, waiting: 0 });
  });
});

test('a message that goes on after a standstill of the server is not late', async () => {
  const { all, open } = await slowly(receiving());
  const stream = open();
  const bytes = framed(Buffer.alloc(200_000));
  stream.write(bytes.subarray(0, BEGUN));
  await expect.poll(() => all[0]?.bytes).toBe(BEGUN);
  tick(all[0]!, 0, 60_000);
  stream.write(bytes.subarray(BEGUN));
  await expect.poll(() => all[0]!.lengths).toEqual([200_000]);
  tick(all[0]!, 61_000, 62_000, 120_000);
  expect(all[0]!.late).toBe('');
});

test('whoever waits for room for too long is told so', async () => {
  const { all, shared } = await contended();
  tick(all[1]!, 0, 10_000, 59_999);
  expect(all[1]!.late).toBe('');
  tick(all[1]!, 60_000);
  expect([all[1]!.late, shared.budget.large.waiting]).toEqual(['room', 0]);
});

test('what came while the reader is paused keeps its room and its bytes until it is resumed', async () => {
  const shared = receiving();
  const held: Uint8Array[] = [];
  const heard = new Heard();
  const { client } = await serveBytes([], (call) => {
    heard.reader = readerOf(
      call,
      shared,
      heard.events(({ reader }, bytes) => held.push(reader!.hold(bytes))),
    );
  });
  const call = client.makeBidiStreamRequest(PATH, identity, identity);
  call.on('error', () => {});
  call.write(Buffer.alloc(100_000, 'first'));
  await expect.poll(() => heard.lengths).toEqual([100_000]);
  expect(shared.budget.large.taken).toBe(100_000);
  expect(shared.buffers.take(100_000).buffer).not.toBe(held[0]!.buffer);
  expect(Buffer.alloc(100_000, 'first').equals(held[0]!)).toBe(true);
  heard.reader!.resume();
  expect(shared.budget.large.taken).toBe(0);
  expect(shared.buffers.take(100_000).buffer).toBe(held[0]!.buffer);
});

test.each([
  ['too long', framed(Buffer.alloc(10_000_001))],
  ['compressed', Buffer.from([1, 0, 0, 0, 0])],
])('a message that is %s ends the stream', async (reason, bytes) => {
  const heard = new Heard();
  const { port } = await serveBytes([], (call) => {
    heard.reader = readerOf(call, receiving(), heard.events());
  });
  const session = connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  const stream = session.request({ ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc' });
  stream.write(Buffer.concat([framed(Buffer.alloc(3)), bytes.subarray(0, 5)]));
  await expect.poll(() => heard.unreadable).toBe(reason);
  expect(heard.lengths).toEqual([3]);
});
