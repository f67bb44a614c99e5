import { type RemoteInfo, createSocket } from 'node:dgram';
import { getEventListeners, once } from 'node:events';
import { type AddressInfo, type Socket, createServer } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Upstream } from './upstream.ts';

/** A, `example.com`. */
const query = Buffer.from('123401000001000000000000076578616d706c6503636f6d0000010001', 'hex');
/** Longer than a test may take. */
const timeoutMs = 600_000;
const never = new AbortController().signal;

function answerTo(message: Uint8Array): Buffer {
  const answer = Buffer.from(message);
  answer[2]! |= 0x80;
  return answer;
}

/** To another query. */
function wrongTo(message: Uint8Array): Buffer {
  const answer = answerTo(message);
  answer[0]! ^= 0xff;
  return answer;
}

async function udpServer(answers: (message: Buffer) => readonly Buffer[]): Promise<Upstream> {
  const socket = createSocket('udp4');
  onTestFinished(() => void socket.close());
  socket.on('message', (message, from: RemoteInfo) => {
    for (const answer of answers(message)) socket.send(answer, from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return new Upstream({ servers: ['127.0.0.1'], port: socket.address().port, timeoutMs, random: () => 0 });
}

test('a few datagrams that are not the answer do not keep it out', async () => {
  const upstream = await udpServer((message) => [wrongTo(message), Buffer.alloc(3), message, answerTo(message)]);
  expect(await upstream.ask(query, 'udp', never)).toEqual(answerTo(query));
});

test('a server that floods a query with other datagrams has not answered it', async () => {
  const upstream = await udpServer((message) => Array.from({ length: 20 }, () => wrongTo(message)));
  expect(await upstream.ask(query, 'udp', never)).toBeUndefined();
});

test('a server that begins with something else on a connection is not listened to any more', async () => {
  const closed = Promise.withResolvers<void>();
  const server = createServer((socket: Socket) => {
    socket.on('error', () => {}).on('close', () => closed.resolve());
    const frame = Buffer.concat([Buffer.of(0, query.length), wrongTo(query)]);
    const flood = (): void => {
      while (socket.write(frame));
    };
    socket.once('data', flood).on('drain', flood);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const upstream = new Upstream({ servers: ['127.0.0.1'], port, timeoutMs, random: () => 0 });
  expect(await upstream.ask(query, 'tcp', never)).toBeUndefined();
  await closed.promise;
});

test('a query has one timer while it waits, and leaves nothing behind', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  let whileWaiting = 0;
  const upstream = await udpServer((message) => {
    whileWaiting = vi.getTimerCount();
    return [answerTo(message)];
  });
  await upstream.ask(query, 'udp', never);
  expect(whileWaiting).toBe(1);
  expect(vi.getTimerCount()).toBe(0);
  expect(getEventListeners(never, 'abort')).toEqual([]);
});
