import { expect, onTestFinished, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { SERVER, secureCluster, startSecure, tokenOf } from '../features/secure-cluster.ts';
import { freePorts } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { startFairleadAgent } from './fairlead-agent.ts';
import { ask, startBackend } from './traffic.ts';

const HOST = 'server.shop.example';

const object = (group: string, kind: string, name: string, spec: object): KubernetesObject =>
  ({ apiVersion: `${group}.istio.io/v1`, kind, metadata: { name, namespace: 'shop' }, spec }) as KubernetesObject;

/** A mesh in which a server and a client without interception speak mutual TLS. */
async function startMesh() {
  const backend = await startBackend('served');
  onTestFinished(() => backend.close());
  const [inbound = 0, outbound = 0] = await freePorts(2);
  const made = await secureCluster();
  await made.apply(
    object('security', 'PeerAuthentication', 'default', { mtls: { mode: 'STRICT' } }),
    object('networking', 'Sidecar', 'server', {
      workloadSelector: { labels: { app: 'server' } },
      ingress: [
        {
          port: { number: inbound, protocol: 'HTTP', name: 'http' },
          bind: '127.0.0.1',
          captureMode: 'NONE',
          defaultEndpoint: `127.0.0.1:${backend.port}`,
        },
      ],
      egress: [{ hosts: ['~/*'] }],
    }),
    object('networking', 'ServiceEntry', 'server', {
      hosts: [HOST],
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      ports: [{ number: outbound, name: 'http', protocol: 'HTTP' }],
      endpoints: [{ address: '127.0.0.1', ports: { http: inbound }, serviceAccount: 'server' }],
      subjectAltNames: ['spiffe://cluster.local/ns/shop/sa/server'],
    }),
    object('networking', 'DestinationRule', 'server', {
      host: HOST,
      trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } },
    }),
  );
  const { program, roots } = await startSecure(made);
  const setup = (account: string) => ({
    port: program.serving.ports.secure!,
    server: SERVER,
    roots,
    token: tokenOf(`shop:${account}`),
    namespace: 'shop',
    account,
  });
  return { made, program, setup, inbound, outbound };
}

withPeers(['envoy'], 'the agent beside Envoy', () => {
  test('two workloads speak mutual TLS with nothing but a token and roots', async () => {
    const { setup, outbound } = await startMesh();
    const server = await startFairleadAgent(setup('server'));
    const client = await startFairleadAgent(setup('client'));
    await Promise.all([server.ready(), client.ready()]).catch((error: unknown) => {
      throw new Error(`${server.process.log()}\n${client.process.log()}`, { cause: error });
    });
    await expect.poll(() => ask(outbound, HOST)).toBe('200 served');
    console.log(client.process.log());
  });
});
