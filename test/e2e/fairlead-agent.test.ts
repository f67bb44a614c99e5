import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { tokenOf } from '../features/secure-cluster.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { startAgent } from './agent.ts';
import { HOST, messages, serverEntry, startMesh } from './agent-mesh.ts';
import { createCa } from '../peers/mesh-ca.ts';
import { type AgentProcess, type AgentSetup, startFairleadAgent } from './fairlead-agent.ts';
import { ask, startBackend } from './traffic.ts';

const said = (agent: AgentProcess, text: string) => expect.poll(() => messages(agent)).toContain(text);

/** Two errors that nobody catches, when a test says so. */
const FAILS = `process.on('SIGUSR2', () => { Promise.reject(new Error('one')); throw new Error('two'); });`;

/** The pid of its Envoy. */
function envoyOf({ process: { log } }: AgentProcess): number {
  for (const line of log().split('\n')) {
    const { pid } = line.startsWith('{') ? (JSON.parse(line) as { pid?: number; msg: string }) : {};
    if (line.includes('"Envoy started"') && pid !== undefined) return pid;
  }
  throw new Error(`no Envoy: ${log()}`);
}

/** Whether its Envoy answers. */
const isLive = ({ ports, get }: AgentProcess): Promise<boolean> =>
  get(ports.admin, '/ready').then(
    ({ body }) => body === 'LIVE\n',
    () => false,
  );

/** More than are served at a time, and than may wait. */
const MANY_SCRAPES = 20;

/** Settles when there is an answer, of which nothing but the headers can be sent. */
async function scrapeWithoutReading(port: number, localAddress: string): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  const session = connectHttp2(`http://127.0.0.1:${port}`, {
    settings: { initialWindowSize: 0 },
    createConnection: () => socket,
  });
  onTestFinished(() => session.destroy());
  session.on('error', () => {});
  const request = session.request({ ':path': '/stats/prometheus' }).on('error', () => {});
  await once(request, 'response');
}

