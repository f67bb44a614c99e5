import { request } from 'node:http';
import { connect, createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { logLevelRoutes } from './debug/log-level.ts';
import { type DumpOptions, debugRoutes } from './debug/pages.ts';
import { type HttpServer, type Route, serveHttp } from './http-server.ts';
import { createMetrics } from './metrics.ts';
import type { MetricSources } from './metric-sources.ts';
import { type OpsOptions, serveOps } from './servers.ts';

const localhost = { host: '127.0.0.1', port: 0 };
const silent = { error: () => {} };

const proxy = {
  stream: '7',
  nodeId: 'sidecar~10.0.0.1~a.shop~shop.svc.cluster.local',
  build: 'envoy 1.40.0',
  address: '10.0.0.1',
  connectedAt: new Date('2026-01-02T03:04:05Z'),
  metadata: { CLUSTER_ID: 'Kubernetes', ISTIO_VERSION: '1.32.0', LABELS: { app: 'a' } },
  locality: { region: 'r', zone: 'z', subZone: '' },
  features: ['understands-this'],
  types: [
    {
      typeUrl: 'T/Cluster',
      shortName: 'cds',
      names: [],
      sent: '3',
      acked: '2',
      sentAt: new Date('2026-01-02T03:04:06Z'),
      error: 'no',
      synced: false,
      rejected: [],
      overdue: ['cold'],
    },
    {
      typeUrl: 'T/Endpoint',
      shortName: 'eds',
      names: ['b', 'c'],
      sent: '5',
      acked: '5',
      sentAt: undefined,
      error: undefined,
      synced: true,
      rejected: ['c'],
      overdue: [],
    },
  ],
};
const plain = { ...proxy, stream: '8', nodeId: 'my-envoy', build: '', metadata: {}, features: [], types: [] };
const service = (name: string) => ({ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'shop' } });

const debug = {
  proxies: () => [proxy, plain],
  configDump: (stream: string, options: DumpOptions) => [JSON.stringify({ stream, ...options })],
  services: () => [{ hostname: 'a.shop' }],
  endpoints: (): [string, object][] => [
    ['a.shop', { shop: {} }],
    ['b.shop', {}],
  ],
  objects: () => [service('a'), service('b')],
  problems: () => [
    {
      object: { source: 'directory', group: '', kind: 'Service', namespace: 'shop', name: 'a' },
      field: 'spec.ports[0]',
      reason: 'Invalid' as const,
      message: 'is odd.',
    },
  ],
  identities: () => [],
  networks: () => [],
  multiclusterServices: () => [],
  clusters: () => [{ id: 'east' }],
  held: () => [{ service: 'shop/reviews', address: '10.1.0.1' }],
  locate: () => 'a.yaml:7',
  status: (proxy: string | undefined) => [JSON.stringify({ proxy })],
  commits: () => [{ number: 1 }],
  record: () => undefined,
};

const figures: MetricSources = {
  version: '1.2.3',
  ready: () => true,
  ads: () => ({
    streams: 2,
    pendingStreams: 1,
    waitingForWorld: 0,
    waitingForPlace: 0,
    waitingForRoom: 0,
    waitingToBegin: 0,
    waitingForTurn: 3,
    resources: 10,
    failures: 0,
    indirect: 4,
    pushes: { cds: 5, eds: 7 },
    bytes: { cds: 500, eds: 700 },
    rejections: { cds: 0, eds: 1 },
    expired: { cds: 6 },
    timeouts: 0,
    overdue: 0,
    limits: { age: 3, streams: 0 },
    ended: { UNAVAILABLE: 3 },
  }),
  rejected: () => [{ shortName: 'eds' }, { shortName: 'eds' }],
  suppressedLines: () => 0,
  unexpectedErrors: () => 0,
  notAdmitted: () => ({ traits: 3, scopes: 0 }),
  commits: () => ({ commits: 3, writes: 30, pending: 0 }),
  graphFailures: () => 0,
  services: () => 12,
  heldEndpoints: () => 2,
  objects: () => ({ VirtualService: 4 }),
  problems: () => [...debug.problems(), ...debug.problems()],
  deliveries: () => ({
    VirtualService: { add: 1, update: 2, delete: 3 },
    Service: { add: 10, update: 20, delete: 30 },
    EndpointSlice: { add: 100, update: 200, delete: 300 },
    ConfigMap: { add: 1000, update: 0, delete: 0 },
  }),
  withoutEndpoints: () => ({ sent: 5, resolved: 6 }),
  listenerConflicts: () => 9,
};

