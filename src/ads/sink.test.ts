import {
  Client,
  credentials,
  Server,
  ServerCredentials,
  type ServerInterceptor,
  ServerInterceptingCall,
} from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import type { Frame } from './frames.ts';
import { type Call, Sink } from './sink.ts';

const identity = (bytes: Buffer): Buffer => bytes;
const METHOD = {
  path: '/s/m',
  requestStream: true,
  responseStream: true,
  requestSerialize: identity,
  requestDeserialize: identity,
  responseSerialize: identity,
  responseDeserialize: identity,
} as const;

function frame(...parts: readonly Uint8Array[]): Frame {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(length, 1);
  const [first = new Uint8Array(), ...rest] = parts;
  return { nonce: 1, slices: [Buffer.concat([prefix, first]), ...rest], length: length + 5 };
}

const passThrough: ServerInterceptor = (_, call) => new ServerInterceptingCall(call);

/** With an interceptor there is no HTTP/2 stream to be had below the call: messages go the public way. */
describe.each([
  ['past grpc-js', []],
  ['through grpc-js', [passThrough]],
])('%s', (_, interceptors) => {
  const stops: (() => void)[] = [];
  afterEach(() => {
    for (const stop of stops.splice(0)) stop();
  });

  async function serve(handle: (call: Call) => void): Promise<Client> {
    const server = new Server({ interceptors });
    server.addService({ m: METHOD }, { m: handle });
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    });
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      'grpc.max_receive_message_length': -1,
    });
    stops.push(
      () => client.close(),
      () => server.forceShutdown(),
    );
    return client;
  }

  test('frames arrive whole and in order, and the end behind them', async () => {
    const large = [Buffer.alloc(60_000, 1), Buffer.alloc(65_536, 2), Buffer.alloc(65_536, 3), Buffer.alloc(10, 4)];
    let progress = 0;
    const taken: boolean[] = [];
    const client = await serve((call) => {
      const sink = new Sink(call);
      const write = (frames: Frame[], then: () => void): void =>
        sink.write(
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
    const call = client.makeBidiStreamRequest('/s/m', identity, identity);
    const received: Buffer[] = [];
    call.on('data', (bytes: Buffer) => received.push(bytes));
    await new Promise<void>((resolve, reject) => call.on('end', resolve).on('error', reject));
    expect(received.map((bytes) => bytes.length)).toEqual([1, 1, 191_082, 0]);
    expect(received[2]!.equals(Buffer.concat(large))).toBe(true);
    expect(taken).toEqual([true, true, true]);
    expect(progress).toBeGreaterThan(0);
  });

  test('a write to a client that is gone says so', async () => {
    let wrote: Promise<boolean> | undefined;
    const client = await serve((call) => {
      const sink = new Sink(call);
      wrote = new Promise((resolve) => {
        call.on('cancelled', () => sink.write([frame(Buffer.from('late'))], resolve, () => {}));
      });
    });
    const call = client.makeBidiStreamRequest('/s/m', identity, identity);
    call.on('error', () => {});
    call.once('metadata', () => call.cancel());
    await expect.poll(() => wrote).toBeDefined();
    expect(await wrote).toBe(false);
  });
});
