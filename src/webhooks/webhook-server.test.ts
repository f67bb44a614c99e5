import { connect as connectTls, type TLSSocket } from 'node:tls';
import { Agent, request as https } from 'node:https';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Authority } from '../identity/authority.ts';
import { selfSigned } from '../identity/self-signed.ts';
import { collect } from '../testing/memory.ts';
import { readMaterial } from '../identity/signing-material.ts';
import { LARGEST_REVIEW, type Webhook, type WebhookServer, serveWebhooks } from './webhook-server.ts';

let stopping: AbortController;
let server: WebhookServer;
let draining: boolean;
let begun: number;
let logged: object[];
let webhook: Webhook;

beforeEach(async () => {
  stopping = new AbortController();
  draining = false;
  begun = 0;
  logged = [];
  webhook = (_, path) => ({ allowed: true, warnings: [`path ${path}`] });
  server = await serveWebhooks({
    address: { host: '127.0.0.1', port: 0 },
    webhooks: new Map([['inject', (...args) => webhook(...args)]]),
    // It is asked for each call.
    draining: () => {
      begun++;
      return draining;
    },
    log: { error: (_, fields) => void logged.push(fields) },
    signal: stopping.signal,
  });
});
afterEach(async () => {
  stopping.abort();
  await server.closed;
});

/** A root, and a certificate of it for the server. */
async function certified(): Promise<{ root: string; certificate: string; key: string }> {
  const entries = await selfSigned('cluster.local', new Date());
  const read = readMaterial(entries, new Date());
  if ('problem' in read) throw new Error(read.problem);
  const signed = await new Authority(read.material).signServer(['fairlead.mesh.svc'], 3600, new Date());
  if ('problem' in signed) throw new Error(signed.problem);
  return { root: read.material.roots.join(''), certificate: signed.chain[0]!, key: signed.key };
}

interface Call {
  readonly path?: string;
  readonly method?: string;
  readonly type?: string;
  readonly body?: string;
  readonly agent?: Agent;
  /** Its address. */
  readonly from?: string;
}

const review = JSON.stringify({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: { uid: 'u', operation: 'CREATE', kind: {}, resource: {}, object: {} },
});

async function call(ca: string, options: Call = {}): Promise<{ status: number; body: string; connection: unknown }> {
  const { path = '/inject', method = 'POST', type = 'application/json', body = review, agent, from } = options;
  const sent = https({
    ...{ host: '127.0.0.1', port: server.port, servername: 'fairlead.mesh.svc', ca, path, method },
    headers: { 'content-type': type, 'content-length': Buffer.byteLength(body) },
    ...(agent && { agent }),
    ...(from !== undefined && { localAddress: from }),
  });
  sent.on('error', () => undefined);
  sent.end(method === 'GET' ? '' : body);
  const [response] = (await once(sent, 'response')) as [import('node:http').IncomingMessage];
  response.setEncoding('utf8');
  const chunks = await response.toArray();
  return { status: response.statusCode!, body: chunks.join(''), connection: response.headers.connection };
}

