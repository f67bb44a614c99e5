import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { KubeConfig } from '@kubernetes/client-node';
import { createAuthority } from '../../../test/peers/keys.ts';
import { KubeClient } from './client.ts';
import { PooledKubeConfig } from './credentials.ts';
import type { KubeUser } from './kube-config.ts';
import { FakeClock } from '../../testing/fake-clock.ts';
import { Pace } from './pace.ts';
import { FakeApiServer } from '../testing/fake-api-server.ts';

const path = '/api/v1/pods';
const { signal } = new AbortController();
let server: FakeApiServer;
let client: KubeClient;
let token = 'old';

beforeEach(async () => {
  server = await new FakeApiServer().start();
  server.cluster.install(path, 'Pod');
  token = 'old';
  client = new KubeClient({ config: new PooledKubeConfig(() => server.kubeConfig(token)) });
});

afterEach(async () => {
  await client.close();
  await server.stop();
});

test('requests share connections', async () => {
  for (let i = 0; i < 20; i++) await client.get(path, { signal });
  expect(server.connections).toBeLessThanOrEqual(2);
});

test("client-node's own requests use them too", async () => {
  const { CoreV1Api } = await import('@kubernetes/client-node');
  const api = client.config.makeApiClient(CoreV1Api);
  await client.get(path, { signal });
  for (let i = 0; i < 5; i++) expect(await api.listPodForAllNamespaces()).toMatchObject({ items: [] });
  expect(server.connections).toBeLessThanOrEqual(2);
});

describe('a token that is refused', () => {
  test('is read again, and the request repeated, without anybody noticing', async () => {
    server.tokens = new Set(['new']);
    token = 'new';
    expect(await client.get(path, { signal })).toMatchObject({ kind: 'PodList' });
    expect(server.cluster.requests).toHaveLength(1);
  });

  test('again is an error that may be retried', async () => {
    server.tokens = new Set(['other']);
    await expect(client.get(path, { signal })).rejects.toMatchObject({ code: 401, retryable: true });
  });

  test('is read once for all requests that were refused with it', async () => {
    let reads = 0;
    client = new KubeClient({
      config: new PooledKubeConfig(() => {
        reads++;
        return server.kubeConfig(reads === 1 ? 'old' : 'new');
      }),
    });
    server.tokens = new Set(['new']);
    await Promise.all(Array.from({ length: 10 }, () => client.get(path, { signal })));
    expect(reads).toBe(2);
  });

  test('stays in use when it cannot be read', async () => {
    let broken = false;
    const config = new PooledKubeConfig(() => {
      if (broken) throw new Error('no such file');
      return server.kubeConfig('old');
    });
    client = new KubeClient({ config });
    broken = true;
    server.tokens = new Set(['new']);
    await expect(client.get(path, { signal })).rejects.toMatchObject({ code: 401 });
    server.tokens = new Set(['old']);
    expect(await client.get(path, { signal })).toMatchObject({ kind: 'PodList' });
  });
});