function stopping(): AbortController {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  return stop;
}

async function serve(options: Partial<OpsOptions> = {}) {
  const stop = stopping();
  const servers = await serveOps({
    healthAddress: localhost,
    monitoringAddress: localhost,
    waitingFor: () => [],
    debug,
    metrics: createMetrics(figures).route,
    version: '1.2.3',
    logger: { level: 'info' },
    log: silent,
    signal: stop.signal,
    ...options,
  });
  const get = async (server: HttpServer, path: string, init?: RequestInit) => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, init);
    return { status: response.status, text: await response.text() };
  };
  return { ...servers, get, stop };
}

describe('health', () => {
  test('is ready when nothing is waited for, and says what is', async () => {
    const missing = ['VirtualService', 'Service'];
    const { health, get } = await serve({ waitingFor: () => missing });
    expect(await get(health, '/ready')).toEqual({
      status: 503,
      text: 'not ready, waiting for VirtualService, Service\n',
    });
    expect(await get(health, '/healthz')).toEqual({ status: 200, text: 'ok\n' });
    missing.length = 0;
    expect(await get(health, '/ready')).toEqual({ status: 200, text: 'ready\n' });
    expect(await get(health, '/ready/?x=1', { method: 'HEAD' })).toEqual({ status: 200, text: '' });
  });

  test('other paths and methods are refused', async () => {
    const { health, get } = await serve();
    expect(await get(health, '/metrics')).toEqual({ status: 404, text: 'not found\n' });
    expect(await get(health, '//other//ready')).toMatchObject({ status: 404 });
    expect(await get(health, '/ready', { method: 'POST', body: 'x' })).toMatchObject({ status: 405 });
  });
});

