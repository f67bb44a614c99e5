import { connect } from 'node:http2';
import { describe, expect, onTestFinished, test } from 'vitest';
import { framed, identity, PATH, serveBytes, ways } from '../../test/harness/byte-streams.ts';
import { Scratch } from './deframer.ts';
import { Gate } from './gate.ts';
import { Source } from './source.ts';

const receiving = (places = 1) => ({ maxLength: 1_000_000, large: new Gate(places), scratch: new Scratch() });

/** What a server hears of a client. */
class Heard {
  readonly lengths: number[] = [];
  ended = false;
  unreadable = '';
  source: Source | undefined;

  events(onMessage: (heard: Heard) => void = () => {}): ConstructorParameters<typeof Source>[2] {
    return {
      message: (bytes) => {
        this.lengths.push(bytes.length);
        onMessage(this);
      },
      end: () => (this.ended = true),
      unreadable: (error) => (this.unreadable = error.reason),
    };
  }
}

describe.each(ways)('%s', (_, interceptors) => {
  test('messages come whole and in order, and the end behind them', async () => {
    const heard = new Heard();
    const { client } = await serveBytes(interceptors, (call) => {
      heard.source = new Source(call, receiving(), heard.events());
    });
    const call = client.makeBidiStreamRequest(PATH, identity, identity);
    call.on('error', () => {});
    for (const length of [1, 300_000, 0, 70_000]) call.write(Buffer.alloc(length));
    call.end();
    await expect.poll(() => heard.ended).toBe(true);
    expect(heard.lengths).toEqual([1, 300_000, 0, 70_000]);
  });

  test('while it is paused no message comes, and none is lost', async () => {
    const heard = new Heard();
    const { client } = await serveBytes(interceptors, (call) => {
      heard.source = new Source(
        call,
        receiving(),
        heard.events(({ source }) => source!.pause()),
      );
    });
    const call = client.makeBidiStreamRequest(PATH, identity, identity);
    call.on('error', () => {});
    for (const length of [1, 2, 100_000]) call.write(Buffer.alloc(length));
    call.end();
    for (const count of [1, 2, 3]) {
      await expect.poll(() => heard.lengths).toHaveLength(count);
      expect(heard.ended).toBe(false);
      heard.source!.resume();
    }
    await expect.poll(() => heard.ended).toBe(true);
    expect(heard.lengths).toEqual([1, 2, 100_000]);
  });
});

test('who sends a large message slowly lets others go first, and is heard in the end', async () => {
  const shared = receiving();
  const all: Heard[] = [];
  const { client, port } = await serveBytes([], (call) => {
    const heard = new Heard();
    all.push(heard);
    heard.source = new Source(call, shared, heard.events());
  });
  const session = connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  const slow = session.request({ ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc' });
  const bytes = framed(Buffer.alloc(200_000));
  slow.write(bytes.subarray(0, 1000));
  await expect.poll(() => all.length).toBe(1);
  // The place is taken: only it is received.
  await expect.poll(() => tryEnter(shared.large)).toBe(false);
  const call = client.makeBidiStreamRequest(PATH, identity, identity);
  call.on('error', () => {});
  call.write(Buffer.alloc(100_000));
  await expect.poll(() => shared.large.waiting).toBe(1);
  all[0]!.source!.tick();
  expect(shared.large.waiting).toBe(1);
  all[0]!.source!.tick();
  await expect.poll(() => all[1]!.lengths).toEqual([100_000]);
  slow.write(bytes.subarray(1000));
  await expect.poll(() => all[0]!.lengths).toEqual([200_000]);
  expect(shared.large.waiting).toBe(0);
});

function tryEnter(gate: Gate): boolean {
  let entered = false;
  gate.wait(() => (entered = true))();
  if (entered) gate.leave();
  return entered;
}

test.each([
  ['too long', framed(Buffer.alloc(1_000_001))],
  ['compressed', Buffer.from([1, 0, 0, 0, 0])],
])('a message that is %s ends the stream', async (reason, bytes) => {
  const heard = new Heard();
  const { port } = await serveBytes([], (call) => {
    heard.source = new Source(call, receiving(), heard.events());
  });
  const session = connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  const stream = session.request({ ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc' });
  stream.write(Buffer.concat([framed(Buffer.alloc(3)), bytes.subarray(0, 5)]));
  await expect.poll(() => heard.unreadable).toBe(reason);
  expect(heard.lengths).toEqual([3]);
});
