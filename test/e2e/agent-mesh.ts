import { onTestFinished } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { SERVER, secureCluster, startSecure, tokenOf } from '../features/secure-cluster.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import type { AgentProcess } from './fairlead-agent.ts';
import { startBackend } from './traffic.ts';

/** The name by which clients ask. */
export const HOST = 'server.shop.example';

/** One of the namespace `shop`. */
export const object = (group: string, kind: string, name: string, spec: object): KubernetesObject =>
  ({ apiVersion: `${group}.istio.io/v1`, kind, metadata: { name, namespace: 'shop' }, spec }) as KubernetesObject;

/** The server, as clients find it. */
export const serverEntry = (inbound: number, outbound: number) =>
  object('networking', 'ServiceEntry', 'server', {
    hosts: [HOST],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    ports: [{ number: outbound, name: 'http', protocol: 'HTTP' }],
    endpoints: [{ address: '127.0.0.1', ports: { http: inbound }, serviceAccount: 'server' }],
    subjectAltNames: ['spiffe://cluster.local/ns/shop/sa/server'],
  });

/** A server that speaks mutual TLS only, and forwards to a backend on this machine; and how clients speak to it. */
export function meshObjects({ backend, inbound, outbound }: { backend: number; inbound: number; outbound: number }) {
  return [
    object('security', 'PeerAuthentication', 'default', { mtls: { mode: 'STRICT' } }),
    object('networking', 'Sidecar', 'server', {
      workloadSelector: { labels: { app: 'server' } },
      ingress: [
        {
          port: { number: inbound, protocol: 'HTTP', name: 'http' },
          bind: '127.0.0.1',
          captureMode: 'NONE',
          defaultEndpoint: `127.0.0.1:${backend}`,
        },
      ],
      egress: [{ hosts: ['~/*'] }],
    }),
    serverEntry(inbound, outbound),
    object('networking', 'DestinationRule', 'server', {
      host: HOST,
      trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } },
    }),
  ];
}

/** A mesh in which a server and a client without interception speak mutual TLS. */
export async function startMesh(settings: Readonly<Record<string, string>> = {}) {
  const backend = await startBackend('served');
  onTestFinished(() => backend.close());
  const [inbound = 0, outbound = 0] = await freePorts(2);
  const made = await secureCluster();
  await made.apply(...meshObjects({ backend: backend.port, inbound, outbound }));
  const { program, roots } = await startSecure(made, {}, settings);
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

/** What the log says, in order. */
export const messages = ({ process }: AgentProcess): readonly string[] =>
  process
    .log()
    .split('\n')
    .flatMap((line) => (line.startsWith('{') ? [(JSON.parse(line) as { msg: string }).msg] : []));
