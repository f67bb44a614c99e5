import { once } from 'node:events';
import { type RequestListener, createServer } from 'node:http';
import { type AddressInfo, type Socket, createServer as createTcpServer } from 'node:net';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import { readAppProbes, runProbe } from './app-probes.ts';

const HERE = { host: '127.0.0.1', from: '127.0.0.6' };
const KUBELET = { headers: {}, signal: new AbortController().signal };

async function startApp(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const probe = (handler: object) =>
  readAppProbes(JSON.stringify({ '/p': { timeoutSeconds: 2, ...handler } })).get('/p')!;

test('the application sees the request that the kubelet would have sent', async () => {
  const seen: unknown[] = [];
  const port = await startApp((request, response) => {
    seen.push([
      request.url,
      request.headers.host,
      request.headers['user-agent'],
      request.headers['x-a'],
      request.socket.remoteAddress,
    ]);
    response.writeHead(418).end('short and stout');
  });
  const answer = await runProbe(
    probe({ httpGet: { path: '/live?x=1', port, httpHeaders: [{ name: 'X-A', value: 'b' }] } }),
    HERE,
    {
      ...KUBELET,
      headers: { host: '10.0.0.1:15020', 'user-agent': 'kube-probe/1.34', connection: 'close' },
    },
  );
  expect(answer).toEqual({ status: 418, body: 'short and stout' });
  // From an address that is not intercepted.
  expect(seen).toEqual([['/live?x=1', `127.0.0.1:${port}`, 'kube-probe/1.34', 'b', '127.0.0.6']]);
});

test('a redirect to another host counts as success, one on the same host as itself', async () => {
  const port = await startApp((request, response) =>
    response.writeHead(302, { location: request.url === '/out' ? 'https://login.example/' : '/in' }).end(),
  );
  const status = async (path: string) => (await runProbe(probe({ httpGet: { path, port } }), HERE, KUBELET)).status;
  expect([await status('/out'), await status('/other')]).toEqual([200, 302]);
});

test('a long answer is cut, and none is a failure', async () => {
  const port = await startApp((request, response) => {
    if (request.url === '/long') response.end('x'.repeat(100_000));
  });
  expect((await runProbe(probe({ httpGet: { path: '/long', port } }), HERE, KUBELET)).body).toHaveLength(10_240);
  expect(await runProbe(probe({ httpGet: { path: '/silent', port } }), HERE, KUBELET)).toEqual({
    status: 500,
    body: 'the application does not answer\n',
  });
});

test('an answer that does not end is cut, one that breaks off is a failure', async () => {
  const port = await startApp((request, response) => {
    response.writeHead(200, { 'content-length': '20000' });
    if (request.url === '/endless') response.write('x'.repeat(15_000));
    else response.write('x', () => response.destroy());
  });
  const answer = (path: string) => runProbe(probe({ httpGet: { path, port } }), HERE, KUBELET);
  expect(await answer('/endless')).toEqual({ status: 200, body: 'x'.repeat(10_240) });
  expect((await answer('/broken')).status).toBe(500);
});

test.each(['httpGet', 'grpc'])('a probe of %s ends when nobody waits for it any more', async (kind) => {
  const [server, gone] = [createTcpServer().listen(0, '127.0.0.1'), new AbortController()];
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const asked = runProbe(probe({ [kind]: { port }, timeoutSeconds: 3_000 }), HERE, {
    headers: {},
    signal: gone.signal,
  });
  const [socket] = (await once(server, 'connection')) as [Socket];
  gone.abort();
  socket.on('error', () => {}).resume();
  await once(socket, 'close');
  expect((await asked).status).toBe(500);
});

test('TCP is open or not', async () => {
  const server = createTcpServer((socket) => socket.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const open = probe({ tcpSocket: { port } });
  expect(await runProbe(open, HERE, KUBELET)).toEqual({ status: 200, body: '' });
  server.close();
  await once(server, 'close');
  expect((await runProbe(open, HERE, KUBELET)).status).toBe(500);
});

test('gRPC health is asked for the service', async () => {
  const server = new Server();
  onTestFinished(() => server.forceShutdown());
  const bytes = (value: Buffer): Buffer => value;
  server.addService(
    {
      Check: {
        path: '/grpc.health.v1.Health/Check',
        requestStream: false,
        responseStream: false,
        requestSerialize: bytes,
        requestDeserialize: bytes,
        responseSerialize: bytes,
        responseDeserialize: bytes,
      },
    },
    {
      Check: ({ request }: { request: Buffer }, done: (error: object | null, answer?: Buffer) => void) =>
        request.toString().endsWith('gone')
          ? done({ code: 5, details: 'unknown service' })
          : done(null, Buffer.from([8, request.length > 0 ? 2 : 1])),
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  expect(await runProbe(probe({ grpc: { port } }), HERE, KUBELET)).toEqual({ status: 200, body: '' });
  expect(await runProbe(probe({ grpc: { port, service: 'busy' } }), HERE, KUBELET)).toEqual({
    status: 500,
    body: 'gRPC health status 2\n',
  });
  expect(await runProbe(probe({ grpc: { port, service: 'gone' } }), HERE, KUBELET)).toEqual({
    status: 500,
    body: 'gRPC status 5: unknown service\n',
  });
});

test('what the injector cannot have written is refused', () => {
  expect(readAppProbes('')).toEqual(new Map());
  for (const text of ['[', '[]', '{"/p": {}}', '{"/p": {"httpGet": {"port": 0}}}', '{"/p": {"exec": {}}}'])
    expect(() => readAppProbes(text)).toThrow(/ISTIO_KUBE_APP_PROBERS/);
});