describe('errors are typed', () => {
  test.each<[string, number, object | string, object]>([
    [
      'a Status',
      409,
      { kind: 'Status', code: 409, reason: 'Conflict', message: 'the object has been modified' },
      { code: 409, reason: 'Conflict', retryable: false, message: expect.stringContaining('has been modified') },
    ],
    ['a page of something else', 502, '<html>bad gateway', { code: 502, reason: 'NotKubernetes', retryable: true }],
    ['too many requests', 429, '', { code: 429, retryable: true }],
    ['a success that is not JSON', 200, 'hello', { code: 200, reason: 'NotJson', retryable: true }],
  ])('%s', async (_, status, body, expected) => {
    server.cluster.failNext(status, 1, body as never);
    await expect(client.get(path, { signal })).rejects.toMatchObject({ name: 'ApiError', ...expected });
  });

  test('a server that asks to wait', async () => {
    server.intercept.push((_, response) => void response.writeHead(429, { 'retry-after': '7' }).end('slow down'));
    await expect(client.get(path, { signal })).rejects.toMatchObject({ code: 429, retryAfter: 7000 });
    // Longer than a timer of Node can be.
    server.intercept.push((_, response) => void response.writeHead(503, { 'retry-after': '3000000' }).end());
    await expect(client.get(path, { signal })).rejects.toMatchObject({ code: 503, retryAfter: 60_000 });
  });

  test('nobody listens', async () => {
    await server.stop();
    await expect(client.get(path, { signal })).rejects.toMatchObject({
      code: 0,
      reason: 'ECONNREFUSED',
      retryable: true,
    });
    await server.start();
    expect(await client.get(path, { signal })).toMatchObject({ kind: 'PodList' });
  });

  test('the connection is reset within the answer', async () => {
    server.intercept.push((_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"kind":', () => server.reset());
    });
    await expect(client.get(path, { signal })).rejects.toMatchObject({ code: 0, retryable: true });
  });

  test('a server that does not answer', async () => {
    const impatient = new KubeClient({ config: new PooledKubeConfig(() => server.kubeConfig()), timeout: 50 });
    server.intercept.push(() => undefined);
    await expect(impatient.get(path, { signal })).rejects.toMatchObject({ code: 0, reason: 'UND_ERR_HEADERS_TIMEOUT' });
    await impatient.close();
  });

  test('an answer that is too long, of which no more is read', async () => {
    const small = new KubeClient({ config: new PooledKubeConfig(() => server.kubeConfig()), largest: 1_000 });
    let ended: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => (ended = resolve));
    server.intercept.push((_, response) => {
      response.writeHead(200);
      response.on('close', ended);
      const more = (): void => void (response.destroyed || response.write('x'.repeat(600), () => setImmediate(more)));
      more();
    });
    await expect(small.get(path, { signal })).rejects.toMatchObject({ reason: 'AnswerTooLarge', retryable: true });
    await closed;
    await small.close();
  });

  test('an explanation that does not end', async () => {
    server.intercept.push((_, response) => {
      response.writeHead(500);
      const more = (): void =>
        void (response.destroyed || response.write('x'.repeat(60_000), () => setImmediate(more)));
      more();
    });
    await expect(client.get(path, { signal })).rejects.toMatchObject({
      code: 500,
      message: expect.stringMatching(/^500 NotKubernetes: x{200}$/) as string,
    });
  });

  test('an answer that comes byte by byte without end', async () => {
    const impatient = new KubeClient({ config: new PooledKubeConfig(() => server.kubeConfig()), deadline: 200 });
    server.intercept.push((_, response) => {
      response.writeHead(200);
      const more = (): void => void (response.destroyed || response.write(' ', () => setTimeout(more, 10)));
      more();
    });
    await expect(impatient.get(path, { signal })).rejects.toMatchObject({
      code: 0,
      reason: 'Deadline',
      retryable: true,
    });
    await impatient.close();
  });

  test('TLS that does not come about makes a new pool', async () => {
    const config = new KubeConfig();
    config.loadFromOptions({
      clusters: [{ name: 'c', server: server.url.replace('http:', 'https:'), skipTLSVerify: true }],
      users: [{ name: 'u' }],
      contexts: [{ name: 'x', cluster: 'c', user: 'u' }],
      currentContext: 'x',
    });
    const pooled = new PooledKubeConfig(() => config);
    const overTls = new KubeClient({ config: pooled });
    const before = (await pooled.credentials({ signal })).dispatcher;
    await expect(overTls.get(path, { signal })).rejects.toMatchObject({ code: 0, retryable: true });
    expect((await pooled.credentials({ signal })).dispatcher).not.toBe(before);
    await overTls.close();
  });
});

