import type { ServerResponse } from 'node:http';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { afterSuite } from '../../src/testing/on-end.ts';
import { destinationRule, serviceEntry, sidecar, virtualService } from '../features/objects.ts';
import type { RunningEnvoy } from '../peers/envoy.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { type Reply, type Request, converse, send, startEcho } from './callers.ts';
import { RecordingBackend } from './recording-backend.ts';
import { SecuredMesh } from './secured-mesh.ts';

const HOST = 'reviews.example.com';
/** Of which the first endpoint warms up while other tests run. */
const WARM_HOST = 'warm.example.com';
const WARMUP_MS = 3_000;
/** Enough that chance alone does not send all of them where a hash does. */
const USERS = Array.from({ length: 24 }, (_, i) => `user-${i}`);

withPeers(['envoy'], 'what is asked for of requests, on a real Envoy', () => {
  const onEnd = afterSuite();
  let mesh: SecuredMesh;
  let envoy: RunningEnvoy;
  let [a, b, c] = [] as unknown as RecordingBackend[] as [RecordingBackend, RecordingBackend, RecordingBackend];
  /** Of the listener that the caller asks, and of the services that it reaches there. */
  let port = 0;
  let warmSince = 0;

  beforeAll(async () => {
    mesh = await SecuredMesh.start(onEnd);
    [a, b, c] = await Promise.all([
      RecordingBackend.start('a', onEnd),
      RecordingBackend.start('b', onEnd),
      RecordingBackend.start('c', onEnd),
    ]);
    [port = 0] = await freePorts(1);
    envoy = await mesh.caller('shop', warmed(a), warming);
    await reached({ host: WARM_HOST });
    warmSince = performance.now();
  });
  afterEach(async () => {
    for (const backend of [a, b, c]) backend.reset();
    await mesh.reset();
  });

  /** A host whose endpoints are these; their label `backend` is their name. */
  const entry = (name: string, ...backends: readonly RecordingBackend[]) =>
    serviceEntry(name, {
      hosts: [`${name}.example.com`],
      location: 'MESH_EXTERNAL',
      resolution: 'STATIC',
      ports: [{ number: port, name: 'http', protocol: 'HTTP' }],
      endpoints: backends.map((backend) => ({
        address: '127.0.0.1',
        ports: { http: backend.port },
        labels: { backend: backend.name },
      })),
    });
  const rule = (trafficPolicy: object) => destinationRule('reviews', { host: HOST, trafficPolicy });
  const routes = (...http: readonly object[]) => virtualService('reviews', { hosts: [HOST], http });
  const to = (name: string) => ({ destination: { host: `${name}.example.com` } });
  const toReviews = { route: [to('reviews')] };

  const warmed = (...backends: readonly RecordingBackend[]) => entry('warm', ...backends);
  const warming = destinationRule('warm', {
    host: WARM_HOST,
    trafficPolicy: {
      loadBalancer: { simple: 'ROUND_ROBIN', warmup: { duration: `${WARMUP_MS / 1000}s`, minimumPercent: 10 } },
    },
  });

  const until = <T>(what: string, ask: () => Promise<T | undefined>): Promise<T> =>
    poll(what, ask, { timeoutMs: 10_000 });
  const ask = async (request: Partial<Request> = {}): Promise<Reply> => {
    const reply = await send(port, { host: HOST, ...request });
    return reply === 'closed' ? expect.fail('closed') : reply;
  };
  /** Polls: a listener that was acknowledged takes connections a moment later. */
  const reached = (request: Partial<Request> = {}): Promise<Reply> =>
    until('an answer', async () => {
      const reply = await send(port, { host: HOST, ...request });
      return reply === 'closed' || reply.status === 404 || reply.status === 503 ? undefined : reply;
    });
  const inTurn = async <T>(items: readonly T[], each: (item: T) => Promise<string>): Promise<string[]> => {
    const answers: string[] = [];
    for (const item of items) answers.push(await each(item));
    return answers;
  };
  const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

  test('requests with the same header go to one backend, by a ring of the size that is asked for', async () => {
    const consistentHash = { httpHeaderName: 'x-user', ringHash: { minimumRingSize: 300 } };
    await mesh.apply(entry('reviews', a, b, c), rule({ loadBalancer: { consistentHash } }));
    await reached();
    expect(await statistic('ring_hash_lb.size')).toBe(300);
    const homes = () => inTurn(USERS, async (user) => (await ask({ headers: { 'x-user': user } })).body);
    const before = await homes();
    expect(new Set(before).size).toBeGreaterThan(1);
    expect(await homes()).toEqual(before);
  });

  test('a client without the cookie is given one, and stays with the backend that it leads to', async () => {
    const cookie = { name: 'session', ttl: '60s', path: '/' };
    await mesh.apply(entry('reviews', a, b, c), rule({ loadBalancer: { consistentHash: { httpCookie: cookie } } }));
    await reached();
    const first = await inTurn(times(USERS.length), async () => {
      const { headers, body } = await ask();
      const [set = ''] = headers['set-cookie'] ?? [];
      expect(set).toMatch(/^session="?[0-9a-f]+"?; Max-Age=60; Path=\/; HttpOnly$/);
      const again = await ask({ headers: { cookie: set.split(';')[0]! } });
      expect(again.headers['set-cookie']).toBeUndefined();
      return `${body} ${again.body}`;
    });
    expect(first.filter((pair) => pair[0] !== pair[2])).toEqual([]);
    expect(new Set(first).size).toBeGreaterThan(1);
  });

  test('requests with the same query parameter go to one backend, by a Maglev table of the size that is asked for', async () => {
    const consistentHash = { httpQueryParameterName: 'user', maglev: { tableSize: 251 } };
    await mesh.apply(entry('reviews', a, b, c), rule({ loadBalancer: { consistentHash } }));
    await reached();
    const homes = () => inTurn(USERS, async (user) => (await ask({ path: `/?user=${user}` })).body);
    const before = await homes();
    expect(new Set(before).size).toBeGreaterThan(1);
    expect(await homes()).toEqual(before);
    expect(await statistic('maglev_lb.max_entries_per_host')).toBe(Math.ceil(251 / 3));
  });

  test('requests beyond a full connection pool and its queue are answered 503 at once', async () => {
    const connectionPool = { tcp: { maxConnections: 1 }, http: { http1MaxPendingRequests: 1 } };
    await mesh.apply(entry('reviews', a), rule({ connectionPool }));
    await reached();
    const held = holdNext(a);
    const first = ask();
    const inService = await held;
    // Of these, the queue has a place for one.
    const others = [ask(), ask(), ask()];
    const refused = await Promise.race(others);
    expect(refused).toMatchObject({ status: 503, headers: { 'x-envoy-overloaded': 'true' } });
    expect(refused.body).toContain('overflow');
    a.answer((response) => response.end('a'));
    inService.end('a');
    expect(await first).toMatchObject({ status: 200 });
    expect((await Promise.all(others)).map(({ status }) => status).sort()).toEqual([200, 503, 503]);
    expect(new Set(a.received.map(({ connection }) => connection)).size).toBe(1);
  });

  test('a connection to a backend is closed after as many requests as the pool allows', async () => {
    await mesh.apply(entry('reviews', a), rule({ connectionPool: { http: { maxRequestsPerConnection: 2 } } }));
    await reached();
    a.reset();
    await inTurn(times(4), async () => (await ask()).body);
    const connections = new Set(a.received.map(({ connection }) => connection));
    // The request that came before is one of the first connection's.
    expect(connections.size).toBe(3);
  });

  test('a host below a DYNAMIC_DNS wildcard is resolved when it is asked for, and no other host is', async () => {
    // Names below localhost are loopback addresses to every resolver (RFC 6761).
    const dynamic = await RecordingBackend.start('dynamic', onEnd);
    const echo = await startEcho(onEnd, mesh.clients.foreign);
    // The request says on which port its host is, so the listener has the same, on another address.
    const bind = '127.0.0.2';
    // Without the Sidecar, the proxy would listen where the servers do.
    await mesh.apply(
      sidecar('caller', {
        workloadSelector: { labels: { app: 'caller' } },
        egress: [
          { port: { number: dynamic.port, protocol: 'HTTP', name: 'http' }, bind, hosts: ['./*'] },
          { port: { number: echo, protocol: 'TLS', name: 'tls' }, bind, hosts: ['./*'] },
        ],
        outboundTrafficPolicy: { mode: 'REGISTRY_ONLY' },
      }),
    );
    await mesh.apply(
      serviceEntry('dynamic', {
        hosts: ['*.localhost'],
        location: 'MESH_EXTERNAL',
        resolution: 'DYNAMIC_DNS',
        ports: [
          { number: dynamic.port, name: 'http', protocol: 'HTTP' },
          { number: echo, name: 'tls', protocol: 'TLS' },
        ],
      }),
    );
    const askFor = (host: string) => send(dynamic.port, { host, address: bind });
    const found = await until('an answer', async () => {
      const reply = await askFor(`one.localhost:${dynamic.port}`);
      return reply !== 'closed' && reply.status === 200 ? reply : undefined;
    });
    expect(found.body).toBe('dynamic');
    dynamic.reset();
    expect(await askFor(`two.localhost:${dynamic.port}`)).toMatchObject({ status: 200, body: 'dynamic' });
    expect(dynamic.received.map(({ headers }) => headers.host)).toEqual([`two.localhost:${dynamic.port}`]);
    expect(await askFor(`localhost:${dynamic.port}`)).toMatchObject({ status: 502 });
    expect(await askFor(`one.localhost.example.com:${dynamic.port}`)).toMatchObject({ status: 502 });
    expect(dynamic.received).toHaveLength(1);
    const connectTo = (servername: string) => converse(echo, { address: bind, secrets: 'none', servername });
    expect(await connectTo('three.localhost')).toBe('echoed');
    expect(await connectTo('three.localhost.example.com')).toBe('closed');
  });

  test('a mirror receives copies, under the same host, of as many requests as it is to', async () => {
    const mirrorsTo = (percentage: number) =>
      routes({ ...toReviews, mirrors: [{ ...to('shadow'), percentage: { value: percentage } }] });
    await mesh.apply(entry('reviews', a), entry('shadow', b), mirrorsTo(100));
    await reached();
    /** How many of these requests were mirrored, when the mirror has received them all. */
    const mirrored = async (requests: number): Promise<number> => {
      const before = await statistic('upstream_rq_total', 'shadow.example.com');
      for (const i of times(requests))
        expect((await ask({ path: `/${i}`, headers: { 'x-user': 'me' } })).body).toBe('a');
      const sent = (await statistic('upstream_rq_total', 'shadow.example.com')) - before;
      await until('copies', () => Promise.resolve(b.received.length >= sent || undefined));
      return sent;
    };
    await until('the first copy', () => Promise.resolve(b.received.length > 0 || undefined));
    for (const backend of [a, b]) backend.reset();
    expect(await mirrored(5)).toBe(5);
    expect(b.received.map(({ url }) => url).sort()).toEqual(a.received.map(({ url }) => url).sort());
    expect(b.received[0]?.headers).toMatchObject({ host: HOST, 'x-user': 'me' });
    await mesh.apply(mirrorsTo(50));
    await until('a request without a copy', async () => ((await mirrored(1)) === 0 ? true : undefined));
    for (const backend of [a, b]) backend.reset();
    // By chance alone, fewer or more are one case in a billion.
    const half = await mirrored(100);
    expect([half > 20, half < 80]).toEqual([true, true]);
    expect(b.received).toHaveLength(half);
  });

  test('a preflight request is answered by the proxy, and answers are for the origins of the policy', async () => {
    const corsPolicy = {
      allowOrigins: [{ exact: 'https://shop.example.com' }, { regex: 'https://[a-z]+\\.partner\\.example' }],
      allowMethods: ['GET', 'PUT'],
      allowHeaders: ['x-user', 'x-trace'],
      exposeHeaders: ['x-total'],
      maxAge: '10m',
      allowCredentials: true,
    };
    await mesh.apply(entry('reviews', a), routes({ ...toReviews, corsPolicy }));
    await reached();
    a.reset();
    const corsOf = ({ headers }: Reply) =>
      Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('access-control-')));
    const preflight = (origin: string) =>
      ask({ method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'PUT' } });
    for (const origin of ['https://shop.example.com', 'https://one.partner.example']) {
      const allowed = await preflight(origin);
      expect(allowed.status).toBe(200);
      expect(corsOf(allowed)).toEqual({
        'access-control-allow-origin': origin,
        'access-control-allow-credentials': 'true',
        'access-control-allow-methods': 'GET,PUT',
        'access-control-allow-headers': 'x-user,x-trace',
        'access-control-expose-headers': 'x-total',
        'access-control-max-age': '600',
      });
      expect(a.received).toEqual([]);
      const answer = await ask({ headers: { origin } });
      expect(answer.body).toBe('a');
      expect(corsOf(answer)).toEqual({
        'access-control-allow-origin': origin,
        'access-control-allow-credentials': 'true',
        'access-control-expose-headers': 'x-total',
      });
      a.reset();
    }
    // Others are for the backend to answer.
    expect(corsOf(await preflight('https://shop.example.org'))).toEqual({});
    expect(corsOf(await ask({ headers: { origin: 'https://shop.example.org' } }))).toEqual({});
    expect(a.received.map(({ method }) => method)).toEqual(['OPTIONS', 'GET']);
    a.reset();
    await mesh.apply(routes({ ...toReviews, corsPolicy: { ...corsPolicy, unmatchedPreflights: 'IGNORE' } }));
    await until('ignored preflights', async () => {
      a.reset();
      await preflight('https://shop.example.org');
      return a.received.length === 0 || undefined;
    });
  });

  test('a rewrite changes the prefix, the host or what a pattern finds, and leaves the query', async () => {
    await mesh.apply(
      entry('reviews', a),
      routes(
        { match: [{ uri: { prefix: '/old' } }], rewrite: { uri: '/new' }, ...toReviews },
        { match: [{ uri: { prefix: '/host' } }], rewrite: { authority: 'inner.example.com' }, ...toReviews },
        {
          match: [{ uri: { prefix: '/pattern' } }],
          rewrite: {
            uriRegexRewrite: { match: '^/pattern/([a-z]+)/([0-9]+)$', rewrite: '/\\2/of/\\1' },
            authority: 'both.example.com',
          },
          ...toReviews,
        },
        toReviews,
      ),
    );
    await reached();
    a.reset();
    for (const path of ['/old/book?id=1', '/host/book', '/pattern/items/42?id=1', '/pattern/42', '/older'])
      await ask({ path });
    expect(a.received.map(({ url, headers }) => [url, headers.host])).toEqual([
      ['/new/book?id=1', HOST],
      ['/host/book', 'inner.example.com'],
      ['/42/of/items?id=1', 'both.example.com'],
      ['/pattern/42', 'both.example.com'],
      ['/newer', HOST],
    ]);
  });

  test('a request is tried again for what its retries name, as often as they say, and no try takes longer', async () => {
    const retrying = (path: string, retries: object) => ({ match: [{ uri: { exact: path } }], retries, ...toReviews });
    await mesh.apply(
      entry('reviews', a),
      routes(
        retrying('/thrice', { attempts: 3, retryOn: '5xx' }),
        retrying('/once', { attempts: 1, retryOn: '5xx' }),
        retrying('/teapot', { attempts: 3, retryOn: 'connect-failure,418' }),
        retrying('/other', { attempts: 3, retryOn: 'gateway-error' }),
        retrying('/never', { attempts: 0 }),
        retrying('/slow', { attempts: 2, perTryTimeout: '400ms', retryOn: 'gateway-error' }),
        toReviews,
      ),
    );
    await reached();
    /** The answer to a request whose first two tries fail like this, and how many there were. */
    const failing = async (
      path: string,
      failure: number | 'silence' | 'unavailable',
    ): Promise<readonly [number, number]> => {
      a.reset();
      a.answer((response, _, count) => {
        if (count > 2) response.end('a');
        else if (failure === 'unavailable') response.writeHead(200, { 'grpc-status': '14' }).end();
        else if (failure !== 'silence') response.writeHead(failure).end();
      });
      const { status } = await ask({ path });
      expect(a.received.map(({ headers }) => headers['x-envoy-attempt-count'])).toEqual(
        a.received.map((_, i) => `${i + 1}`),
      );
      return [status, a.received.length];
    };
    expect(await failing('/thrice', 500)).toEqual([200, 3]);
    expect(await failing('/once', 500)).toEqual([500, 2]);
    expect(await failing('/teapot', 418)).toEqual([200, 3]);
    expect(await failing('/teapot', 500)).toEqual([500, 1]);
    expect(await failing('/other', 500)).toEqual([500, 1]);
    expect(await failing('/other', 503)).toEqual([200, 3]);
    expect(await failing('/slow', 'silence')).toEqual([200, 3]);
    // If nothing is written, there are two retries for what is no answer of the application.
    expect(await failing('/', 503)).toEqual([503, 1]);
    expect(await failing('/', 'unavailable')).toEqual([200, 3]);
    expect(await failing('/never', 'unavailable')).toEqual([200, 1]);
  });

  test('a delegate routes what its root gives it, and its changes are in force like those of the root', async () => {
    const root = routes(
      { match: [{ uri: { prefix: '/team' } }], delegate: { name: 'team', namespace: 'team' } },
      { match: [{ uri: { prefix: '/absent' } }], delegate: { name: 'absent', namespace: 'team' } },
      toReviews,
    );
    const delegate = (destination: string) =>
      virtualService(
        'team',
        {
          http: [
            { match: [{ uri: { prefix: '/team/books' } }], rewrite: { uri: '/' }, route: [to(destination)] },
            { match: [{ uri: { prefix: '/elsewhere' } }], route: [to(destination)] },
          ],
        },
        'team',
      );
    await mesh.apply(entry('reviews', a), entry('books', b), entry('papers', c), root, delegate('books'));
    await reached();
    const answers = (...paths: readonly string[]) =>
      inTurn(paths, async (path) => {
        const { status, body } = await ask({ path });
        return `${status} ${body}`.trim();
      });
    const paths = ['/', '/team/books', '/team/other', '/elsewhere', '/absent'];
    expect(await answers(...paths)).toEqual(['200 a', '200 b', '200 a', '200 a', '200 a']);
    expect(b.received.map(({ url }) => url)).toEqual(['/']);
    expect(await mesh.program.reported('VirtualService/shop/reviews')).toEqual([
      expect.stringMatching(/VirtualService\/team\/team: spec\.http\[1\]\.match: contradicts/),
      expect.stringMatching(/^spec\.http\[1\]\.delegate: VirtualService team\/absent does not exist/),
    ]);
    await mesh.apply(delegate('papers'));
    await until('the change', async () => ((await answers('/team/books'))[0] === '200 c' ? true : undefined));
    await mesh.delete(delegate('papers'));
    await until('the deletion', async () => ((await answers('/team/books'))[0] === '200 a' ? true : undefined));
  });

  test('an endpoint that has just been added is sent few requests at first, and later its share', async () => {
    /** How many of these requests go to the endpoint that was added. */
    const share = async (requests: number): Promise<number> => {
      b.reset();
      await Promise.all(times(requests).map(() => ask({ host: WARM_HOST })));
      return b.received.length;
    };
    // Envoy does not say when an endpoint is warm.
    await until('the first endpoint is warm', () =>
      Promise.resolve(performance.now() - warmSince > WARMUP_MS || undefined),
    );
    await mesh.apply(warmed(a, b));
    await until('the new endpoint', async () => ((await share(1)) > 0 ? true : undefined));
    expect(await share(60)).toBeLessThan(20);
    await until('its full share', async () => ((await share(20)) >= 9 ? true : undefined));
  });

  /** Of the cluster for a host, in Envoy. */
  async function statistic(name: string, host = HOST): Promise<number> {
    const found = Object.entries(await envoy.stats(`${name}$`)).filter(([each]) => each.includes(host));
    return found.length === 1 ? found[0]![1] : expect.fail(`${name} of ${host}: ${JSON.stringify(found)}`);
  }
});

/** Settles with the response to the next request, which is not answered. */
function holdNext(backend: RecordingBackend): Promise<ServerResponse> {
  return new Promise((resolve) => backend.answer(resolve));
}
