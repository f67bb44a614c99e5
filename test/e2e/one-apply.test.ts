import { afterAll, beforeAll, expect, test } from 'vitest';
import { startEnvoy, type RunningEnvoy } from '../peers/envoy.ts';
import { freePorts, poll } from '../peers/process.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { install, type Installed, type Replica } from './installed.ts';
import { object, reviews, routes, rule } from './shop.ts';
import { ask, startBackend, startSteadyClient, type Backend } from './traffic.ts';

/** What kubectl takes from one object to the next is less than this on any machine. */
const BATCH = '1000ms/10000ms';
const ROUNDS = 3;

withPeers(['envoy', 'etcd', 'kube-apiserver', 'kubectl', 'helm'], 'the objects of one kubectl apply', () => {
  const stopping = new AbortController();
  let cluster: Installed;
  let replica: Replica;
  let backend: Backend;
  let envoy: RunningEnvoy;
  let port = 0;
  printLogOnFailure(() => replica?.process);

  beforeAll(async () => {
    backend = await startBackend('v1');
    [port = 0] = await freePorts(1);
    // Envoy dials a replica here, which would need a certificate.
    cluster = await install({ values: ['--set', `plaintext.enabled=true,replicas=1,batch=${BATCH}`] });
    const [pod = ''] = await cluster.pods();
    replica = await cluster.start(pod);
    await replica.ready();
    await cluster.api.kubectl('create', 'namespace', 'shop');
  });
  afterAll(async () => {
    stopping.abort();
    await envoy?.stop();
    await cluster?.stop();
    backend?.close();
  });

  const apply = (...objects: readonly object[]): Promise<string> =>
    cluster.api.apply(objects.map((each) => JSON.stringify(each)).join('\n---\n'));

  test('are in force together: a route may come before the subset that it names', async () => {
    await apply(
      object('Sidecar', 'default', { egress: [{ hosts: ['./*'] }] }),
      object('ServiceEntry', 'reviews', {
        hosts: [reviews],
        location: 'MESH_INTERNAL',
        resolution: 'STATIC',
        ports: [{ number: port, name: 'http', protocol: 'HTTP' }],
        endpoints: [{ address: '127.0.0.1', ports: { http: backend.port }, labels: { version: 'v1' } }],
      }),
      rule({ 'round-0': 'v1' }),
      routes('round-0'),
    );
    envoy = await startEnvoy({
      adsPort: replica.adsPort,
      delta: true,
      node: {
        id: 'sidecar~10.244.1.1~client.shop~shop.svc.cluster.local',
        metadata: { NAMESPACE: 'shop', INTERCEPTION_MODE: 'NONE' },
      },
    });
    await envoy.ready();
    await poll('the first answer', async () => ((await ask(port, reviews)) === '200 v1' ? true : undefined));
    const steady = startSteadyClient(port, reviews, stopping.signal);
    for (let round = 1; round <= ROUNDS; round++) {
      const changed = [routes(`round-${round}`), rule({ [`round-${round}`]: 'v1' })];
      await apply(...(round % 2 === 0 ? changed : changed.reverse()));
      const wait = ['wait', '--for=condition=Programmed', 'virtualservice/reviews', '--timeout=30s'];
      await cluster.api.kubectl('-n', 'shop', ...wait);
    }
    expect(await steady.stop()).toEqual(['200 v1']);
  }, 90_000);
});
