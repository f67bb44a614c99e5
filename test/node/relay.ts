/**
 * The way from the machine into a node's network: `relay.ts SOCKET NAMESERVER`. A client of the socket says in its first
 * line where to, `HOST PORT`; everything after it is passed on. Sockets in the file system are not bound to a network.
 */
import { Resolver } from 'node:dns/promises';
import { type Socket, connect, createServer, isIP } from 'node:net';

const LONGEST_LINE = 300;

const [path = '', nameserver = ''] = process.argv.slice(2);
const resolver = new Resolver({ timeout: 1000, tries: 3 });
resolver.setServers([nameserver]);

createServer({ allowHalfOpen: true }, (client) => {
  client.on('error', () => client.destroy());
  let head = Buffer.alloc(0);
  const read = (chunk: Buffer): void => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\n');
    if (end === -1) {
      if (head.length > LONGEST_LINE) client.destroy();
      return;
    }
    client.off('data', read).pause();
    const [host = '', port = ''] = head.subarray(0, end).toString().split(' ');
    const rest = head.subarray(end + 1);
    void join(client, host, Number(port), rest);
  };
  client.on('data', read);
}).listen(path);

async function join(client: Socket, host: string, port: number, rest: Buffer): Promise<void> {
  try {
    const address = isIP(host) ? host : (await resolver.resolve4(host))[0];
    const server = connect({ host: address ?? '', port, allowHalfOpen: true });
    server.on('error', () => client.destroy());
    client.on('close', () => server.destroy());
    server.on('close', () => client.destroy());
    if (rest.length > 0) server.write(rest);
    client.pipe(server).pipe(client);
  } catch {
    // A name that nobody has: the client sees a closed connection.
    client.destroy();
  }
}
