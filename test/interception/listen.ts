/** Answers every request on the given ports with the name of its listener: NAME UID PORT[,PORT...] */
import { once } from 'node:events';
import { createServer } from 'node:http';

const [name = '', uid, ports = ''] = process.argv.slice(2);
process.setgid?.(Number(uid));
process.setuid?.(Number(uid));
for (const port of ports.split(',').map(Number)) {
  const server = createServer((_, response) => void response.end(`${name}:${port}`)).listen({ port, host: '::' });
  await once(server, 'listening');
}
process.stdout.write('listening\n');
