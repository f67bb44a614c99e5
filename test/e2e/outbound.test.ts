import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { type RunningEnvoy, startEnvoy } from '../peers/envoy.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { apply, startTestEngine } from './engine.ts';

interface Backend {
  readonly port: number;
  stop(): void;
}

/** Answers with its name, and with what it says of its load. */
async function startBackend(name: string, utilization?: number): Promise<Backend> {
  const load = { application_utilization: utilization, rps_fractional: 100 };
  const server = createServer((_, response) => {
    if (utilization !== undefined) response.setHeader('endpoint-load-metrics', `JSON ${JSON.stringify(load)}`);
    response.end(name);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, stop: () => server.close() };
}

withPeers(['envoy'], 'a real Envoy that is an HTTP proxy without interception', () => {
  const stop = new AbortController();
  const backends = new Map<string, Backend>();
  let engine: Engine;
  let envoy: RunningEnvoy;
  let [proxyPort = 0, headlessPort = 0] = [0, 0];
  const portOf = (name: string): number => backends.get(name)!.port;

  beforeAll(async () => {
    for (const name of ['orders', 'admin', 'carts', 'pod', 'elsewhere']) backends.set(name, await startBackend(name));
    backends.set('idle', await startBackend('idle', 0.1));
    backends.set('busy', await startBackend('busy', 0.9));
    [proxyPort = 0, headlessPort = 0] = await freePorts(2);
    engine = await startTestEngine(stop.signal);
    apply(engine, objects({ portOf, headlessPort }));
    await engine.open();
    envoy = await startEnvoy({
      adsPort: engine.ads.port!,
      delta: true,
      node: {
        id: 'sidecar~10.0.0.9~client.shop~shop.svc.cluster.local',
        metadata: { INTERCEPTION_MODE: 'NONE', HTTP_PROXY_PORT: String(proxyPort), NAMESPACE: 'shop' },
      },
    });
    await envoy.ready();
  });
  afterAll(async () => {
    await envoy.stop();
    stop.abort();
    await engine.ads.close();
    for (const backend of backends.values()) backend.stop();
  });
  printLogOnFailure(() => envoy);

  /** As clients of a proxy ask. */
  const ask = (url: string): Promise<string> => get(proxyPort, url, new URL(url).host);

  test('goes by the port of the URL', async () => {
    expect(await ask('http://orders/')).toBe('orders');
    expect(await ask('http://orders:9090/')).toBe('admin');
    expect(await ask('http://carts:8080/')).toBe('carts');
    expect(await ask('http://carts.shop.svc.cluster.local:8080/')).toBe('carts');
  });

  test('reaches the Pods of a headless Service', async () => {
    expect(await ask(`http://pods:${headlessPort}/`)).toBe('pod');
    expect(await get(headlessPort, '/', `pods:${headlessPort}`)).toBe('pod');
  });

  test('looks up hosts that nobody knows, if the mesh config says so', async () => {
    expect(await ask(`http://localhost:${portOf('elsewhere')}/`)).toBe('elsewhere');
    apply(engine, meshConfig('REGISTRY_ONLY'));
    await poll('no way out', async () =>
      (await ask(`http://localhost:${portOf('elsewhere')}/`)) === 'elsewhere' ? undefined : true,
    );
  });

  test('prefers the endpoint that reports less load', async () => {
    // With equal weights, half of them would go to each.
    await poll('most requests at the idle one', async () => {
      let idle = 0;
      for (let i = 0; i < 40; i++) if ((await ask('http://loaded/')) === 'idle') idle++;
      return idle >= 34 ? true : undefined;
    });
  });
});

function get(port: number, path: string, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, headers: { host }, agent: false }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.on('end', () => resolve(response.statusCode === 200 ? body : `status ${response.statusCode}`));
    })
      .on('error', reject)
      .end();
  });
}

const meshConfig = (mode: string): string => `
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: "outboundTrafficPolicy: {mode: ${mode}}"}
`;

function objects({ portOf, headlessPort }: { portOf: (name: string) => number; headlessPort: number }): string {
  const service = (name: string, ports: string, more = 'clusterIP: 10.96.0.10'): string => `
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec: {${more}, selector: {app: ${name}}, ports: [${ports}]}
`;
  const entry = (name: string, app: string, ports: string): string => `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: ${name}, namespace: shop}
spec: {address: 127.0.0.1, ports: {${ports}}, labels: {app: ${app}}}
`;
  return [
    meshConfig('ALLOW_ANY_DYNAMIC_DNS'),
    service('orders', '{name: http, port: 80}, {name: http-admin, port: 9090}'),
    entry('orders', 'orders', `http: ${portOf('orders')}, http-admin: ${portOf('admin')}`),
    service('carts', '{name: http, port: 8080}'),
    entry('carts', 'carts', `http: ${portOf('carts')}`),
    service('pods', `{name: http, port: ${headlessPort}}`, 'clusterIP: None'),
    entry('pods', 'pods', `http: ${portOf('pod')}`),
    service('loaded', '{name: http, port: 80}'),
    entry('idle', 'loaded', `http: ${portOf('idle')}`),
    entry('busy', 'loaded', `http: ${portOf('busy')}`),
    `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: loaded, namespace: shop}
spec:
  host: loaded
  trafficPolicy:
    loadBalancer: {backendUtilization: {weightStabilizationPeriod: 0s, weightUpdatePeriod: 100ms}}
`,
  ].join('---');
}