describe('monitoring', () => {
  test('gives the version', async () => {
    const { monitoring, get } = await serve();
    expect(await get(monitoring, '/version')).toEqual({ status: 200, text: '1.2.3' });
  });

  test('gives metrics under the names that Istio has for them', async () => {
    const metrics = createMetrics(figures);
    const { monitoring, get } = await serve({ metrics: metrics.route });
    metrics.committed(0.02, 0.002);
    metrics.converged(0.3);
    metrics.sent('cds', 20_000);
    metrics.taken(0.05);
    metrics.triggered(['config', 'endpoint']);
    await get(monitoring, '/metrics');
    const { text } = await get(monitoring, '/metrics');
    const lines = text.split('\n');
    for (const line of [
      'pilot_info{version="1.2.3"} 1',
      'pilot_xds{version="1.2.3"} 2',
      'pilot_xds_pushes{type="eds"} 7',
      'pilot_total_xds_rejects{type="eds"} 1',
      'pilot_xds_eds_reject 2',
      'pilot_services 12',
      'fairlead_held_endpoints 2',
      'pilot_virt_services 4',
      'pilot_debounce_time_bucket{le="0.1"} 1',
      'pilot_proxy_convergence_time_bucket{le="0.1"} 0',
      'pilot_proxy_convergence_time_bucket{le="0.5"} 1',
      'pilot_xds_expired_nonce{type="cds"} 6',
      'pilot_xds_config_size_bytes_bucket{le="10000",type="cds"} 0',
      'pilot_xds_config_size_bytes_bucket{le="1000000",type="cds"} 1',
      'pilot_xds_send_time_bucket{le="0.1"} 1',
      'pilot_push_triggers{type="endpoint"} 1',
      'pilot_inbound_updates{type="config"} 6',
      'pilot_inbound_updates{type="eds"} 600',
      'pilot_inbound_updates{type="svc"} 30',
      'pilot_inbound_updates{type="svcdelete"} 30',
      'pilot_eds_no_instances 5',
      'pilot_dns_cluster_without_endpoints 6',
      'pilot_conflict_outbound_listener_tcp_over_current_tcp 9',
      'pilot_vservice_dup_domain 0',
      'pilot_total_rejected_configs{type="Service"} 1',
      'fairlead_commits_total 3',
      'fairlead_xds_slow_streams_total 4',
      'fairlead_graph_failures 0',
      'fairlead_xds_not_admitted_total{for="traits"} 3',
      'fairlead_problems{kind="Service",reason="Invalid"} 2',
      '# HELP fairlead_xds_behind Proxies that do not have the newest config yet.',
    ])
      expect(lines).toContain(line);
    expect(text).not.toContain('fairlead_leader');
    expect(text).not.toContain('pilot_k8s_');
    expect(text).toContain('process_cpu_seconds_total');
  });

  test('has no metrics of an API server where there is none, and all of them where there is', async () => {
    const kinds = { Pod: { synced: true, installed: true, doubted: 3, events: 9, errors: 1 } };
    const metrics = createMetrics({
      ...figures,
      apiServer: () => ({ relists: 1, malformedObjects: 0, stalenessSeconds: 1.5, kinds }),
      status: () => ({ writes: 5, conflicts: 1, failures: 0, pending: 2 }),
      leader: () => true,
      files: () => [],
    });
    const { monitoring, get } = await serve({ metrics: metrics.route });
    const lines = (await get(monitoring, '/metrics')).text.split('\n');
    for (const line of [
      'fairlead_kind_synced{kind="Pod"} 1',
      'fairlead_kind_doubted{kind="Pod"} 3',
      'fairlead_kind_events_total{kind="Pod"} 9',
      'pilot_k8s_cfg_events{type="VirtualService",event="delete"} 3',
      'pilot_k8s_reg_events{type="Services",event="update"} 20',
      'fairlead_api_server_staleness_seconds 1.5',
      'fairlead_status_writes_total{result="conflict"} 1',
      'fairlead_status_pending 2',
      'fairlead_leader 1',
    ])
      expect(lines).toContain(line);
  });
});

test.each(['/version', '//version', '///version/'])('the version is at %s', async (path) => {
  const { monitoring, get } = await serve();
  expect(await get(monitoring, path)).toMatchObject({ status: 200, text: expect.stringMatching(/^\S+$/) });
});

