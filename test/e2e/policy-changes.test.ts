import { request as requestHttps } from 'node:https';
import { expect, onTestFinished, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { FORMER_MS } from '../../src/engine/peer-history.ts';
import type { Program } from '../features/program.ts';
import { securePort } from '../features/secure-cluster.ts';
import { Directory } from '../features/sources.ts';
import { startEnvoy } from '../peers/envoy.ts';
import type { WorkloadCertificate } from '../peers/mesh-ca.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { startAgent } from './agent.ts';
import { ask, startBackend, startSteadyClient } from './traffic.ts';

const HOST = 'web.shop.example';
const CLIENTS = 3;

const object = (group: string, kind: string, name: string, spec: object): KubernetesObject =>
  ({ apiVersion: `${group}.istio.io/v1`, kind, metadata: { name, namespace: 'shop' }, spec }) as KubernetesObject;

const mode = (name: string) => object('security', 'PeerAuthentication', 'default', { mtls: { mode: name } });

async function startProxy(name: string, program: Program, secrets: WorkloadCertificate) {
  const agent = await startAgent(secrets);
  onTestFinished(() => agent.close());
  const envoy = await startEnvoy({
    adsPort: program.serving.ports.secure!,
    delta: true,
    tls: secrets,
    node: {
      id: `sidecar~127.0.0.1~${name}-1.shop~shop.svc.cluster.local`,
      metadata: {
        NAMESPACE: 'shop',
        SERVICE_ACCOUNT: name,
        INTERCEPTION_MODE: 'NONE',
        ISTIO_VERSION: '1.30.0',
        LABELS: { app: name },
      },
    },
    extraBootstrap: { staticResources: { clusters: [agent.cluster] } },
  });
  onTestFinished(() => envoy.stop());
  await envoy.ready();
  return envoy;
}

/** Two real Envoys, a client's and a server's, and what the client's callers get under constant load. */
async function startShop(...policies: readonly KubernetesObject[]) {
  const { ca, settings } = await securePort();
  const backend = await startBackend('served');
  onTestFinished(() => backend.close());
  const [port = 0, outbound = 0] = await freePorts(2);
  const directory = await Directory.create();
  await directory.apply(
    object('networking', 'Sidecar', 'server', {
      workloadSelector: { labels: { app: 'server' } },
      ingress: [
        {
          port: { number: port, protocol: 'HTTP', name: 'http' },
          bind: '127.0.0.1',
          captureMode: 'NONE',
          defaultEndpoint: `127.0.0.1:${backend.port}`,
        },
      ],
      egress: [{ hosts: ['~/*'] }],
    }),
    object('networking', 'ServiceEntry', 'web', {
      hosts: [HOST],
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      ports: [{ number: outbound, name: 'http', protocol: 'HTTP' }],
      endpoints: [
        {
          address: '127.0.0.1',
          ports: { http: port },
          labels: { app: 'server', 'security.istio.io/tlsMode': 'istio' },
        },
      ],
    }),
    // Every request has a connection of its own to the server, and what fails is seen, not tried again.
    object('networking', 'DestinationRule', 'web', {
      host: HOST,
      trafficPolicy: { connectionPool: { http: { maxRequestsPerConnection: 1 } } },
    }),
    object('networking', 'VirtualService', 'web', {
      hosts: [HOST],
      http: [{ route: [{ destination: { host: HOST } }], retries: { attempts: 0 } }],
    }),
    ...policies,
  );
  const program = await directory.start(settings);
  await program.logged('Ready');
  await program.logged('Signing certificates');
  const secrets = await ca.certify('shop', 'client');
  await startProxy('server', program, await ca.certify('shop', 'server'));
  const client = await startProxy('client', program, secrets);
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  await poll('the first answer', async () => ((await ask(outbound, HOST)) === '200 served' ? true : undefined));
  const steady = Array.from({ length: CLIENTS }, () => startSteadyClient(outbound, HOST, stop.signal));
  return {
    directory,
    program,
    /** What the client's proxy has been told to use. */
    async clientUses() {
      const { endpoints } = await client.configDump();
      const own = endpoints.filter(({ name }) => name.endsWith(HOST));
      return JSON.stringify(own).includes('tlsMode') ? 'mutual' : 'plain';
    },
    /** What callers with and without a certificate get directly from the server. */
    plain: () => ask(port, 'server.shop'),
    mutual: (headers?: object) => askWithCertificate(port, secrets, headers),
    more: (count: number) => Promise.all(steady.map((each) => each.more(count))),
    /** All answers that callers got through the client's proxy. */
    async stop() {
      const answers = await Promise.all(steady.map((each) => each.stop()));
      return [...new Set(answers.flat())];
    },
  };
}

function askWithCertificate(
  port: number,
  { certificate, key }: WorkloadCertificate,
  headers: object = {},
): Promise<string> {
  return new Promise((resolve) => {
    requestHttps({
      host: '127.0.0.1',
      port,
      headers: { host: 'server.shop', ...headers },
      agent: false,
      cert: certificate,
      key,
      rejectUnauthorized: false,
      ALPNProtocols: ['istio-http/1.1', 'http/1.1'],
    } as object)
      .on('response', (response) => {
        response.resume();
        resolve(String(response.statusCode));
      })
      .on('error', () => resolve('closed'))
      .end();
  });
}

const until = (what: string, ask: () => Promise<string>, answer: (text: string) => boolean) =>
  poll(what, async () => (answer(await ask()) ? true : undefined));
const isClosed = (text: string): boolean => !text.startsWith('200');
const isServed = (text: string): boolean => text.startsWith('200');

withPeers(['envoy'], 'under constant load', () => {
  test('no request is lost while the mode of mutual TLS changes', async () => {
    const { directory, program, plain, mutual, clientUses, more, stop } = await startShop(mode('PERMISSIVE'));
    await directory.apply(mode('STRICT'));
    await until('no plaintext', plain, isClosed);
    await more(10);
    for (const [next, accepted, refused] of [
      ['DISABLE', plain, mutual],
      ['STRICT', mutual, plain],
      ['DISABLE', plain, mutual],
      ['PERMISSIVE', mutual, undefined],
    ] as const) {
      await directory.apply(mode(next));
      // First the server accepts both, then clients follow, then the server refuses what they no longer use.
      await until(`${next}: the new kind`, accepted, isServed);
      await more(10);
      program.clock.skip(FORMER_MS.formerPeersOfClients);
      await until(
        `${next}: the client`,
        () => clientUses(),
        (used) => used === (accepted === plain ? 'plain' : 'mutual'),
      );
      await more(10);
      program.clock.skip(FORMER_MS.formerPeersOfServers - FORMER_MS.formerPeersOfClients);
      if (refused !== undefined) await until(`${next}: not the former kind`, refused, isClosed);
      await more(10);
    }
    expect(await stop()).toEqual(['200 served']);
    expect(program.log.filter(({ msg }) => msg === 'Proxy rejected resources')).toEqual([]);
  }, 60_000);

  test('no request is lost while other policies with the same effect take their place', async () => {
    const only = (name: string, source: object) =>
      object('security', 'AuthorizationPolicy', name, {
        selector: { matchLabels: { app: 'server' } },
        rules: [{ from: [{ source }] }],
      });
    const first = only('first', { principals: ['cluster.local/ns/shop/sa/client'] });
    const second = only('second', { namespaces: ['shop'], principals: ['*/sa/client'] });
    const { directory, program, plain, mutual, more, stop } = await startShop(mode('PERMISSIVE'), first);
    await until('the policy', plain, (text) => text.startsWith('403'));
    await more(10);
    await directory.apply(second);
    await more(10);
    await directory.delete(first);
    await more(10);
    const tokens = object('security', 'RequestAuthentication', 'tokens', {
      selector: { matchLabels: { app: 'server' } },
      jwtRules: [{ issuer: 'issuer', jwks: JSON.stringify({ keys: [{ kty: 'oct', kid: 'a', k: 'c2VjcmV0' }] }) }],
    });
    await directory.apply(tokens);
    await until(
      'the key set',
      () => mutual({ authorization: 'Bearer x.y.z' }),
      (text) => text === '401',
    );
    await more(10);
    expect([await plain(), await mutual()]).toEqual([expect.stringMatching('^403'), '200']);
    expect(await stop()).toEqual(['200 served']);
    expect(program.log.filter(({ msg }) => msg === 'Proxy rejected resources')).toEqual([]);
  });
});
