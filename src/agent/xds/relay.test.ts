import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Client,
  type ClientDuplexStream,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  credentials,
} from '@grpc/grpc-js';
import protobuf from 'protobufjs/minimal.js';
import { expect, onTestFinished, test } from 'vitest';
import { FakeClock } from '../../testing/fake-clock.ts';
import { createAgentLog } from '../log.ts';
import { bytes, dial } from './dial.ts';
import { LastConfig } from './last-config.ts';
import { readRawResponse, writeDeltaRequest, writeDeltaResponse } from './messages.ts';
import { ADS, Relay } from './relay.ts';
import { listenOnSocket, streamOfBytes } from './socket.ts';

const CDS = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';

/** Bytes that are not a message: a number without an end, and a field that is longer than the rest. */
const RUBBISH = ['ffffffffffffffffffff07', '127f010203'].map((hex) => Buffer.from(hex, 'hex'));
/** A response with a resource that is not one. */
const HALF = Buffer.concat([
  Buffer.from([0x12, 2, 0x1a, 0x7f]),
  writeDeltaResponse({ typeUrl: CDS, version: '1', resources: [] }),
]);

type Stream = ClientDuplexStream<Buffer, Buffer>;

/** @param answer of the control plane to each request; undefined: none. */
async function startRelay(answer: (request: Buffer) => Buffer | undefined) {
  const directory = mkdtempSync(join(tmpdir(), 'fl-relay-'));
  const [clock, end, saved] = [new FakeClock(), new AbortController(), join(directory, 'last-config.bin')];
  const lines: string[] = [];
  const log = createAgentLog({ level: 'info', format: 'text' }, (line) => void lines.push(line));
  const above = new Server();
  let asked = (): void => {};
  const hasAsked = new Promise<void>((resolve) => (asked = resolve));
  const serve = (stream: ServerDuplexStream<Buffer, Buffer>): void => {
    stream
      .on('error', () => {})
      .on('data', (message: Buffer) => {
        asked();
        const found = answer(message);
        if (found !== undefined) stream.write(found);
      });
  };
  above.addService({ Delta: { ...streamOfBytes, path: ADS } }, { Delta: serve });
  const port = await new Promise<number>((resolve, reject) =>
    above.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  const relay = new Relay({
    dial: () => dial({ address: `127.0.0.1:${port}`, token: () => undefined, headers: {} }),
    own: [],
    last: new LastConfig({ file: saved, clock, log, signal: end.signal }),
    clock,
    random: () => 0.5,
    log,
    signal: end.signal,
  });
  const below = new Server();
  below.addService({ Delta: { ...streamOfBytes, path: ADS } }, { Delta: relay.serve.bind(relay) });
  await listenOnSocket(below, join(directory, 'XDS'));
  const envoy = new Client(`unix:${join(directory, 'XDS')}`, credentials.createInsecure());
  onTestFinished(() => {
    end.abort();
    envoy.close();
    for (const server of [above, below]) server.forceShutdown();
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    relay,
    clock,
    hasAsked,
    lines,
    save: () => writeFileSync(saved, savedCluster('kept')),
    connect: (): Stream => envoy.makeBidiStreamRequest(ADS, bytes, bytes),
  };
}

function savedCluster(name: string): Uint8Array {
  const response = writeDeltaResponse({ typeUrl: CDS, version: '1', resources: [[name, Buffer.from('x')]] });
  return protobuf.Writer.create().uint32(10).bytes(response).finish();
}

const first = (stream: Stream): Promise<Buffer | { readonly details: string }> =>
  new Promise((resolve) => stream.once('data', resolve).once('error', resolve));

const request = writeDeltaRequest({ typeUrl: CDS, subscribe: ['*'] });

const namesIn = (answer: Buffer | object): readonly string[] =>
  readRawResponse(answer as Buffer).resources.map(([name]) => name);

test.each([...RUBBISH, HALF])(
  'a control plane that sends rubbish ends a stream, not the agent (%#)',
  async (rubbish) => {
    const { connect } = await startRelay(() => rubbish);
    for (let i = 0; i < 2; i++) {
      const stream = connect();
      stream.write(request);
      expect(await first(stream)).toMatchObject({ details: 'the control plane sent what is not xDS' });
    }
  },
);

test('that the control plane is away is said once, and that it is back', async () => {
  let isBack = false;
  const answered = writeDeltaResponse({ typeUrl: CDS, version: '1', resources: [] });
  const { connect, lines } = await startRelay(() => (isBack ? answered : RUBBISH[0]));
  for (const back of [false, false, true, true]) {
    isBack = back;
    const stream = connect();
    stream.on('error', () => {}).write(request);
    await first(stream);
  }
  expect(lines).toEqual([
    expect.stringContaining('Not connected to the control plane'),
    expect.stringContaining('Connected to the control plane again'),
  ]);
});

test('an Envoy that starts while the control plane sends rubbish gets what was saved', async () => {
  const { connect, relay, save } = await startRelay(() => RUBBISH[0]);
  save();
  const stream = connect();
  stream.on('error', () => {}).write(request);
  expect(namesIn(await first(stream))).toEqual(['kept']);
  expect([relay.connected, relay.servesSaved]).toEqual([false, expect.any(Date)]);
});

test('an Envoy that sends rubbish ends its stream, not the agent', async () => {
  const { connect } = await startRelay(() => writeDeltaResponse({ typeUrl: CDS, version: '1', resources: [] }));
  const stream = connect();
  stream.write(request);
  expect(await first(stream)).toBeInstanceOf(Buffer);
  stream.write(RUBBISH[0]!);
  expect(await first(stream)).toMatchObject({ details: 'Envoy sent what is not xDS' });
});

test('an Envoy that starts while the control plane does not answer gets what was saved', async () => {
  const { clock, connect, hasAsked, save } = await startRelay(() => undefined);
  save();
  const stream = connect();
  stream.on('error', () => {}).write(request);
  await hasAsked;
  const [answer] = await Promise.all([first(stream), clock.advance(15_000)]);
  expect(namesIn(answer)).toEqual(['kept']);
});
