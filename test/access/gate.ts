import { createServer } from 'node:http';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { onTestFinished } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { WorkloadAccess } from '../../src/settle/access/judge.ts';
import { startAgent, type WorkloadSecrets } from '../e2e/agent.ts';
import { createCa } from '../peers/mesh-ca.ts';
import { TestMesh, connectedProxy } from '../harness/mesh.ts';
import { startEnvoy } from '../peers/envoy.ts';
import { poll } from '../peers/process.ts';
import { type RandomRequest, type RandomWorld, identities } from './worlds.ts';

/** What an Envoy did with a request. */
export interface Answer {
  readonly answer: number | 'allowed' | 'closed';
  /** Whether it asked the provider. */
  readonly asked: boolean;
}

export interface Gate {
  readonly access: readonly WorkloadAccess[];
  readonly peers: readonly string[];
  ask(world: number, request: RandomRequest, id: string): Promise<Answer>;
  /** What Envoy noted about these requests: why it refused them. It ends. */
  details(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** Of the workloads: clients use ports of other addresses. */
export const ADDRESS = '127.0.0.9';

const PROVIDER = 'authz.example.com';

/** One Envoy with the inbound listeners of many workloads, each in a mesh of its own. */
export async function openGate(worlds: readonly RandomWorld[], ports: readonly (readonly number[])[]): Promise<Gate> {
  const ca = await createCa();
  const server = await ca.certify('shop', 'server');
  const clients: WorkloadSecrets[] = [];
  for (const [namespace, account, domain] of identities) clients.push(await ca.certify(namespace, account, domain));
  const agent = await startAgent(server);
  onTestFinished(() => agent.close());
  const asked = new Set<string>();
  const backends = await Promise.all([
    // Connections stay: one that closes while it is idle may meet a request.
    serve(createServer({ keepAliveTimeout: 0 }, (_, response) => response.end())),
    serve(createTcpServer((socket) => socket.on('error', () => undefined).on('data', () => socket.end('pong')))),
    // Speaks whatever it is spoken to.
    serve(
      createTcpServer((socket) =>
        socket
          .on('error', () => undefined)
          .on('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')),
      ),
    ),
    serve(
      createServer({ keepAliveTimeout: 0 }, ({ headers }, response) => {
        asked.add(String(headers['x-test-id']));
        response.end();
      }),
    ),
  ]);
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-access-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const accessLog = join(directory, 'access.log');
  const built = worlds.map((world, i) => build(world, ports[i]!, backends, accessLog));
  const envoy = await startEnvoy({
    adsPort: 1,
    delta: true,
    args: ['--file-flush-interval-msec', '20'],
    node: { id: 'sidecar~127.0.0.1~server.shop~shop.svc.cluster.local' },
    extraBootstrap: {
      dynamicResources: {},
      staticResources: {
        listeners: built.flatMap(({ listeners }) => listeners),
        clusters: [...built.flatMap(({ clusters }) => clusters), agent.cluster, providerCluster(backends[3]!)],
      },
    },
  });
  onTestFinished(() => envoy.stop());
  await envoy.ready();
  return {
    access: built.map(({ access }) => access),
    peers: identities.map(([namespace, account, domain]) => `spiffe://${domain}/ns/${namespace}/sa/${account}`),
    async ask(world, request, id) {
      const port = ports[world]![request.port]!;
      const secrets = request.peer === undefined ? undefined : clients[request.peer]!;
      const answer = await send(port, request, id, secrets);
      return { answer, asked: asked.has(id) };
    },
    async details(ids) {
      const read = async () => {
        const lines = (await readFile(accessLog, 'utf8').catch(() => '')).split('\n');
        const found = new Map(lines.map((line) => [line.split(' ', 1)[0]!, line.slice(line.indexOf(' ') + 1)]));
        return ids.every((id) => found.has(id)) ? found : undefined;
      };
      const found = await poll('the access log', read);
      await envoy.stop();
      return found;
    },
  };
}

async function serve(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

function providerCluster(port: number): object {
  const name = `outbound|80||${PROVIDER}`;
  const address = { socketAddress: { address: '127.0.0.1', portValue: port } };
  return {
    name,
    type: 'STATIC',
    connectTimeout: '1s',
    loadAssignment: { clusterName: name, endpoints: [{ lbEndpoints: [{ endpoint: { address } }] }] },
  };
}

function build(world: RandomWorld, ports: readonly number[], backends: readonly number[], accessLog: string) {
  const object = (apiVersion: string, kind: string, name: string, namespace: string, content: object) =>
    ({ apiVersion, kind, metadata: { name, namespace }, ...content }) as KubernetesObject;
  const ingress = ['HTTP', 'TCP', 'AUTO'].map((protocol, i) => ({
    port: { number: ports[i], protocol: protocol === 'AUTO' ? '' : protocol, name: `p${i}` },
    bind: ADDRESS,
    captureMode: 'NONE',
    defaultEndpoint: `127.0.0.1:${backends[i]}`,
  }));
  const meshConfig = {
    accessLogFile: accessLog,
    accessLogFormat: '%REQ(x-test-id)% %RESPONSE_CODE_DETAILS%\n',
    pathNormalization: { normalization: world.normalization },
    trustDomainAliases: world.aliases,
    extensionProviders: [
      {
        name: 'asked',
        envoyExtAuthzHttp: { service: PROVIDER, port: 80, includeRequestHeadersInCheck: ['x-test-id'] },
      },
    ],
  };
  const mesh = new TestMesh({ oracle: false });
  mesh.apply([
    object('v1', 'ConfigMap', 'istio', 'istio-system', { data: { mesh: JSON.stringify(meshConfig) } }),
    object('networking.istio.io/v1', 'ServiceEntry', 'authz', 'shop', {
      spec: { hosts: [PROVIDER], ports: [{ number: 80, name: 'http', protocol: 'HTTP' }], resolution: 'DNS' },
    }),
    object('networking.istio.io/v1', 'Sidecar', 'default', 'shop', {
      spec: { ingress, egress: [{ hosts: ['./*'] }] },
    }),
    ...world.policies,
  ]);
  const metadata = {
    ...{ NAMESPACE: 'shop', INTERCEPTION_MODE: 'NONE', ISTIO_VERSION: '1.30.0', LABELS: { app: 'server' } },
  };
  mesh.connect(connectedProxy('s', { id: 'sidecar~127.0.0.1~server.shop~shop.svc.cluster.local', metadata }));
  const { lds, cds } = mesh.json('s') as Record<'lds' | 'cds', { readonly name: string; readonly '@type': string }[]>;
  const untyped = ({ '@type': _, ...message }: { readonly '@type': string }): object => message;
  return {
    access: mesh.mesh.access.atSidecar('s')!,
    listeners: lds.filter(({ name }) => ports.some((port) => name.endsWith(`_${port}`))).map(untyped),
    clusters: cds.filter(({ name }) => ports.some((port) => name === `inbound|${port}||`)).map(untyped),
  };
}

/** One request on a connection of its own. */
function send(port: number, request: RandomRequest, id: string, secrets: WorkloadSecrets | undefined) {
  const isRaw = request.port === 1 || (request.port === 2 && request.raw);
  const where = { host: ADDRESS, port, localAddress: request.sourceIp };
  return new Promise<Answer['answer']>((resolve) => {
    const socket =
      secrets === undefined
        ? connect(where)
        : connectTls({
            ...where,
            servername: request.sni,
            cert: secrets.certificate,
            key: secrets.key,
            // The server is checked by its Envoy's peers, not by this client.
            rejectUnauthorized: false,
            ALPNProtocols: isRaw ? ['istio'] : ['istio-http/1.1', 'http/1.1'],
          });
    let text = '';
    socket.on(secrets === undefined ? 'connect' : 'secureConnect', () => {
      socket.write(isRaw ? `ping ${id}\n\n` : textOf(request, id));
    });
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      // The answer is known, and the rest does not matter.
      if (isRaw || text.includes('\r\n')) socket.end();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      const status = Number(/^HTTP\/1\.1 (\d+) /.exec(text)?.[1] ?? 0);
      if (text === '') resolve('closed');
      else resolve(isRaw || status === 200 ? 'allowed' : status);
    });
  });
}

function textOf({ method, path, host, headers }: RandomRequest, id: string): string {
  const lines = [`${method} ${path} HTTP/1.1`, `host: ${host}`, `x-test-id: ${id}`, 'connection: close'];
  return [...lines, ...headers.map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n');
}
