import { X509Certificate } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { selfSigned } from '../../src/identity/self-signed.ts';
import { SkippingClock } from '../features/skipping-clock.ts';
import { SERVER, secureCluster, tokenOf } from '../features/secure-cluster.ts';
import { SECRETS } from '../features/sources.ts';
import { startEnvoy } from '../peers/envoy.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { HOST, meshObjects, object } from './agent-mesh.ts';
import { startIstioAgent } from './istio-agent.ts';
import { startBackend, startSteadyClient } from './traffic.ts';

const NAMESPACE = 'istio-system';
const HOUR = 3_600_000;

const namespace = (name: string): KubernetesObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

const encoded = (entries: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(entries).map(([key, text]) => [key, Buffer.from(text).toString('base64')]));
const decoded = (data: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]));

/**
 * Two real Envoys that speak mutual TLS, each behind an agent that asks for roots, and a client that sends requests all
 * the time; each request needs a handshake of its own.
 */
async function startMesh() {
  const backend = await startBackend('served');
  onTestFinished(() => backend.close());
  const [inbound = 0, outbound = 0] = await freePorts(2);
  const made = await secureCluster();
  const { cluster } = made.server;
  const write = (name: string, entries: Readonly<Record<string, string>>): void =>
    void cluster.apply(SECRETS, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: NAMESPACE },
      data: encoded(entries),
    });
  const read = (path: string, of: string, name: string) =>
    (cluster.object(path, of, name) as { readonly data?: Record<string, string> } | undefined)?.data ?? {};
  write('cacerts', await selfSigned('old', new Date()));
  await made.apply(
    namespace(NAMESPACE),
    namespace('shop'),
    ...meshObjects({ backend: backend.port, inbound, outbound }),
    // In place of the one above: each request needs a handshake.
    object('networking', 'DestinationRule', 'server', {
      host: HOST,
      trafficPolicy: {
        tls: { mode: 'ISTIO_MUTUAL' },
        connectionPool: { http: { maxRequestsPerConnection: 1 } },
      },
    }),
  );
  const program = await made.start({}, 'one', new SkippingClock({ realDates: true }));
  await program.logged('Signing certificates');
  const roots = (): string => read('/api/v1/configmaps', 'shop', 'istio-ca-root-cert')['root-cert.pem'] ?? '';
  await poll('the ConfigMap', () => Promise.resolve(roots() === '' ? undefined : true));
  const start = async (account: string) => {
    const agent = await startIstioAgent({
      port: program.serving.ports.secure!,
      server: SERVER,
      roots,
      token: tokenOf(`shop:${account}`),
    });
    const envoy = await startEnvoy({
      adsPort: agent.adsPort,
      delta: true,
      node: {
        id: `sidecar~127.0.0.1~${account}-1.shop~shop.svc.cluster.local`,
        metadata: {
          NAMESPACE: 'shop',
          SERVICE_ACCOUNT: account,
          LABELS: { app: account },
          INTERCEPTION_MODE: 'NONE',
          ISTIO_VERSION: '1.30.0',
        },
      },
      extraBootstrap: { staticResources: { clusters: [agent.cluster] } },
    });
    onTestFinished(() => envoy.stop());
    await envoy.ready();
    return { agent, envoy };
  };
  const [server, client] = [await start('server'), await start('client')];
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const steady = startSteadyClient(outbound, HOST, stopping.signal);
  await steady.until('200 served');
  return {
    program,
    server,
    client,
    steady,
    plugIn: (entries: Readonly<Record<string, string>>) => write('cacerts', entries),
    /** What replicas share, as JSON. */
    state: () => decoded(read(SECRETS, NAMESPACE, 'fairlead-ca'))['rotation.json'] ?? '',
    /** The same, as a user could write it. */
    change(
      to: (
        state: string,
        signing: Readonly<Record<string, string>>,
      ) => readonly [string, Readonly<Record<string, string>>],
    ) {
      const { 'rotation.json': state = '', ...signing } = decoded(read(SECRETS, NAMESPACE, 'fairlead-ca'));
      const [changed, entries] = to(state, signing);
      write('fairlead-ca', { ...entries, 'rotation.json': changed });
    },
  };
}

const issuerOf = (pem: string): string => new X509Certificate(pem).issuer;

withPeers(['envoy'], 'a root that is replaced under load', () => {
  test('costs no request: all proxies trust it before it signs', async () => {
    const { program, server, client, steady, plugIn, state, change } = await startMesh();
    /** As if it had been in this state for so long. */
    const pass = (ms: number) =>
      change((state, signing) => {
        const { roots, replicas, ...rest } = JSON.parse(state) as {
          roots: { since: string; until?: string }[];
          replicas: Record<string, { noneSince?: string }>;
        };
        const earlier = (moment: string): string => new Date(Date.parse(moment) - ms).toISOString();
        const reports = Object.entries(replicas).map(([name, { noneSince, ...report }]) => [
          name,
          { ...report, ...(noneSince !== undefined && { noneSince: earlier(noneSince) }) },
        ]);
        const aged = roots.map(({ since, until, ...root }) => ({
          ...root,
          since: earlier(since),
          ...(until !== undefined && { until: earlier(until) }),
        }));
        return [JSON.stringify({ ...rest, roots: aged, replicas: Object.fromEntries(reports) as object }), signing];
      });
    const logged = (text: string) =>
      poll(text, () => {
        program.clock.skip(4_000);
        return Promise.resolve(program.log.some(({ msg }) => msg.includes(text)) || undefined);
      });
    const release = client.agent.hold();
    plugIn(await selfSigned('new', new Date()));
    await logged('Root certificate added');
    pass(HOUR);
    await steady.more(50);
    const issuers = () => [server, client].map(({ agent }) => issuerOf(agent.certificate()));
    const whileHeld = issuers();
    release();
    await poll('a report that all have it', () => {
      program.clock.skip(4_000);
      return Promise.resolve(state().includes('noneSince') || undefined);
    });
    pass(HOUR);
    await logged('Root certificate no longer signs');
    await poll('certificates of the new root', () =>
      Promise.resolve(issuers().every((issuer) => issuer === 'O=new') || undefined),
    );
    await steady.more(50);
    pass(100 * 24 * HOUR);
    await logged('Root certificate dropped');
    await steady.more(50);
    expect(await steady.stop()).toEqual(['200 served']);
    expect(whileHeld).toEqual(['O=old', 'O=old']);
    expect(program.log.filter(({ msg }) => msg === 'Proxy rejected resources')).toEqual([]);
  });

  test('costs requests if it signs before all proxies trust it', async () => {
    const { server, client, program, steady, change } = await startMesh();
    const entries = await selfSigned('new', new Date());
    client.agent.hold();
    change((state) => {
      const root = { certificate: entries['root-cert.pem'], since: new Date().toISOString() };
      return [JSON.stringify({ ...(JSON.parse(state) as object), roots: [root] }), entries];
    });
    await poll('a certificate of the new root', () => {
      program.clock.skip(4_000);
      return Promise.resolve(issuerOf(server.agent.certificate()) === 'O=new' || undefined);
    });
    await steady.more(50);
    const answers = await steady.stop();
    expect(answers[0]).toBe('200 served');
    expect(answers.slice(1).join()).toMatch(/^503 /);
  });
});
