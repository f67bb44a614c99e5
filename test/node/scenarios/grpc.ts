import { afterAll, beforeAll, expect, test } from 'vitest';
import { ECHO, GRPC_IMAGE } from '../grpc/image.ts';
import type { RunningNode } from '../node.ts';
import { peerMode } from './peer-mode.ts';

/** Applications with gRPC's own xDS, which need an agent, but no Envoy. */
export function grpc(node: () => RunningNode): void {
  const kubectl = (...args: string[]): Promise<string> => node().kubectl('-n', NAMESPACE, ...args);
  const inside = (name: string, ...command: string[]): Promise<string> =>
    kubectl('exec', name, '-c', 'app', '--', ...command);
  /** What a call from the Pod is answered, or why not. */
  const call = async (from: string, target: string): Promise<string> =>
    (await inside(from, ...ECHO, 'call', target)).trim();

  beforeAll(async () => {
    await node().apply([...OBJECTS, ...MODES].join('\n---\n'));
    await kubectl('wait', '--for=condition=Ready', 'pod', '--all', '--timeout=90s');
  }, 180_000);
  afterAll(() => node().kubectl('delete', 'namespace', NAMESPACE, '--wait=false'));

  test('are ready beside an agent, which is another user and runs nothing', async () => {
    const containers = ['-o', 'jsonpath={.spec.initContainers[*].name} {.spec.containers[*].name}'];
    expect(await kubectl('get', 'pod/echo', ...containers)).toBe('istio-proxy app');
    expect(await inside('echo', 'id', '-u')).toBe('1000\n');
    const agent = ['exec', 'echo', '-c', 'istio-proxy', '--'];
    expect(await kubectl(...agent, 'node', '-p', 'process.getuid()')).toBe('1337\n');
    const running = `fs.readdirSync('/proc').filter(Number).map((id) => fs.readFileSync('/proc/' + id + '/comm', 'utf8'))`;
    const names = await kubectl(...agent, 'node', '-p', running);
    expect(names).toMatch(/^\[.*'(node|MainThread)/s);
    expect(names).not.toContain('envoy');
  });

  test('speak mutual TLS with each other: a policy knows who calls', async () => {
    expect(await call('client', 'xds:///echo:9000')).toBe('echo');
    expect(await call('echo', 'xds:///echo:9000')).toMatch(/^PERMISSION_DENIED/);
  });

  test('speak mutual TLS with Pods that have an Envoy, in both directions', async () => {
    expect(await call('client', 'xds:///behind-envoy:9000')).toBe('behind-envoy');
    // The Envoy does what its application does not know of.
    expect(await call('behind-envoy', 'dns:///echo:9000')).toBe('echo');
  });

  test('refuse plaintext', async () => {
    expect(await call('simple', 'dns:///echo:9000')).toMatch(/^UNAVAILABLE/);
    expect(await call('simple', 'dns:///behind-envoy:9000')).toMatch(/^UNAVAILABLE/);
  });

  test('need no agent for what is plaintext', async () => {
    expect(await kubectl('get', 'pod/simple', '-o', 'jsonpath={.spec.containers[*].name}')).toBe('app');
    expect(await call('simple', 'xds:///simple:9000')).toBe('simple');
  });

  test('wait for a classic agent if they are told to: they start once', async () => {
    const containers = ['-o', 'jsonpath={.spec.containers[*].name} {.status.containerStatuses[*].restartCount}'];
    expect(await kubectl('get', 'pod/classic', ...containers)).toBe('istio-proxy app 0 0');
    expect(await call('client', 'xds:///classic:9000')).toBe('classic');
  });

  test('end without waiting for a drain', async () => {
    const pods = ['pod/echo', 'pod/client', 'pod/simple', 'pod/classic'];
    await kubectl('delete', ...pods, '--wait=false');
    // Far less than their grace period.
    await kubectl('wait', '--for=delete', ...pods, '--timeout=25s');
  });
}

const NAMESPACE = 'grpc';
const metadata = (name: string) => ({ name, namespace: NAMESPACE });

interface PodOptions {
  readonly labels?: object;
  readonly annotations?: object;
  readonly account?: string;
}

/** @param args of the program; ready once it serves, if it does. */
function pod(
  name: string,
  template: string,
  args: readonly string[],
  { labels = {}, annotations = {}, account = 'default' }: PodOptions = {},
): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...metadata(name),
      labels: { app: name, ...labels },
      annotations: { 'inject.istio.io/templates': template, ...annotations },
    },
    spec: {
      serviceAccountName: account,
      terminationGracePeriodSeconds: 600,
      containers: [
        {
          name: 'app',
          image: GRPC_IMAGE,
          imagePullPolicy: 'Never',
          command: [...ECHO, ...args],
          ...(args[0] === 'serve' && {
            ports: [{ name: 'grpc', containerPort: PORT }],
            // The kubelet cannot speak mutual TLS.
            readinessProbe: { exec: { command: ['test', '-e', '/tmp/serving'] }, periodSeconds: 1 },
          }),
        },
      ],
    },
  };
}

const PORT = 8000;

const service = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: metadata(name),
  spec: { selector: { app: name }, ports: [{ name: 'grpc', port: 9000, targetPort: PORT }] },
});

/** gRPC's libraries do not know by themselves who speaks mutual TLS. */
const mutual = (host: string): object => ({
  apiVersion: 'networking.istio.io/v1',
  kind: 'DestinationRule',
  metadata: metadata(host),
  spec: { host, trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } },
});

const MODES = [peerMode(NAMESPACE, 'default', 'STRICT'), peerMode(NAMESPACE, 'simple', 'DISABLE', { app: 'simple' })];

const OBJECTS = [
  {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: NAMESPACE, labels: { 'istio-injection': 'enabled' } },
  },
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: metadata('caller') },
  {
    apiVersion: 'security.istio.io/v1',
    kind: 'AuthorizationPolicy',
    metadata: metadata('callers'),
    spec: {
      selector: { matchLabels: { app: 'echo' } },
      rules: [{ from: [{ source: { principals: [`cluster.local/ns/${NAMESPACE}/sa/caller`] } }] }],
    },
  },
  ...['echo', 'behind-envoy', 'classic', 'simple'].map(service),
  ...['echo', 'behind-envoy', 'classic'].map(mutual),
  pod('echo', 'grpc-agent', ['serve', 'echo', `${PORT}`], { labels: { 'security.istio.io/tlsMode': 'istio' } }),
  pod('client', 'grpc-agent', ['idle'], { account: 'caller' }),
  pod('behind-envoy', 'sidecar', ['serve', 'behind-envoy', `${PORT}`, 'plain'], { account: 'caller' }),
  pod('classic', 'grpc-agent', ['serve', 'classic', `${PORT}`], {
    annotations: {
      'sidecar.istio.io/nativeSidecar': 'false',
      'proxy.istio.io/config': JSON.stringify({ holdApplicationUntilProxyStarts: true }),
    },
  }),
  pod('simple', 'grpc-simple', ['serve', 'simple', `${PORT}`]),
].map((object) => JSON.stringify(object));