describe('debug pages', () => {
  test('are on both ports, with an index', async () => {
    const { health, monitoring, get } = await serve();
    const index = await get(health, '/debug/');
    expect(JSON.parse(index.text)).toContainEqual({ path: '/debug/syncz', help: expect.any(String) });
    expect((await get(monitoring, '/debug')).text).toBe(index.text);
  });

  test('syncz tells what each proxy was sent and acknowledged', async () => {
    const { health, get } = await serve();
    expect(JSON.parse((await get(health, '/debug/syncz')).text)).toEqual([
      {
        cluster_id: 'Kubernetes',
        proxy: 'a.shop',
        proxy_type: 'sidecar',
        proxy_version: 'envoy 1.40.0',
        istio_version: '1.32.0',
        client_features: ['understands-this'],
        cluster_sent: '3',
        cluster_acked: '2',
        endpoint_sent: '5',
        endpoint_acked: '5',
        resources: {
          'T/Cluster': {
            sent: '3',
            acked: '2',
            sentTime: '2026-01-02T03:04:06.000Z',
            lastError: 'no',
            synced: false,
            rejected: [],
            overdue: ['cold'],
          },
          'T/Endpoint': { sent: '5', acked: '5', synced: true, rejected: ['c'] },
        },
      },
      { proxy: 'my-envoy', proxy_type: '', proxy_version: '', resources: {} },
    ]);
  });

  test('adsz and connections list proxies, or the one that is asked for', async () => {
    const { health, get } = await serve();
    const connections = JSON.parse((await get(health, '/debug/connections?proxyID=a.shop')).text) as unknown;
    expect(connections).toEqual({
      totalClients: 1,
      clients: [
        {
          connectionId: 'a.shop-7',
          connectedAt: '2026-01-02T03:04:05.000Z',
          address: '10.0.0.1',
          node: proxy.nodeId,
          version: 'envoy 1.40.0',
        },
      ],
    });
    const adsz = JSON.parse((await get(health, '/debug/adsz')).text) as { totalClients: number; clients: unknown[] };
    expect(adsz.totalClients).toBe(2);
    expect(adsz.clients[0]).toMatchObject({
      labels: { app: 'a' },
      locality: { region: 'r', zone: 'z', sub_zone: '' },
      watches: { 'T/Cluster': [], 'T/Endpoint': ['b', 'c'] },
    });
  });

  test('config_dump and edsz show what one proxy is given, by any of its names', async () => {
    const { health, get } = await serve();
    const dump = async (page: string): Promise<unknown> => JSON.parse((await get(health, `/debug/${page}`)).text);
    expect(await dump('config_dump?proxyID=a.shop')).toEqual({ stream: '7', endpoints: false });
    expect(await dump('config_dump?proxyID=my-envoy&include_eds')).toEqual({ stream: '8', endpoints: true });
    expect(await dump('config_dump?proxyID=a.shop-7&types=cds,rds')).toMatchObject({ types: ['cds', 'rds'] });
    expect(await dump('edsz?proxyID=a.sh')).toMatchObject({ stream: '7', types: ['eds'] });
  });

  test('config_dump says in words that tools know that a proxy is not here, or that none is named', async () => {
    const { health, get } = await serve();
    expect(await get(health, '/debug/config_dump?proxyID=gone.shop')).toEqual({
      status: 404,
      text: 'Proxy not connected to this Pilot instance. It may be connected to another instance.\n',
    });
    for (const page of ['config_dump', 'edsz?proxyID='])
      expect(await get(health, `/debug/${page}`)).toEqual({
        status: 400,
        text: 'You must provide a proxyID in the query string\n',
      });
  });

  test('registryz and endpointShardz show the mesh, and list names all pages', async () => {
    const { health, get } = await serve();
    const page = async (name: string): Promise<unknown> => JSON.parse((await get(health, `/debug/${name}`)).text);
    expect(await page('registryz')).toEqual([{ hostname: 'a.shop' }]);
    expect(await page('endpointShardz')).toEqual({ 'a.shop': { shop: {} }, 'b.shop': {} });
    expect(await page('endpointz')).toEqual(await page('endpointShardz'));
    expect(await page('list')).toEqual(expect.arrayContaining(['config_dump', 'list', 'registryz', 'syncz']));
  });

  test('status is of all proxies, or of the one that is asked for', async () => {
    const { health, monitoring, get } = await serve();
    expect(JSON.parse((await get(health, '/debug/status')).text)).toEqual({});
    expect(JSON.parse((await get(monitoring, '/debug/status?proxyID=a.shop')).text)).toEqual({ proxy: 'a.shop' });
  });

  test('configz and problems show objects', async () => {
    const { health, get } = await serve();
    expect(JSON.parse((await get(health, '/debug/configz?kind=Service&name=b')).text)).toEqual([service('b')]);
    expect(JSON.parse((await get(health, '/debug/held')).text)).toEqual([...debug.held()]);
    expect(JSON.parse((await get(health, '/debug/problems')).text)).toEqual([
      { object: 'Service/shop/a', place: 'a.yaml:7', field: 'spec.ports[0]', reason: 'Invalid', message: 'is odd.' },
    ]);
  });

  test('are for this machine only', async () => {
    for (const [path, route] of debugRoutes(debug)) {
      for (const remoteAddress of ['10.0.0.9', 'fe80::1', '::ffff:10.0.0.9', '', '127.evil'])
        expect(
          await route({ query: new URLSearchParams(), remoteAddress, host: 'localhost:8080' }),
          path,
        ).toMatchObject({ status: 401 });
      for (const remoteAddress of ['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1'])
        expect(
          await route({ query: new URLSearchParams(), remoteAddress, host: 'localhost:8080' }),
          path,
        ).not.toHaveProperty('status', 401);
    }
  });
});

