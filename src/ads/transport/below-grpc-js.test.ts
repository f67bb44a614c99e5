import { type ClientHttp2Stream, connect, type Http2Stream } from 'node:http2';
import { Metadata, status as Status } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import { framed, PATH, serveBytes, ways } from '../../../test/harness/byte-streams.ts';
import { CDS, TYPES } from '../../../test/conformance/served-mesh.ts';
import { AdsStreams } from './ads-streams.ts';
import { type Call, http2StreamOf } from './frame-writer.ts';

/**
 * What FrameWriter and RequestReader rely on that grpc-js does not promise (docs/decisions/0021-below-grpc-js.md). When one of these
 * fails after an upgrade, streams would go the public way, or lose bytes: read the new version before anything else.
 */

interface Accepted {
  readonly call: Call;
  /** Of the server. */
  readonly http2: Http2Stream;
  readonly client: ClientHttp2Stream;
}

/** A call as it is when its handler is called, of a client that is none of grpc-js. */
async function accept(look: (call: Call, http2: Http2Stream) => void = () => {}): Promise<Accepted> {
  let accepted: ((value: Accepted) => void) | undefined;
  const { port } = await serveBytes([], (call) => {
    const http2 = http2StreamOf(call)!;
    look(call, http2);
    accepted?.({ call, http2, client });
  });
  const session = connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  const client = session.request(
    { ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc', te: 'trailers' },
    { endStream: false },
  );
  client.on('error', () => {});
  return new Promise((resolve) => (accepted = resolve));
}

test.each(ways)('%s: the HTTP/2 stream is in `call.call.stream`, and with interceptors it is not', async (_, all) => {
  const { client } = await serveBytes(all, (call) => {
    const { call: inner } = call as unknown as { readonly call: { readonly stream?: Http2Stream } };
    seen = {
      stream: inner.stream?.constructor.name,
      next: 'nextCall' in inner,
      found: http2StreamOf(call) !== undefined,
    };
    call.end();
  });
  let seen = {};
  const call = client.makeBidiStreamRequest(
    PATH,
    (bytes: Buffer) => bytes,
    (bytes) => bytes,
  );
  await new Promise((resolve) => call.on('status', resolve).on('error', resolve).resume());
  const direct = { stream: 'ServerHttp2Stream', next: false, found: true };
  expect(seen).toEqual(all.length === 0 ? direct : { stream: undefined, next: true, found: false });
});

test('nobody reads the stream yet, and one listener takes its data', async () => {
  let seen: object | undefined;
  await accept((_, http2) => {
    seen = { paused: http2.isPaused(), flowing: http2.readableFlowing, listeners: http2.listenerCount('data') };
  });
  expect(seen).toEqual({ paused: true, flowing: false, listeners: 1 });
});

test('the public call neither reads nor resumes by itself', async () => {
  const { client, http2 } = await accept();
  client.write(framed(Buffer.from('a')));
  const chunk = new Promise<Buffer>((resolve) => http2.removeAllListeners('data').once('data', resolve));
  await new Promise((resolve) => setImmediate(resolve));
  expect(http2.isPaused()).toBe(true);
  http2.resume();
  expect(await chunk).toEqual(framed(Buffer.from('a')));
});

test('the end of the client is told on the stream below', async () => {
  const { client, http2 } = await accept();
  const ended = new Promise((resolve) =>
    http2
      .removeAllListeners('data')
      .on('data', () => {})
      .once('end', resolve),
  );
  http2.resume();
  client.end();
  await ended;
});

test('after sendMetadata bytes can be written below, and a status comes behind them', async () => {
  const { call, http2, client } = await accept((each) => each.sendMetadata(new Metadata()));
  const received: Buffer[] = [];
  client.on('data', (chunk: Buffer) => received.push(chunk));
  const trailers = new Promise((resolve) => client.once('trailers', resolve));
  http2.write(Buffer.alloc(100_000));
  call.emit('error', { code: Status.UNAVAILABLE, details: 'over' });
  expect(await trailers).toMatchObject({ 'grpc-status': String(Status.UNAVAILABLE), 'grpc-message': 'over' });
  expect(Buffer.concat(received)).toHaveLength(100_000);
});

test('whoever resets the stream, or its connection, cancels the call', async () => {
  for (const end of [
    ({ client }: Accepted) => client.close(8),
    ({ client }: Accepted) => client.session?.destroy(),
    ({ http2 }: Accepted) => http2.close(11),
  ]) {
    const accepted = await accept();
    const cancelled = new Promise((resolve) => accepted.call.once('cancelled', resolve));
    end(accepted);
    await cancelled;
    await expect.poll(() => accepted.http2.destroyed).toBe(true);
  }
});

test('a connection that is closed tells its client, and its stream ends in order', async () => {
  const { call, http2, client } = await accept((each) => each.sendMetadata(new Metadata()));
  const goaway = new Promise((resolve) => client.session!.once('goaway', resolve));
  const trailers = new Promise((resolve) => client.once('trailers', resolve));
  http2.session!.close();
  call.emit('error', { code: Status.UNAVAILABLE, details: 'over' });
  client.resume();
  expect(await goaway).toBe(0);
  expect(await trailers).toMatchObject({ 'grpc-message': 'over' });
});

test('a server that has to go the public way serves all the same, counts its streams, and says so once', async () => {
  const warnings: string[] = [];
  const ads = new AdsStreams({
    types: TYPES,
    now: () => performance.now(),
    ready: () => true,
    signal: new AbortController().signal,
    log: { info: () => {}, warn: (message) => void warnings.push(message) },
    events: {
      connected: ({ stream }) =>
        setImmediate(() => ads.apply({ members: [], lists: [], worlds: [{ stream, world: EVERYTHING }] })),
      disconnected: () => {},
      rejected: () => {},
    },
  });
  const field = (number: number, bytes: Buffer): Buffer =>
    Buffer.concat([Buffer.of(number * 8 + 2, bytes.length), bytes]);
  const request = Buffer.concat([field(1, field(1, Buffer.from('node'))), field(2, Buffer.from(CDS))]);
  const [, [, interceptors]] = ways as [unknown, (typeof ways)[number]];
  const { client } = await serveBytes(interceptors, (call) => ads.accept(call, { delta: true }));
  for (let i = 0; i < 2; i++) {
    const call = client.makeBidiStreamRequest(
      PATH,
      (bytes: Buffer) => bytes,
      (bytes) => bytes,
    );
    call.on('error', () => {});
    call.write(request);
    expect(await new Promise((resolve) => call.once('data', resolve))).toBeInstanceOf(Buffer);
  }
  expect(ads.counts().indirect).toBe(2);
  expect(warnings).toEqual(['Unexpected grpc-js version: streams use the slower public API']);
});

const EVERYTHING = { roots: ['mesh'], qualifiers: [] };