/** From another address than that of the Pod. */
async function scrapeFrom(localAddress: string, port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.write('GET /stats/prometheus HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  return text(socket);
}

withPeers(['envoy'], 'the agent beside Envoy', () => {
  test('two workloads speak mutual TLS with nothing but a token and roots', async () => {
    const { program, setup, outbound } = await startMesh({ workloadCertificateLifetime: '72h' });
    const server = await startFairleadAgent({ ...setup('server'), env: { SECRET_TTL: '2h' } });
    const client = await startFairleadAgent({
      ...setup('client'),
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(FAILS)}` },
      proxyConfig: { proxyStatsMatcher: { inclusionRegexps: ['.*'] } },
    });
    await Promise.all([server.ready(), client.ready()]);
    process.kill(client.process.pid, 'SIGUSR2');
    await said(client, 'Unexpected error; please report it');
    await expect.poll(() => ask(outbound, HOST)).toBe('200 served');
    // The agents ask for roots, too: a rotation waits for whoever has not acknowledged them.
    const streams = program.serving.engine.ads.streams();
    expect(streams).toHaveLength(2);
    for (const { types } of streams)
      expect(types.find(({ typeUrl }) => typeUrl.endsWith('ProxyConfig'))).toMatchObject({
        synced: true,
        rejected: [],
      });
    const metrics = await client.get(client.ports.status, '/stats/prometheus');
    expect(metrics.body).toContain('istio_agent_connected 1');
    // The control plane decides, unless the Pod does.
    const hoursLeft = async (agent: AgentProcess): Promise<number> => {
      const { body } = await agent.get(agent.ports.status, '/stats/prometheus');
      const [, seconds] = /^istio_agent_cert_expiry_seconds\{resource_name="default"\} (\d+)$/m.exec(body) ?? [];
      return Math.ceil(Number(seconds) / 3600);
    };
    expect([await hoursLeft(client), await hoursLeft(server)]).toEqual([72, 2]);
    expect(metrics.body).toContain('istio_agent_unexpected_errors_total 2');
    expect(metrics.body).toContain('envoy_server_live{} 1');
    const ofEnvoy = await client.get(client.ports.stats, '/stats/prometheus');
    expect(ofEnvoy.status).toBe(200);
    // More than Envoy takes from itself for somebody who does not read.
    expect(ofEnvoy.body.length).toBeGreaterThan(128 * 1024);
    // Whoever reads nothing keeps no scraper out, whichever port it asks.
    for (let i = 0; i < MANY_SCRAPES; i++) await scrapeWithoutReading(client.ports.stats, '127.0.0.2');
    for (const port of [client.ports.stats, client.ports.status])
      expect(await scrapeFrom('127.0.0.3', port)).toContain('envoy_server_live{} 1');
    // Terminated, it drains, and ends with 0.
    process.kill(client.process.pid, 'SIGTERM');
    await expect
      .poll(() => client.get(client.ports.status, '/healthz/ready'))
      .toEqual({ status: 503, body: 'draining\n' });
    expect(await client.process.exited).toBe(0);
    expect(messages(client)).toContain('Draining');
  });

  test('without a token, it says so once, goes on trying, and recovers', async () => {
    const { setup } = await startMesh();
    const agent = await startFairleadAgent({ ...setup('server'), token: '' });
    await said(agent, 'No certificate from the control plane; trying again');
    await expect
      .poll(() => agent.get(agent.ports.status, '/healthz/ready'))
      .toEqual({ status: 503, body: expect.stringContaining('neither a token nor a certificate') });
    agent.write('var/run/secrets/tokens/istio-token', 'wrong');
    await expect
      .poll(() => agent.get(agent.ports.status, '/healthz/ready'))
      .toEqual({ status: 503, body: expect.stringContaining('the token is not accepted') });
    agent.write('var/run/secrets/tokens/istio-token', tokenOf('shop:server'));
    await agent.ready();
    expect(messages(agent).filter((each) => each.startsWith('No certificate'))).toHaveLength(2);
  });

  test('certificates that are mounted, or with a provider such as SPIRE, replace those of the control plane', async () => {
    const { setup, outbound } = await startMesh();
    // The control plane knows nothing of it, nor does it sign for these workloads.
    const ca = await createCa();
    const [mounted, first, second] = [
      await ca.certify('shop', 'server'),
      await ca.certify('shop', 'client'),
      await ca.certify('shop', 'client'),
    ];
    const root = mkdtempSync(join(tmpdir(), 'fl-provided-'));
    const directory = join(root, 'var/run/secrets/workload-spiffe-uds');
    mkdirSync(directory, { recursive: true });
    const socket = join(directory, 'socket');
    const provider = await startAgent(first, socket);
    onTestFinished(() => provider.close());
    const inode = statSync(socket).ino;
    const server = await startFairleadAgent({
      ...setup('server'),
      files: {
        'etc/certs/cert-chain.pem': mounted.certificate,
        'etc/certs/key.pem': mounted.key,
        'etc/certs/root-cert.pem': mounted.roots,
      },
    });
    const client = await startFairleadAgent({ ...setup('client'), root });
    await Promise.all([server.ready(), client.ready()]);
    await expect.poll(() => ask(outbound, HOST)).toBe('200 served');
    const serialsOf = async (agent: AgentProcess): Promise<string> =>
      (await agent.get(agent.ports.admin, '/certs')).body.toUpperCase();
    const serial = ({ certificate }: { readonly certificate: string }): string =>
      new X509Certificate(certificate).serialNumber;
    expect(await serialsOf(server)).toContain(serial(mounted));
    expect(await serialsOf(client)).toContain(serial(first));
    provider.update(second);
    await expect.poll(() => serialsOf(client)).toContain(serial(second));
    const { body } = await client.get(client.ports.status, '/status');
    expect(JSON.parse(body)).toMatchObject({ certificate: `with the provider at ${socket}` });
    process.kill(client.process.pid, 'SIGTERM');
    expect(await client.process.exited).toBe(0);
    expect(statSync(socket).ino).toBe(inode);
    expect([...messages(server), ...messages(client)]).not.toContain('Certificate received');
  });

  test('after a restart while the control plane is away, it serves as before, and then what is new', async () => {
    const { setup, made, inbound, outbound, program } = await startMesh();
    const server = await startFairleadAgent(setup('server'));
    const first = await startFairleadAgent(setup('client'));
    await Promise.all([server.ready(), first.ready()]);
    await expect.poll(() => ask(outbound, HOST)).toBe('200 served');
    await poll('the configuration is saved', () =>
      Promise.resolve(existsSync(join(first.root, 'etc/istio/proxy/last-config.bin')) ? true : undefined),
    );
    // The agent alone: nobody ends its Envoy.
    const former = envoyOf(first);
    process.kill(first.process.pid, 'SIGKILL');
    onTestFinished(() => {
      try {
        process.kill(former, 'SIGKILL');
      } catch {
        // It has ended, as it should.
      }
    });
    await expect
      .poll(() =>
        first.get(first.ports.status, '/').then(
          () => 'alive',
          () => 'gone',
        ),
      )
      .toBe('gone');
    expect(await isLive(first)).toBe(true);
    // A port of its own, behind which the control plane comes back.
    const [gate = 0] = await freePorts(1);
    const again = await startFairleadAgent({ ...setup('client'), port: gate, root: first.root });
    await again.ready();
    await expect.poll(() => ask(outbound, HOST)).toBe('200 served');
    expect(messages(again)).toContain('Using the certificate from before the restart');
    expect(messages(again)).toContain('Ending the Envoy of an agent that was killed');
    expect(await isLive(first)).toBe(false);
    expect(envoyOf(again)).not.toBe(former);
    const { body } = await again.get(again.ports.status, '/status');
    expect(JSON.parse(body)).toMatchObject({
      connected: false,
      servesConfigurationOf: expect.any(String),
      certificate: 'valid',
    });
    const back = createServer((socket) => {
      const to = connect(program.serving.ports.secure!, '127.0.0.1');
      socket.pipe(to).pipe(socket);
      for (const end of [socket, to]) end.on('error', () => [socket, to].forEach((each) => each.destroy()));
    }).listen(gate, '127.0.0.1');
    onTestFinished(() => void back.close());
    await expect
      .poll(async () => JSON.parse((await again.get(again.ports.status, '/status')).body) as object)
      .toEqual(expect.objectContaining({ connected: true }));
    const [other = 0] = await freePorts(1);
    await made.apply(serverEntry(inbound, other));
    await expect.poll(() => ask(other, HOST)).toBe('200 served');
  });

  test("an Envoy that cannot start is named, and its exit code is the agent's", async () => {
    const { setup } = await startMesh();
    const end = async (change: Partial<AgentSetup>) => {
      const agent = await startFairleadAgent({ ...setup('server'), ...change });
      const code = await agent.process.exited;
      return [code, messages(agent).at(-1) ?? agent.process.log().trim().split('\n').at(-1)];
    };
    expect(await end({ proxyConfig: { binaryPath: '/no/such/envoy' } })).toEqual([
      127,
      'there is no Envoy at /no/such/envoy',
    ]);
    const taken = await startBackend('taken');
    onTestFinished(() => taken.close());
    expect(await end({ proxyConfig: { proxyAdminPort: taken.port } })).toEqual([
      1,
      expect.stringMatching(/^Envoy ended with code 1: .*Address already in use/),
    ]);
    expect(
      await end({
        files: { 'override.yaml': 'admin: {no_such_field: 1}' },
        env: { ISTIO_BOOTSTRAP_OVERRIDE: 'override.yaml' },
      }),
    ).toEqual([1, expect.stringMatching(/^Envoy ended with code 1: .*no_such_field/)]);
    expect(await end({ proxyConfig: { concurrency: 'many' } })).toEqual([
      1,
      'error: ProxyConfig concurrency must be a whole number',
    ]);
    const all = createServer().listen(0);
    onTestFinished(() => void all.close());
    await once(all, 'listening');
    const { port: statusPort } = all.address() as AddressInfo;
    expect(await end({ proxyConfig: { statusPort } })).toEqual([1, expect.stringContaining(`${statusPort}`)]);
  });

  test('a drain before the signal is the only one', async () => {
    const { setup } = await startMesh();
    const agent = await startFairleadAgent({ ...setup('server'), proxyConfig: { terminationDrainDuration: '600s' } });
    await agent.ready();
    const drain = await fetch(`http://127.0.0.1:${agent.ports.status}/drain`, { method: 'POST' });
    expect(drain.status).toBe(200);
    expect((await agent.get(agent.ports.status, '/drain')).status).toBe(405);
    process.kill(agent.process.pid, 'SIGTERM');
    expect(await agent.process.exited).toBe(0);
  });

  test('an Envoy that dies ends the agent', async () => {
    const { setup } = await startMesh();
    const agent = await startFairleadAgent(setup('server'));
    await agent.ready();
    // A file that cannot be removed holds nothing up.
    rmSync(join(agent.root, 'etc/istio/proxy/envoy.pid'));
    mkdirSync(join(agent.root, 'etc/istio/proxy/envoy.pid'));
    process.kill(envoyOf(agent), 'SIGSEGV');
    expect(await agent.process.exited).toBe(139);
    expect(messages(agent).at(-1)).toContain('SIGSEGV');
  });
});