describe('debug pages in a browser', () => {
  const [, route] = debugRoutes(debug)[0]!;
  const ask = async (host: string): Promise<number> =>
    (await route({ query: new URLSearchParams(), remoteAddress: '127.0.0.1', host })).status ?? 200;

  test.each([
    'localhost',
    'LOCALHOST:8080',
    'localhost.:80',
    '127.0.0.1:15014',
    '10.1.2.3',
    '[::1]:8080',
    '[fd00::1]',
    '',
  ])('are shown under %j', async (host) => {
    expect(await ask(host)).toBe(200);
  });

  test.each([
    ...['evil.example.com', 'evil.example.com:8080', 'localhost.evil.com', '127.0.0.1.evil.com', '127.0.0.1:80:80'],
    ...['[evil]', '[::1]evil', 'fairlead.istio-system.svc', '0x7f.1', 'a@localhost', ' '],
  ])('are not shown under %j, which may be anybody', async (host) => {
    expect(await ask(host)).toBe(403);
  });

  test('go by the Host header of the request', async () => {
    const { health, monitoring } = await serve();
    for (const { port } of [health, monitoring]) {
      const shown = (host: string): Promise<number | undefined> =>
        new Promise((resolve, reject) => {
          const asking = request({ host: '127.0.0.1', port, path: '/debug/configz', headers: { host } }, (response) => {
            response.resume();
            resolve(response.statusCode);
          });
          asking.on('error', reject).end();
        });
      expect(await shown(`localhost:${port}`)).toBe(200);
      expect(await shown(`evil.example.com:${port}`)).toBe(403);
    }
  });
});

describe('the log level', () => {
  test('is set by a POST from this machine', async () => {
    const logger: OpsOptions['logger'] = { level: 'info' };
    const { health, monitoring, get } = await serve({ logger });
    const set = (server: HttpServer, query: string, headers?: Record<string, string>) =>
      get(server, `/debug/loglevel${query}`, { method: 'POST', ...(headers && { headers }) });
    expect(await set(health, '?level=debug')).toEqual({ status: 200, text: 'debug\n' });
    expect([logger.level, await get(monitoring, '/debug/loglevel')]).toEqual([
      'debug',
      { status: 200, text: 'debug\n' },
    ]);
    expect(await get(health, '/debug/loglevel?level=error')).toEqual({ status: 200, text: 'debug\n' });
    for (const query of ['', '?level=', '?level=trace', '?level=constructor'])
      expect(await set(monitoring, query)).toEqual({
        status: 400,
        text: 'level must be error or warn or info or debug\n',
      });
    expect(await set(monitoring, '?level=warn')).toMatchObject({ status: 200 });
    expect(logger.level).toBe('warn');
  });

  test('is set by nobody else, and by no page in a browser', async () => {
    const logger: OpsOptions['logger'] = { level: 'info' };
    const { set } = logLevelRoutes(logger);
    const ask = { query: new URLSearchParams('level=debug'), remoteAddress: '127.0.0.1', host: 'localhost' };
    expect(await set({ ...ask, remoteAddress: '10.0.0.9' })).toMatchObject({ status: 401 });
    expect(await set({ ...ask, host: 'evil.example.com' })).toMatchObject({ status: 403 });
    for (const origin of ['https://evil.example.com', 'null', 'http://localhost'])
      expect(await set({ ...ask, origin })).toMatchObject({ status: 403 });
    expect(logger.level).toBe('info');
    const { health, get } = await serve({ logger });
    const post = { method: 'POST', headers: { origin: 'https://evil.example.com' } };
    expect(await get(health, '/debug/loglevel?level=debug', post)).toMatchObject({ status: 403 });
    expect(await get(health, '/debug/configz', { method: 'POST' })).toMatchObject({ status: 405 });
    expect(logger.level).toBe('info');
  });
});

