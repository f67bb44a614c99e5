import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { type RunningEnvoy, startEnvoy } from '../peers/envoy.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { apply, startTestEngine } from './engine.ts';

withPeers(['envoy'], 'a real Envoy', () => {
  for (const delta of [true, false]) {
    it(`routes a request as a VirtualService says, and follows its change (${delta ? 'delta' : 'state of the world'})`, async () => {
      const stop = new AbortController();
      const backends = await Promise.all(['v1', 'v2'].map((version) => startBackend(version)));
      const [proxyPort = 0, httpPort = 0] = await freePorts(2);
      let engine: Engine | undefined;
      let envoy: RunningEnvoy | undefined;
      try {
        engine = await startTestEngine(stop.signal);
        apply(
          engine,
          mesh(
            backends.map((b) => b.port),
            httpPort,
            'v1',
          ),
        );
        await engine.open();
        envoy = await startEnvoy({
          adsPort: engine.ads.port!,
          delta,
          node: {
            id: 'sidecar~10.0.0.9~client.default~default.svc.cluster.local',
            metadata: { INTERCEPTION_MODE: 'NONE', HTTP_PROXY_PORT: String(proxyPort), NAMESPACE: 'default' },
          },
        });
        await envoy.ready();
        const ask = () => get(`http://127.0.0.1:${httpPort}/`, 'reviews.default.svc.cluster.local');
        expect(await ask()).toBe('v1');
        apply(
          engine,
          mesh(
            backends.map((b) => b.port),
            httpPort,
            'v2',
          ),
        );
        await poll('the other version', async () => ((await ask()) === 'v2' ? true : undefined));
      } finally {
        await envoy?.stop();
        stop.abort();
        await engine?.ads.close();
        for (const backend of backends) backend.close();
      }
    });
  }
});

async function get(url: string, host: string): Promise<string> {
  const { request } = await import('node:http');
  return new Promise((resolve, reject) => {
    request(url, { headers: { host } }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.on('end', () => resolve(body));
    })
      .on('error', reject)
      .end();
  });
}

async function startBackend(text: string): Promise<{ port: number; close: () => void }> {
  const server = createServer((_, response) => response.end(text));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

function mesh([v1 = 0, v2 = 0]: number[], port: number, version: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews, namespace: default}
spec:
  hosts: [reviews.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  endpoints:
  - {address: 127.0.0.1, ports: {http: ${v1}}, labels: {version: v1}}
  - {address: 127.0.0.1, ports: {http: ${v2}}, labels: {version: v2}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews, namespace: default}
spec:
  host: reviews.default.svc.cluster.local
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews, namespace: default}
spec:
  hosts: [reviews.default.svc.cluster.local]
  http: [{route: [{destination: {host: reviews.default.svc.cluster.local, subset: ${version}}}]}]
`;
}
