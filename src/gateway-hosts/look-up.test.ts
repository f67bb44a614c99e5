import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { lookUpHost } from './look-up.ts';

/** A name server that knows one IPv4 address; `broken` says for which types of records it fails. 28: IPv6. */
async function nameServer(broken: readonly number[] = []): Promise<readonly string[]> {
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => {
    const type = query.readUInt16BE(query.indexOf(0, 12) + 1);
    const question = query.subarray(12, query.indexOf(0, 12) + 5);
    const hasAnswer = type === 1 && !broken.includes(type);
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x8180 | (broken.includes(type) ? 2 : 0), 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(hasAnswer ? 1 : 0, 6);
    const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 77, 0, 4, 192, 0, 2, 1]);
    socket.send(Buffer.concat([header, question, ...(hasAnswer ? [answer] : [])]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  onTestFinished(() => void socket.close());
  return [`127.0.0.1:${socket.address().port}`];
}

const never = new AbortController().signal;

test('a name has the addresses of both families, for as long as the answer says', async () => {
  expect(await lookUpHost('gw.example.com', never, await nameServer())).toEqual({ addresses: ['192.0.2.1'], ttl: 77 });
});

test('half an answer is none', async () => {
  await expect(lookUpHost('gw.example.com', never, await nameServer([28]))).rejects.toMatchObject({
    code: 'ESERVFAIL',
  });
});

test('whoever has given up is not kept waiting', async () => {
  await expect(lookUpHost('gw.example.com', AbortSignal.abort(), await nameServer())).rejects.toThrow('aborted');
});
