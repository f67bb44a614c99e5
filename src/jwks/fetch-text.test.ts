import { type RequestListener, createServer } from 'node:http';
import { type AddressInfo, type Socket, createServer as createTcpServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { AllowedAddresses } from './addresses.ts';
import { FetchError, fetchText, redirected } from './fetch-text.ts';

/** Ends the fetch that waits. */
let abort: () => void = () => undefined;

const local = new AllowedAddresses(['127.0.0.0/8']);

const get = (url: string, options: Partial<Parameters<typeof fetchText>[1]> = {}) =>
  fetchText(url, { allowed: local, mostBytes: 256 * 1024, signal: new AbortController().signal, ...options });

/** Its URL, without a slash. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Speaks TCP. */
async function listen(onConnection: (socket: Socket) => void): Promise<string> {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    sockets.push(socket.on('error', () => undefined));
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('the text at a URL', async () => {
  const url = await serve((request, response) => {
    expect(request.headers).toMatchObject({ accept: 'application/json', 'user-agent': 'fairlead' });
    response.end(`über ${request.url}`);
  });
  expect(await get(`${url}/a?b`)).toBe('über /a?b');
});

test.each<[string, () => Promise<string>]>([
  ['does not answer', () => listen(() => abort())],
  ['does not end its answer', () => serve((_, response) => void response.write('{', () => abort()))],
  [
    'does not answer behind a redirect',
    () =>
      serve(({ url }, response) => void (url === '/' ? response.writeHead(302, { location: '/b' }).end() : abort())),
  ],
])('a server that %s ends with the signal', async (_, start) => {
  const end = new AbortController();
  abort = () => end.abort();
  const url = await start();
  await expect(get(`${url}/`, { signal: end.signal })).rejects.toThrow();
  expect(end.signal.aborted).toBe(true);
});

test('a signal that has fired already asks nobody', async () => {
  const url = await serve(() => expect.fail('asked'));
  await expect(get(url, { signal: AbortSignal.abort() })).rejects.toThrow();
});

test('three redirects are followed, of any kind, and a fourth is not', async () => {
  const url = await serve((request, response) => {
    const left = Number(request.url!.slice(1));
    if (left === 0) response.end('found');
    else
      response
        .writeHead([301, 302, 307, 308][left % 4]!, { location: left % 2 ? `/${left - 1}` : `${left - 1}` })
        .end();
  });
  expect(await get(`${url}/3`)).toBe('found');
  await expect(get(`${url}/4`)).rejects.toThrow(new FetchError('more than 3 redirects'));
});

test('a redirect does not lead from https to http', () => {
  const from = new URL('https://issuer.example/keys');
  expect(redirected(from, '/other')).toBe('https://issuer.example/other');
  expect(redirected(new URL('http://issuer.example/keys'), 'https://issuer.example/')).toBe('https://issuer.example/');
  for (const to of ['http://issuer.example/', 'HTTP://issuer.example/'])
    expect(() => redirected(from, to)).toThrow(new FetchError('a redirect from https to http'));
});

test.each([
  ['http://10.0.0.1/', '10.0.0.1 is not a public address'],
  ['http://169.254.169.254/latest/meta-data', '169.254.169.254 is not a public address'],
  ['http://[::1]:1/', '::1 is not a public address'],
  ['file:///etc/passwd', 'file:// URLs are not fetched'],
  ['gopher://127.0.0.1/', 'gopher:// URLs are not fetched'],
  ['http://', 'a redirect to something that is not a URL'],
])('a redirect to %s is not followed', async (location, message) => {
  const url = await serve((_, response) => response.writeHead(302, { location }).end());
  await expect(get(url)).rejects.toThrow(message);
});

test.each([
  'http://127.0.0.1:1/',
  'http://127.1:1/',
  'http://2130706433:1/',
  'http://0x7f.0.0.1:1/',
  'http://0:1/',
  'http://10.0.0.1/',
  'http://[::1]:1/',
  'http://[::]:1/',
  'http://[::ffff:127.0.0.1]:1/',
  'http://[::ffff:7f00:1]:1/',
  'http://[fe80::1]/',
  'https://192.168.0.1/',
  // DNS says 127.0.0.1, or ::1.
  'http://localhost:1/',
  'https://localhost:1/',
])('%s is not called', async (url) => {
  await expect(get(url, { allowed: new AllowedAddresses([]) })).rejects.toThrow(/is not a public address/);
});

test('a name is called at those of its addresses that are allowed', async () => {
  const url = await serve((_, response) => response.end('found'));
  expect(await get(url.replace('127.0.0.1', 'localhost'))).toBe('found');
});

test.each(['ftp://127.0.0.1/', 'file:///etc/passwd', 'data:text/plain,a', 'unix:/tmp/a'])(
  '%s is not http',
  async (url) => {
    await expect(get(url)).rejects.toThrow(/URLs are not fetched$/);
  },
);

test('an answer of 256 KiB is taken, and of 300 KiB is not, whatever it says about its length', async () => {
  const url = await serve((request, response) => {
    const length = Number(request.url!.slice(1));
    response.write('a'.repeat(length / 2));
    response.end('a'.repeat(length / 2));
  });
  expect(await get(`${url}/${256 * 1024}`)).toHaveLength(256 * 1024);
  await expect(get(`${url}/${300 * 1024}`)).rejects.toThrow(new FetchError('the answer is longer than 256 KiB'));
});

test.each([201, 204, 304, 404, 500, 302])('status %d is an error', async (status) => {
  const url = await serve((_, response) => response.writeHead(status).end());
  await expect(get(url)).rejects.toThrow(new FetchError(`HTTP status ${status}`));
});

test('what is not HTTP is an error', async () => {
  const url = await listen((socket) => socket.end('SSH-2.0-x\r\n'));
  await expect(get(url)).rejects.toMatchObject({ code: expect.stringMatching(/^HPE_/) });
  await expect(get(url.replace('http:', 'https:'))).rejects.toThrow();
});

test('an answer that is cut off is an error', async () => {
  const url = await serve((_, response) => {
    response.writeHead(200, { 'content-length': '10' });
    response.write('a', () => response.destroy());
  });
  await expect(get(url)).rejects.toThrow();
});