describe('the server of webhooks', () => {
  test('answers a review, with what follows the name of the webhook in the path', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    const { status, body } = await call(root, { path: '/inject/cluster/east?timeout=10s' });
    expect(status).toBe(200);
    expect(JSON.parse(body)).toMatchObject({ response: { uid: 'u', allowed: true, warnings: ['path /cluster/east'] } });
  });

  test('has no connections before it has a certificate, and keeps them when it gets another one', async () => {
    const [first, second] = [await certified(), await certified()];
    await expect(call(first.root)).rejects.toThrow();
    server.present(first);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect(await call(first.root, { agent })).toMatchObject({ status: 200 });
    server.present(second);
    expect(await call(first.root, { agent })).toMatchObject({ status: 200 });
    expect(Object.values(agent.freeSockets).flat()).toHaveLength(1);
    expect(await call(second.root)).toMatchObject({ status: 200 });
    await expect(call(first.root)).rejects.toThrow(/certificate/);
    agent.destroy();
  });

  test.each([
    ['another method', { method: 'GET' }, 405, 'malformed'],
    ['another path', { path: '/reject' }, 404, 'malformed'],
    ['no path', { path: '*' }, 404, 'malformed'],
    ['another content type', { type: 'text/yaml' }, 415, 'malformed'],
    ['a body that is not JSON', { body: '{' }, 400, 'malformed'],
    ['an empty body', { body: '' }, 400, 'malformed'],
    ['a body that is not a review', { body: '{}' }, 400, 'malformed'],
    ['a body that is too large', { body: ' '.repeat(LARGEST_REVIEW + 1) }, 413, 'too large'],
  ])('gives no verdict to %s', async (_, options, status, reason) => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    expect(await call(root, options)).toMatchObject({ status });
    expect([...server.unanswered]).toEqual([[reason, 1]]);
    expect(await call(root)).toMatchObject({ status: 200 });
  });

  test('counts a body of unknown length while it comes', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    const sent = https({
      ...{ host: '127.0.0.1', port: server.port, servername: 'fairlead.mesh.svc', ca: root, path: '/inject' },
      ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
    });
    sent.on('error', () => undefined);
    for (let i = 0; i < 4; i++) sent.write(' '.repeat(1024 * 1024));
    const [response] = (await once(sent, 'response')) as [import('node:http').IncomingMessage];
    expect(response.statusCode).toBe(413);
    sent.destroy();
  });

  test('survives a webhook that throws, and logs it', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    webhook = () => {
      throw new RangeError('too deep');
    };
    expect(await call(root)).toMatchObject({ status: 500, body: 'internal error\n' });
    expect(logged).toEqual([{ err: expect.any(RangeError) as unknown }]);
    expect([...server.unanswered]).toEqual([['error', 1]]);
  });

  test('gives up on a body whose sender has gone, and gives its room to others', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    const sockets = await Promise.all(Array.from({ length: 12 }, () => begin(root)));
    // All room that one caller may have is taken: a call waits for the others.
    const waiting = call(root);
    for (const socket of sockets) socket.destroy();
    expect(await waiting).toMatchObject({ status: 200 });
    expect(server.unanswered.get('ended')).toBe(12);
  });

  test('a caller whose calls wait without end keeps out nobody else', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    const from = '127.0.0.2';
    const sockets = await Promise.all(Array.from({ length: 6 }, () => begin(root, { from })));
    // All of these wait for room, on one connection.
    const flood = await begin(root, { from, length: 0, calls: 600 });
    await expect.poll(() => begun).toBeGreaterThan(500);
    expect(await call(root)).toMatchObject({ status: 200 });
    for (const socket of [...sockets, flood]) socket.destroy();
  });

  test('small calls take room, too, however many one connection carries', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    let underWay = 0;
    webhook = () => {
      underWay++;
      return new Promise(() => undefined);
    };
    const flood = await begin(root, { length: review.length, calls: 3_000, body: review });
    await expect.poll(() => server.unanswered.get('busy')).toBeGreaterThan(0);
    expect(underWay).toBeLessThanOrEqual(1024);
    expect(await call(root, { from: '127.0.0.2', path: '/reject' })).toMatchObject({ status: 404 });
    flood.destroy();
  });

  test('bodies that do not come make room for those that do, whoever sends them', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    // Two callers have all room together, and want more.
    const held = [...Array<number>(5).fill(LARGEST_REVIEW), 1024 * 1024, LARGEST_REVIEW];
    const slow = ['127.0.0.2', '127.0.0.3'].flatMap((from) => held.map((length) => ({ from, length })));
    const sockets: TLSSocket[] = [];
    let said = '';
    for (const each of slow) sockets.push((await begin(root, each)).on('data', (chunk) => (said += chunk)));
    await expect.poll(() => begun).toBe(14);
    const calls = [call(root), call(root)];
    await expect.poll(() => begun).toBe(16);
    vi.advanceTimersByTime(2_000);
    expect(await Promise.all(calls)).toMatchObject([{ status: 200 }, { status: 200 }]);
    // Not by the time limit of any call.
    expect(said).toBe('');
    // They are behind all others now, and have half of the room together.
    for (const each of slow) sockets.push(await begin(root, each));
    await expect.poll(() => begun).toBe(30);
    expect(await call(root)).toMatchObject({ status: 200 });
    for (const socket of sockets) socket.destroy();
  });

  test('a caller with many namespaces has one turn of all callers', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const order: string[] = [];
    webhook = ({ namespace }) => {
      order.push(namespace);
      if (namespace !== '') vi.advanceTimersByTime(800);
      return { allowed: true };
    };
    const callIn = (namespace: string, from?: string) =>
      call(root, { body: review.replace('"uid"', `"namespace":"${namespace}","uid"`), ...(from && { from }) });
    await callIn('a', '127.0.0.2');
    const others = ['b', 'c', 'd'].map((namespace) => callIn(namespace, '127.0.0.2'));
    await expect.poll(() => begun).toBe(4);
    // A large one has no part in this; by its answer, the others have come.
    const large = review + ' '.repeat(32 * 1024);
    expect(await call(root, { body: large, from: '127.0.0.2' })).toMatchObject({ status: 200 });
    others.push(callIn('shop'));
    await expect.poll(() => begun).toBe(6);
    expect(await call(root, { body: large, from: '127.0.0.3' })).toMatchObject({ status: 200 });
    expect(order).toEqual(['a', '', '']);
    while (order.length < 7) await vi.advanceTimersByTimeAsync(800);
    await Promise.all(others);
    expect(order.indexOf('shop')).toBeLessThan(5);
  });

  /** A connection on which calls begin; without a body, what they announce does not come. */
  async function begin(
    ca: string,
    { from = '127.0.0.1', path = '/inject', length = LARGEST_REVIEW, calls = 1, body = '' } = {},
  ): Promise<TLSSocket> {
    const socket = connectTls({
      ...{ host: '127.0.0.1', port: server.port, localAddress: from, servername: 'fairlead.mesh.svc', ca },
    });
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    const head = [`POST ${path} HTTP/1.1`, 'host: x', 'content-type: application/json', `content-length: ${length}`];
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`.repeat(calls));
    return socket;
  }

  const large = review + ' '.repeat(32 * 1024);

  test('handles large bodies one after the other, and others at once', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    let decided = 0;
    webhook = (_, path) => {
      if (path !== '') return { allowed: true };
      decided++;
      vi.advanceTimersByTime(80);
      return { allowed: true };
    };
    const calls = Array.from({ length: 3 }, () => call(root, { body: large }));
    while (begun < 3 || decided < 1) await setImmediate();
    for (let answered = 1; answered <= 3; answered++) {
      for (const ms of [0, 70]) {
        await vi.advanceTimersByTimeAsync(ms);
        expect(await call(root, { path: '/inject/a/b' })).toMatchObject({ status: 200 });
        expect(decided).toBe(answered);
      }
      await vi.advanceTimersByTimeAsync(10);
      while (decided === answered && answered < 3) await setImmediate();
    }
    expect(await Promise.all(calls)).toEqual(calls.map(() => expect.objectContaining({ status: 200 }) as unknown));
  });

  test('a large body has no turn while its webhook waits, and its caller may go', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    webhook = (_, path) => (path === '/waits' ? new Promise(() => undefined) : { allowed: true });
    const waiting = await begin(root, { path: '/inject/waits', length: large.length, body: large });
    await expect.poll(() => begun).toBe(1);
    expect(await call(root, { path: '/inject/', body: large })).toMatchObject({ status: 200 });
    waiting.destroy();
    await expect.poll(() => server.unanswered.get('ended')).toBe(1);
  });

  test.each([
    ['small', review, large],
    ['large', large, review],
  ])('what a webhook has waited for is followed by a turn of its own: %s', async (_, body, other) => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { promise: waited, resolve: come } = Promise.withResolvers<void>();
    let [asked, decided] = [0, 0];
    webhook = (_, path) => {
      if (path !== '') return { allowed: true };
      asked++;
      return waited.then(() => ({ uid }) => {
        decided++;
        vi.advanceTimersByTime(80);
        return { allowed: true, warnings: [`decided ${uid}`] };
      });
    };
    const calls = Array.from({ length: 3 }, () => call(root, { body }));
    await expect.poll(() => asked).toBe(3);
    come();
    for (let turn = 1; turn <= 3; turn++) {
      while (decided < turn) await setImmediate();
      for (const ms of [0, 70]) {
        await vi.advanceTimersByTimeAsync(ms);
        // Turns of another kind, which have no part in this, show that nothing else is on its way.
        expect(await call(root, { body: other, path: '/inject/a/b' })).toMatchObject({ status: 200 });
        expect(decided).toBe(turn);
      }
      await vi.advanceTimersByTimeAsync(10);
    }
    for (const { body } of await Promise.all(calls))
      expect(JSON.parse(body)).toMatchObject({ response: { uid: 'u', warnings: ['decided u'] } });
  });

  test('an object is not kept while its webhook waits', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    const kept: WeakRef<object>[] = [];
    webhook = ({ object }) => {
      kept.push(new WeakRef(object!));
      return new Promise(() => undefined);
    };
    const calls = [large, review].map((body) => begin(root, { length: body.length, body }));
    await expect.poll(() => kept.length).toBe(2);
    await expect.poll(() => (collect(), kept.filter((each) => each.deref() !== undefined).length)).toBe(0);
    for (const socket of await Promise.all(calls)) socket.destroy();
  });

  test('no more calls wait than that, from however many addresses; each address has its share', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    // Two callers have all room together.
    const sockets = await Promise.all(
      ['127.0.0.2', '127.0.0.3'].flatMap((from) =>
        [...Array<number>(5).fill(LARGEST_REVIEW), 1024 * 1024].map((length) => begin(root, { from, length })),
      ),
    );
    await expect.poll(() => begun).toBe(12);
    for (let i = 10; i < 30; i++) sockets.push(await begin(root, { from: `127.0.0.${i}`, length: 0, calls: 25 }));
    await expect.poll(() => begun).toBe(512);
    expect(server.unanswered.get('busy')).toBe(100);
    for (const socket of sockets) socket.destroy();
  });

  test('pauses after an object that took long, and goes on with another namespace', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const order: string[] = [];
    webhook = ({ namespace }) => {
      order.push(namespace);
      if (namespace === 'slow') vi.advanceTimersByTime(80);
      return { allowed: true };
    };
    const callIn = (namespace: string) =>
      call(root, { body: review.replace('"uid"', `"namespace":"${namespace}","uid"`) });
    const first = callIn('slow');
    await first;
    const others = [callIn('slow'), callIn('slow'), callIn('shop')];
    await expect.poll(() => begun).toBe(4);
    // A large one has no part in this; by its answer, the others have come.
    expect(await call(root, { body: review + ' '.repeat(32 * 1024) })).toMatchObject({ status: 200 });
    expect(order).toEqual(['slow', '']);
    while (order.length < 5) await vi.advanceTimersByTimeAsync(80);
    await Promise.all(others);
    expect(order).toEqual(['slow', '', 'slow', 'shop', 'slow']);
  });

  test('is not held up by connections that say nothing', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    let closed = 0;
    const sockets = Array.from({ length: 600 }, () =>
      connect(server.port, '127.0.0.1')
        .on('error', () => undefined)
        .resume(),
    );
    for (const socket of sockets) socket.once('close', () => closed++);
    await Promise.all(sockets.map((socket) => once(socket, 'connect').catch(() => undefined)));
    expect(await call(root)).toMatchObject({ status: 200 });
    await expect.poll(() => closed).toBe(600 - 512 + 1);
    for (const socket of sockets) socket.destroy();
  });

  test('asks its callers to go elsewhere while it drains', async () => {
    const { root, ...certificate } = await certified();
    server.present(certificate);
    expect(await call(root)).toMatchObject({ connection: 'keep-alive' });
    draining = true;
    expect(await call(root)).toMatchObject({ status: 200, connection: 'close' });
  });
});