describe('metrics', () => {
  test('are rendered once a second, however many ask', async () => {
    let asked = 0;
    let now = 0;
    const metrics = createMetrics({ ...figures, services: () => ++asked }, () => now);
    const request = { query: new URLSearchParams(), remoteAddress: '10.0.0.1', host: '' };
    const ask = async (): Promise<unknown> => (await metrics.route(request)).body;
    const answers = await Promise.all(Array.from({ length: 50 }, ask));
    expect(new Set(answers).size).toBe(1);
    expect(asked).toBe(1);
    now = 999;
    await ask();
    expect(asked).toBe(1);
    now = 1_000;
    expect(await ask()).toContain('pilot_services 2');
  });

  test('ask once for what several of them are made from', async () => {
    const asked = { ads: 0, rejected: 0 };
    let now = 0;
    const metrics = createMetrics(
      {
        ...figures,
        ads: () => ({ ...figures.ads(), streams: ++asked.ads }),
        rejected: () => (asked.rejected++, figures.rejected()),
      },
      () => now,
    );
    const ask = async () =>
      String((await metrics.route({ query: new URLSearchParams(), remoteAddress: '', host: '' })).body);
    await ask();
    expect(asked).toEqual({ ads: 1, rejected: 1 });
    now = 1_000;
    expect(await ask()).toContain('pilot_xds{version="1.2.3"} 2');
    expect(asked).toEqual({ ads: 2, rejected: 2 });
  });

  test('are tried again after a failure', async () => {
    let fails = true;
    const services = (): number => {
      if (fails) throw new Error('oh');
      return 7;
    };
    const metrics = createMetrics({ ...figures, services }, () => 0);
    const request = { query: new URLSearchParams(), remoteAddress: '10.0.0.1', host: '' };
    await expect(metrics.route(request)).rejects.toThrow('oh');
    fails = false;
    expect((await metrics.route(request)).body).toContain('pilot_services 7');
  });

  test('have no label whose values clients choose', async () => {
    const { body } = await createMetrics(figures).route({ query: new URLSearchParams(), remoteAddress: '', host: '' });
    const labels = new Set(Array.from(String(body).matchAll(/[{,]([a-z_]+)="/g), ([, label]) => label));
    expect(
      [...labels].filter(
        (label) => !/^(version|type|for|kind|event|reason|result|le|space|major|minor|patch)$/.test(label!),
      ),
    ).toEqual([]);
  });
});

describe('a server', () => {
  test('says in one line that a port is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    onTestFinished(() => void other.close());
    const { port } = other.address() as { port: number };
    await expect(serve({ monitoringAddress: { host: '127.0.0.1', port } })).rejects.toMatchObject({
      code: 'LISTEN',
      message: `monitoring: cannot listen on 127.0.0.1:${port}: the port is in use`,
    });
  });

  test('answers 500 where a route throws, says so in the log, and goes on', async () => {
    const errors: object[] = [];
    const routes = new Map<string, Route>([
      [
        '/bad',
        () => {
          throw new Error('oops');
        },
      ],
      [
        '/late',
        () => ({
          type: 'text/plain',
          body: (function* () {
            yield 'a';
            throw new Error('late');
          })(),
        }),
      ],
      ['/good', () => ({ type: 'text/plain', body: 'good' })],
    ]);
    const log = { error: (_: string, fields: object) => void errors.push(fields) };
    const server = await serveHttp({ address: localhost, name: 'test', routes, log, signal: stopping().signal });
    const base = `http://127.0.0.1:${server.port}`;
    expect((await fetch(`${base}/bad`)).status).toBe(500);
    await expect(fetch(`${base}/late`).then((response) => response.text())).rejects.toThrow();
    expect(await (await fetch(`${base}/good`)).text()).toBe('good');
    expect(errors).toMatchObject([{ server: 'test', path: '/bad' }]);
  });

  test('goes on with other work while it generates a long answer for a client that reads fast', async () => {
    let rounds = 0;
    const counting = setInterval(() => rounds++);
    onTestFinished(() => clearInterval(counting));
    const busy = function* (): Generator<string> {
      for (let i = 0; i < 100; i++) {
        const ends = performance.now() + 2;
        while (performance.now() < ends);
        yield 'x';
      }
    };
    const routes = new Map<string, Route>([['/', () => ({ type: 'text/plain', body: busy() })]]);
    const { signal } = stopping();
    const { port } = await serveHttp({ address: localhost, name: 'test', routes, log: silent, signal });
    const text = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}/`)).text();
    const before = rounds;
    const both = await Promise.all([text(), text()]);
    expect(both.map(({ length }) => length)).toEqual([100, 100]);
    // 400 ms of work, in slices of 5 ms.
    expect(rounds - before).toBeGreaterThan(20);
  });

  test('closes a connection whose client does not read the answer', async () => {
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => (end = resolve));
    const endless = function* (): Generator<string> {
      try {
        for (;;) yield 'x'.repeat(65_536);
      } finally {
        end();
      }
    };
    const routes = new Map<string, Route>([['/', () => ({ type: 'text/plain', body: endless() })]]);
    const { signal } = stopping();
    const { port } = await serveHttp({ address: localhost, name: 'test', routes, log: silent, idle: 50, signal });
    const socket = connect({ host: '127.0.0.1', port });
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
    await ended;
  });

  test('has a bound on connections: who has the most loses the oldest', async () => {
    const routes = new Map<string, Route>([['/', () => ({ type: 'text/plain', body: 'ok' })]]);
    const { signal } = stopping();
    const { port } = await serveHttp({ address: localhost, name: 'test', routes, log: silent, connections: 4, signal });
    const open = async (localAddress: string) => {
      const socket = connect({ host: '127.0.0.1', port, localAddress });
      onTestFinished(() => void socket.destroy());
      socket.on('error', () => {});
      await new Promise((resolve) => socket.once('connect', resolve));
      const closed = new Promise<string>((resolve) => socket.once('close', () => resolve('closed')));
      const answer = (): Promise<string> =>
        new Promise((resolve) => socket.once('data', (data: Buffer) => resolve(data.toString('latin1', 9, 12))));
      const ask = (): Promise<string> => {
        if (socket.writable) socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
        return Promise.race([answer(), closed]);
      };
      return { closed, ask };
    };
    const flood: Awaited<ReturnType<typeof open>>[] = [];
    for (let i = 0; i < 4; i++) flood.push(await open('127.0.0.2'));
    const probe = await open('127.0.0.1');
    expect(await probe.ask()).toBe('200');
    await flood[0]!.closed;
    // The flood goes on, now from two addresses.
    for (let i = 0; i < 8; i++) flood.push(await open(`127.0.0.${2 + (i % 2)}`));
    expect(await probe.ask()).toBe('200');
    const answers = await Promise.all(flood.map(({ ask }) => ask()));
    expect(answers.filter((answer) => answer === '200')).toHaveLength(3);
    expect(answers.at(-1)).toBe('200');
    expect(await probe.ask()).toBe('200');
  });

  test('closes with the signal, also connections that are in the middle of something', async () => {
    const { health, monitoring, stop } = await serve();
    const hanging = request({
      host: '127.0.0.1',
      port: health.port,
      method: 'POST',
      headers: { 'content-length': 10 },
    });
    const ended = new Promise((resolve) => hanging.on('error', resolve).on('close', resolve));
    hanging.write('x');
    await new Promise((resolve) =>
      hanging.once('response', resolve).once('socket', (socket) => socket.once('connect', resolve)),
    );
    stop.abort();
    await Promise.all([health.closed, monitoring.closed, ended]);
  });
});
