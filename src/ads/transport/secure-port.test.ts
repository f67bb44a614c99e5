import { once } from 'node:events';
import { type AddressInfo, type Socket, connect as connectPlain, createServer } from 'node:net';
import { type TLSSocket, connect } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { OpenSsl } from '../../identity/testing/openssl.ts';
import { type ClientCertificate, SecurePort } from './secure-port.ts';

/** A port on all addresses of this machine. */
async function listen() {
  const openssl = new OpenSsl();
  openssl.cacerts('ec -pkeyopt ec_paramgen_curve:P-256');
  const [certificate, key, roots] = ['ca.pem', 'ca.key', 'root.pem'].map((file) => openssl.read(file));
  const clients: ClientCertificate[] = [];
  let accepted = 0;
  let failures = 0;
  const port = new SecurePort({
    connected: (socket: Socket) => clients.push(port.clientOf(`${socket.remoteAddress}:${socket.remotePort}`)),
    failed: () => failures++,
  });
  port.present({ certificate: certificate!, key: key!, roots: roots! });
  const server = createServer((socket) => {
    accepted++;
    port.accept(socket);
  }).listen(0, '0.0.0.0');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port: number } = server.address() as AddressInfo;
  const dial = async (options: object = {}): Promise<TLSSocket> => {
    const socket = connect({
      host: '127.0.0.1',
      port: number,
      ALPNProtocols: ['h2'],
      rejectUnauthorized: false,
      ...options,
    });
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('secureConnect', resolve).once('close', resolve));
    return socket;
  };
  const clientOf = (peer: string): ClientCertificate => port.clientOf(peer);
  return { openssl, clients, clientOf, dial, number, accepted: () => accepted, failures: () => failures };
}

test('a name in a certificate cannot contain another one', async () => {
  const { openssl, clients, dial } = await listen();
  openssl.request('ec -pkeyopt ec_paramgen_curve:P-256');
  openssl.write(
    'leaf.ext',
    '[ext]\nextendedKeyUsage=clientAuth\nsubjectAltName=@names\n[names]\nemail.1="a, URI:spiffe://x/ns/a/sa/b, c"\nDNS.1=a.b\n',
  );
  openssl.run(
    'x509 -req -in request.pem -CA ca.pem -CAkey ca.key -days 1 -extfile leaf.ext -extensions ext -out leaf.pem',
  );
  const cert = openssl.read('leaf.pem') + openssl.read('ca.pem');
  await dial({ key: openssl.read('request.key'), cert });
  await expect.poll(() => clients).toHaveLength(1);
  expect(clients).toEqual([
    { kind: 'valid', names: [expect.stringMatching(/^email:"a\\u002c URI:.*"$/), 'DNS:a.b'], units: [] },
  ]);
});

test.each([
  ['of a client', 'clientAuth', '', { kind: 'valid' }],
  ['that has expired', 'clientAuth', ' -days -1', { kind: 'invalid', problem: 'CERT_HAS_EXPIRED' }],
  ['of a server', 'serverAuth', '', { kind: 'invalid', problem: 'INVALID_PURPOSE' }],
])('a certificate %s proves who the client is, or nothing', async (_, usage, options, expected) => {
  const { openssl, clients, dial } = await listen();
  openssl.request('ec -pkeyopt ec_paramgen_curve:P-256');
  openssl.write('leaf.ext', `subjectAltName=URI:spiffe://x/ns/a/sa/b\nextendedKeyUsage=${usage}\n`);
  openssl.run(`x509 -req -in request.pem -CA ca.pem -CAkey ca.key -extfile leaf.ext -out leaf.pem${options}`);
  await dial({ key: openssl.read('request.key'), cert: openssl.read('leaf.pem') + openssl.read('ca.pem') });
  await expect.poll(() => clients).toMatchObject([expected]);
});

test('a certificate of an unknown authority proves nothing, nor does one of a connection that is over', async () => {
  const { clients, clientOf, dial } = await listen();
  const other = new OpenSsl();
  other.cacerts('ec -pkeyopt ec_paramgen_curve:P-256');
  const socket = await dial({ key: other.read('ca.key'), cert: other.read('ca.pem') });
  await expect.poll(() => clients).toMatchObject([{ kind: 'invalid' }]);
  const plain = await dial();
  await expect.poll(() => clients.length).toBe(2);
  const peer = `${plain.localAddress}:${plain.localPort}`;
  expect([clients[1], clientOf(peer)]).toEqual([{ kind: 'none' }, { kind: 'none' }]);
  for (const each of [socket, plain]) each.destroy();
  await expect.poll(() => clientOf(peer)).toEqual({ kind: 'invalid', problem: 'the connection is closed' });
});

test('two connections from the same address and port are not taken for each other', async () => {
  const { clients, dial, failures } = await listen();
  const first = await dial({ host: '127.0.0.1', localAddress: '127.0.0.1' });
  await expect.poll(() => clients).toHaveLength(1);
  const same = { localAddress: '127.0.0.1', localPort: first.localPort };
  await dial({ host: '127.0.0.2', ...same });
  await expect.poll(() => clients.length + failures()).toBe(2);
  expect([clients.length, failures()]).toEqual([1, 1]);
  expect(first.destroyed).toBe(false);
});

test('two clients with a thousand unfinished handshakes keep nobody out', { timeout: 20_000 }, async () => {
  const { clients, dial, accepted, failures, number } = await listen();
  const sockets = Array.from({ length: 1_000 }, (_, i) =>
    connectPlain({ host: '127.0.0.1', port: number, localAddress: i < 500 ? '127.0.0.1' : '127.0.0.2' }),
  );
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  await Promise.all(
    sockets.map((socket) =>
      once(
        socket.on('error', () => undefined),
        'connect',
      ),
    ),
  );
  // A connection that the kernel has made may still wait to be accepted.
  await expect.poll(accepted, { timeout: 10_000 }).toBe(1_000);
  await dial({ localAddress: '127.0.0.3' });
  await expect.poll(() => clients).toHaveLength(1);
  expect(failures()).toBe(1);
});
