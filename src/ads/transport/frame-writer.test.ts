import { describe, expect, test } from 'vitest';
import { identity, PATH, serveBytes, ways } from '../../../test/harness/byte-streams.ts';
import type { Frame } from '../wire/frames.ts';
import { FrameWriter } from './frame-writer.ts';

function frame(...parts: readonly Uint8Array[]): Frame {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(length, 1);
  const [first = new Uint8Array(), ...rest] = parts;
  return { nonce: 1, version: '', slices: [Buffer.concat([prefix, first]), ...rest], length: length + 5 };
}

describe.each(ways)('%s', (_, interceptors) => {
  test('frames arrive whole and in order, and the end behind them', async () => {
    const large = Array.from({ length: 40 }, (_, i) => Buffer.alloc(i === 0 ? 60_000 : 65_536, i));
    let progress = 0;
    const taken: boolean[] = [];
    const { client } = await serveBytes(interceptors, (call) => {
      const writer = new FrameWriter(call);
      const write = (frames: Frame[], then: () => void): void =>
        writer.write(
          frames,
          (ok) => {
            taken.push(ok);
            then();
          },
          () => progress++,
        );
      write([frame(Buffer.from('a')), frame(Buffer.from('b'))], () => {
        write([frame(...large)], () => {
          write([frame(Buffer.alloc(0))], () => call.end());
        });
      });
    });
    const call = client.makeBidiStreamRequest(PATH, identity, identity);
    const received: Buffer[] = [];
    call.on('data', (bytes: Buffer) => received.push(bytes));
    await new Promise<void>((resolve, reject) => call.on('end', resolve).on('error', reject));
    expect(received.map((bytes) => bytes.length)).toEqual([1, 1, 60_000 + 39 * 65_536, 0]);
    expect(received[2]!.equals(Buffer.concat(large))).toBe(true);
    expect(taken).toEqual([true, true, true]);
    expect(progress).toBeGreaterThan(0);
  });

  test('a write to a client that is gone says so', async () => {
    let wrote: Promise<boolean> | undefined;
    const { client } = await serveBytes(interceptors, (call) => {
      const writer = new FrameWriter(call);
      wrote = new Promise((resolve) => {
        call.on('cancelled', () => writer.write([frame(Buffer.from('late'))], resolve, () => {}));
      });
    });
    const call = client.makeBidiStreamRequest(PATH, identity, identity);
    call.on('error', () => {});
    call.once('metadata', () => call.cancel());
    await expect.poll(() => wrote).toBeDefined();
    expect(await wrote).toBe(false);
  });
});
