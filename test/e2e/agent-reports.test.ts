import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent as Pool, type ClientRequest, createServer, request as requestPlainly } from 'node:http';
import { Agent as SecurePool, request } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { freePorts } from '../../src/testing/free-ports.ts';
import { withPeers } from '../peers/with-peers.ts';
import { HOST, startMesh } from './agent-mesh.ts';
import { type AgentProcess, startFairleadAgent } from './fairlead-agent.ts';
import { askByHttp2 } from './http2-caller.ts';
import { ask } from './traffic.ts';

withPeers(['envoy'], 'what Envoy reports', () => {
  test('goes to the collectors that a ProxyConfig names', async () => {
    const { setup, outbound } = await startMesh();
    const [statsd, zipkin] = [await startStatsd(), await startZipkin()];
    const server = await startFairleadAgent(setup('server'));
    const client = await startFairleadAgent({
      ...setup('client'),
      proxyConfig: {
        statsdUdpAddress: `localhost:${statsd.port}`,
        tracing: { zipkin: { address: `127.0.0.1:${zipkin.port}` } },
      },
      files: { 'etc/istio/pod/annotations': 'sidecar.istio.io/statsFlushInterval="100ms"\n' },
    });
    await Promise.all([server.ready(), client.ready()]);
    await expect.poll(() => statsd.received()).toContain('envoy.server.live:1|g');
    // One of a hundred is traced where nobody asks for more.
    await expect
      .poll(async () => {
        await Promise.all(Array.from({ length: 50 }, () => ask(outbound, HOST)));
        return zipkin.received();
      })
      .toContain('client.shop');
  });

  test('is given to workloads of the mesh on a port with mutual TLS', async () => {
    const { setup } = await startMesh();
    const [envoy = 0, merged = 0] = await freePorts(2);
    const agent = await startFairleadAgent({
      ...setup('server'),
      env: { ENVOY_SECURE_METRICS_PORT: `${envoy}`, ENVOY_SECURE_MERGED_METRICS_PORT: `${merged}` },
      // Of each cluster, also those whose names come from requests.
      proxyConfig: { proxyStatsMatcher: { inclusionPrefixes: ['cluster'] } },
    });
    await agent.ready();
    expect(await askSecurely(agent, envoy, true)).toContain('envoy_server_live');
    const all = await askSecurely(agent, merged, true);
    expect(all).toContain('envoy_server_live');
    expect(all).toContain('istio_agent_connected 1');
    expect(await askSecurely(agent, envoy, false)).toMatch(/^error/);

    // Nothing else can be asked of the ports that it opens, however the path is spelled.
    const bootstrap = JSON.parse(readFileSync(join(agent.root, 'etc/istio/proxy/envoy-rev.json'), 'utf8')) as Opened;
    expect(bootstrap.admin.address.socketAddress.address).toBe('127.0.0.1');
    const ports = bootstrap.staticResources.listeners.map(({ address }) => address.socketAddress.portValue);
    expect(ports).toEqual([agent.ports.stats, agent.ports.ready, envoy, merged]);
    for (const port of ports) {
      const isSecure = port === envoy || port === merged;
      const own = port === agent.ports.ready ? '/healthz/ready' : '/stats/prometheus';
      const call = caller(agent, port, isSecure);
      expect((await call('GET', own)).status, own).toBe(200);
      // An Envoy that takes a caller for its own would keep figures under each name.
      const headers = { 'x-envoy-upstream-alt-stat-name': 'strange', 'x-forwarded-for': '127.0.0.1' };
      expect((await call('GET', own, { headers })).status, own).toBe(200);
      const asked = spellings(own).flatMap((path) => ['GET', 'POST'].map((method) => [method, path] as const));
      for (const method of ['HEAD', 'PUT', 'OPTIONS', 'DELETE']) asked.push([method, own]);
      // Envoy would keep it, however long it is.
      expect((await call('GET', own, { body: 'a body' })).status, own).toBe(413);
      const check = (where: string, method: string, { status, body }: Answer): void => {
        // As far as the path means the same, it is the same.
        if (status === 200)
          expect([method, body], where).toEqual(['GET', expect.stringMatching(/^$|envoy_server_live/)]);
        else expect(status, where).toBeGreaterThanOrEqual(400);
      };
      await askEach(asked, async ([method, path]) =>
        check(`${method} :${port}${path}`, method, await call(method, path)),
      );
      const secrets = { ...toWorkload(agent), ...certificateOf(agent) };
      const tls = isSecure ? secrets : undefined;
      expect(await askByHttp2(port, { ':path': own }, tls), own).toMatchObject({ status: 200 });
      await askEach(asked, async ([method, path]) => {
        const answer = await askByHttp2(port, { ':method': method, ':path': path }, tls);
        if (answer !== 'closed') check(`${method} :${port}${path} by HTTP/2`, method, answer);
        // An absolute URL is no path.
        else expect(path).toMatch(/^http:/);
      });
    }
    // Requests whose end does not come are in nobody's way.
    await Promise.all(Array.from({ length: 30 }, () => beginRequest(agent.ports.stats, '/stats/prometheus')));
    expect((await agent.get(agent.ports.stats, '/stats/prometheus')).status).toBe(200);
    // Whatever has been done, nothing has come of it.
    expect((await agent.get(agent.ports.admin, '/server_info')).body).toContain('"state": "LIVE"');
    expect((await agent.get(agent.ports.admin, '/runtime')).body).not.toContain('attacked');
    expect((await agent.get(agent.ports.admin, '/stats?filter=strange')).body).toBe('');
    expect((await agent.get(agent.ports.status, '/healthz/ready')).status).toBe(200);
    const filtered = await agent.get(
      agent.ports.stats,
      `/stats/prometheus?usedonly&filter=${encodeURIComponent('^(server|x\\.y).live$')}`,
    );
    expect(filtered.body).toMatch(/^# TYPE envoy_server_live gauge\nenvoy_server_live\{\} 1\n\s*$/);
    for (const query of [
      'filter=a{1000}',
      'filter=a%7b9%7D',
      'filter=%5CpL',
      'filter=%5C%70L',
      `filter=${'a'.repeat(260)}`,
    ])
      expect(await agent.get(agent.ports.stats, `/stats/prometheus?${query}`), query).toEqual({
        status: 400,
        body: 'use a query of at most 256 characters, without { } and classes such as \\d\n',
      });
  });
});

/** Where a bootstrap opens ports. */
interface Opened {
  readonly admin: { readonly address: { readonly socketAddress: { readonly address: string } } };
  readonly staticResources: {
    readonly listeners: readonly { readonly address: { readonly socketAddress: { readonly portValue: number } } }[];
  };
}

/** Paths of the admin interface and of the agent, spelled so that a careless comparison takes them for this one. */
function spellings(own: string): readonly string[] {
  const targets = [
    'quitquitquit',
    'server_info',
    'config_dump',
    'runtime_modify?attacked=1',
    'drain',
    'status',
    'certs',
  ];
  const up = [
    '/..',
    '/%2e%2e',
    '/%2E.',
    '/.%2e',
    '//..',
    '\\..',
    '%5c..',
    '%2f..',
    '/..;',
    ';/..',
    '/%252e%252e',
    '/.%00.',
  ];
  return targets.flatMap((target) => [
    `/${target}`,
    `//${target}`,
    ...up.map((step) => `${own}${step}${step}/${target}`),
    `${own}/../../${own.slice(1)}/../../${target}`,
    `${own}?/../../${target}`,
    `${own}#/../../${target}`,
    `${own}/${target}`,
    `${own}%00/../../${target}`,
    `${own}/../../${target}?${own}`,
    `http://127.0.0.1${own}/../../${target}`,
  ]);
}

async function startStatsd() {
  const socket = createSocket('udp4');
  onTestFinished(() => void socket.close());
  const names = new Set<string>();
  socket.on('message', (message) =>
    message
      .toString()
      .split('\n')
      .forEach((line) => names.add(line)),
  );
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { port: socket.address().port, received: () => [...names] };
}

async function startZipkin() {
  const services = new Set<string>();
  const server = createServer((asked, answer) => {
    let body = '';
    asked.on('data', (chunk: Buffer) => (body += chunk.toString()));
    asked.on('end', () => {
      for (const span of JSON.parse(body) as { localEndpoint?: { serviceName?: string } }[])
        services.add(span.localEndpoint?.serviceName ?? '');
      answer.writeHead(202).end();
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, received: () => [...services] };
}

/** What is answered, with the certificate of the workload itself or with none. */
async function askSecurely(agent: AgentProcess, port: number, proven: boolean): Promise<string> {
  const identity = proven ? certificateOf(agent) : {};
  const asked = { port, path: '/stats/prometheus', method: 'GET' };
  return answerOf(request({ ...asked, ...toWorkload(agent), ...identity })).then(
    ({ body }) => body,
    (error: unknown) => `error: ${String(error)}`,
  );
}

/** Asks over and over. It rejects unless there is an answer. */
function caller(agent: AgentProcess, port: number, isSecure: boolean) {
  const pool = isSecure
    ? new SecurePool({ keepAlive: true, maxSockets: 4 })
    : new Pool({ keepAlive: true, maxSockets: 4 });
  onTestFinished(() => pool.destroy());
  /** The path as it is: `fetch` would resolve its dots. */
  return (method: string, path: string, { headers = {}, body = '' } = {}): Promise<Answer> => {
    const asked = { host: '127.0.0.1', port, path, method, headers, agent: pool };
    const sent = isSecure
      ? request({ ...toWorkload(agent), ...certificateOf(agent), ...asked })
      : requestPlainly(asked);
    if (body !== '') sent.setHeader('content-length', body.length).write(body);
    return answerOf(sent);
  };
}

/** Settles once Envoy waits for a body, which does not come. */
async function beginRequest(port: number, path: string): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\nexpect: 100-continue\r\n\r\n`);
  expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 100 /);
}

const file = ({ root }: AgentProcess, name: string): Buffer =>
  readFileSync(join(root, 'etc/istio/proxy/certificate', name));

const certificateOf = (agent: AgentProcess) => ({ cert: file(agent, 'cert-chain.pem'), key: file(agent, 'key.pem') });

const toWorkload = (agent: AgentProcess) => ({
  host: '127.0.0.1',
  ca: file(agent, 'root-cert.pem'),
  // A SPIFFE ID is not a host name.
  checkServerIdentity: () => undefined,
});

interface Answer {
  readonly status: number;
  readonly body: string;
}

function answerOf(sent: ClientRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    sent.on('response', (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    sent.on('error', reject);
    sent.end();
  });
}

/** Some at a time: the ports cut an answer that takes long, as it does beside hundreds of others. */
async function askEach<T>(all: readonly T[], ask: (one: T) => Promise<void>): Promise<void> {
  for (let i = 0; i < all.length; i += 8) await Promise.all(all.slice(i, i + 8).map(ask));
}