describe('a signal', () => {
  test('that fired is the reason of the rejection', async () => {
    const reason = new Error('enough');
    await expect(client.get(path, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  test('ends a request that hangs, and a stream', async () => {
    for (const call of ['get', 'stream'] as const) {
      const abort = new AbortController();
      const reason = new Error('enough');
      server.intercept.push(() => abort.abort(reason));
      await expect(client[call](path, { signal: abort.signal })).rejects.toBe(reason);
    }
  });
});

test('the headers of impersonation are sent one by one', async () => {
  const read = (): KubeConfig => {
    const config = server.kubeConfig('t');
    const user: KubeUser = { ...config.users[0]!, impersonateUser: 'jane', impersonateGroups: ['dev', 'ops'] };
    config.users = [user];
    return config;
  };
  const asJane = new KubeClient({ config: new PooledKubeConfig(read) });
  const headers: string[] = [];
  server.intercept.push((request, response) => {
    headers.push(...request.rawHeaders);
    response.end('{}');
  });
  await asJane.get(path, { signal });
  const sent = headers.flatMap((name, i) => (/^impersonate-/i.test(name) ? [`${name}: ${headers[i + 1]}`] : []));
  expect(sent).toEqual(['Impersonate-User: jane', 'Impersonate-Group: dev', 'Impersonate-Group: ops']);
  await asJane.close();
});

test('requests and streams go through the proxy', async () => {
  const { certificate, key } = await (await createAuthority()).server(['127.0.0.1']);
  const secure = await new FakeApiServer(server.cluster, { certificate, key }).start();
  const tunnels: string[] = [];
  const sockets = new Set<Socket>();
  const proxy = createServer().on('connect', (request: IncomingMessage, socket: Socket) => {
    tunnels.push(request.url ?? '');
    const { hostname, port } = new URL(`http://${request.url}`);
    const onward = connect(Number(port), hostname, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
    for (const each of [socket, onward]) sockets.add(each.on('error', () => undefined));
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const read = (): KubeConfig => {
    const config = secure.kubeConfig();
    const proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    config.clusters = config.clusters.map((cluster) => ({ ...cluster, proxyUrl }));
    return config;
  };
  const through = new KubeClient({ config: new PooledKubeConfig(read) });
  expect(await through.get(path, { signal })).toMatchObject({ kind: 'PodList' });
  const bytes = await through.stream(path, { query: { watch: 1, resourceVersion: '100' }, signal });
  server.cluster.apply(path, { metadata: { name: 'a', namespace: 'n' } });
  const { value } = await bytes[Symbol.asyncIterator]().next();
  expect(JSON.parse(Buffer.from(value as Uint8Array).toString())).toMatchObject({ type: 'ADDED' });
  expect(new Set(tunnels)).toEqual(new Set([new URL(secure.url).host]));
  await through.close();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => proxy.close(resolve));
  await secure.stop();
});

test('a stream delivers bytes as they come, and fails when the connection does', async () => {
  const bytes = await client.stream(path, { query: { watch: 1, resourceVersion: '100' }, signal });
  server.cluster.apply(path, { metadata: { name: 'a', namespace: 'n' } });
  const iterator = bytes[Symbol.asyncIterator]();
  const { value } = await iterator.next();
  expect(JSON.parse(Buffer.from(value as Uint8Array).toString())).toMatchObject({ type: 'ADDED' });
  server.reset();
  await expect(iterator.next()).rejects.toThrow();
});

describe('of a server that others run', () => {
  const taken: number[] = [];
  class Recorded extends Pace {
    override take(amount: number): Promise<void> {
      taken.push(amount);
      return Promise.resolve();
    }
  }

  beforeEach(async () => {
    taken.length = 0;
    await client.close();
    const pace = new Recorded({ rate: 1, burst: 1, clock: new FakeClock() });
    client = new KubeClient({ config: new PooledKubeConfig(() => server.kubeConfig(token)), pace });
  });

  test('every request takes time, whether it is answered or not', async () => {
    await client.stream(path, { query: { watch: 1, resourceVersion: '100' }, signal });
    expect(taken).toEqual([16_384]);
    server.tokens = new Set(['other']);
    await expect(client.get(path, { signal })).rejects.toMatchObject({ code: 401 });
    expect(taken).toEqual([16_384, 16_384, 16_384]);
  });

  test('many small values take more of it than their bytes', async () => {
    const text = `{"items":[${'{},'.repeat(9_999)}{}]}`;
    const listening = createServer((_, response) => void response.end(text));
    await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
    const config = server.kubeConfig(token);
    config.clusters = config.clusters.map((cluster) => ({
      ...cluster,
      server: `http://127.0.0.1:${(listening.address() as AddressInfo).port}`,
    }));
    const pace = new Recorded({ rate: 1, burst: 1, clock: new FakeClock() });
    const other = new KubeClient({ config: new PooledKubeConfig(() => config), pace });
    await other.get(path, { signal });
    expect(taken.at(-1)).toBe(9_999 * 24);
    await other.close();
    await new Promise((resolve) => listening.close(resolve));
  });
});
