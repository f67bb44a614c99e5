/** Answers every connection and datagram on the given ports with the name of its listener: NAME UID PORT[,PORT...] */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

const [name = '', uid, ports = ''] = process.argv.slice(2);
process.setgid?.(Number(uid));
process.setuid?.(Number(uid));
for (const port of ports.split(',').map(Number)) {
  const answer = `${name}:${port}`;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(answer);
  }).listen({ port, host: '::' });
  await once(server, 'listening');
  // As the agent: the answer must come from the address that the kernel made the destination of the question.
  for (const [type, address] of [
    ['udp4', port === 15053 ? '127.0.0.1' : '0.0.0.0'],
    ['udp6', port === 15053 ? '::1' : '::'],
  ] as const) {
    const socket = createSocket({ type, ipv6Only: type === 'udp6' });
    socket.on('message', (_, { port: to, address: at }) => void socket.send(answer, to, at));
    socket.bind(port, address);
    await once(socket, 'listening');
  }
}
process.stdout.write('listening\n');
