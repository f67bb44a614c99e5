import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import type { OnEnd } from '../../src/testing/on-end.ts';
import { NAMESPACE } from '../chart/chart.ts';
import { secureCall, signCertificate } from '../harness/secure-call.ts';
import { startEnvoy, type RunningEnvoy } from '../peers/envoy.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import type { PeerName } from '../peers/peer.ts';
import { printLogOnFailure } from '../peers/with-peers.ts';
import { install, type Installed, type Replica } from './installed.ts';
import { object } from './shop.ts';
import { startBackend, startSteadyClient, type Backend } from './traffic.ts';

const SHOPS = Array.from({ length: 10 }, (_, i) => `shop-${i}`);
/** After each request of a client: there is one for each shop on either side. Milliseconds. */
const PAUSE_MS = 25;
const SERVER = `fairlead.${NAMESPACE}.svc`;

/** The address on which each Envoy listens, and the replica's Pod by its place. */
const SIDES = ['127.0.0.1', '127.0.0.2'] as const;

/** What {@link appliedTogether} needs. */
export const PEERS: readonly PeerName[] = ['envoy', 'etcd', 'kube-apiserver', 'kubectl', 'helm'];

/** So often all objects of ten shops change at once, in either order, under load, with two replicas. */
export function appliedTogether(rounds: number): void {
  const stopping = new AbortController();
  const endings: (() => unknown)[] = [];
  const onEnd: OnEnd = (fn) => void endings.push(fn);
  const envoys: RunningEnvoy[] = [];
  const replicas: Replica[] = [];
  let cluster: Installed;
  let backend: Backend;
  let directory: string;
  let port = 0;
  printLogOnFailure(() => ({
    log: () => [...replicas.map(({ process }) => process), ...envoys].map((each) => each.log()).join('\n---\n'),
  }));

  beforeAll(async () => {
    backend = await startBackend(({ url = '' }) => url);
    [port = 0] = await freePorts(1);
    directory = await temporaryDirectory(onEnd);
    cluster = await install();
    for (const pod of await cluster.pods()) replicas.push(await cluster.start(pod));
    await Promise.all(replicas.map((replica) => replica.ready()));
    await cluster.api.kubectl('create', 'namespace', 'shop');
  });
  afterAll(async () => {
    stopping.abort();
    await Promise.all(envoys.map((envoy) => envoy.stop()));
    await cluster?.stop();
    backend?.close();
    for (const end of endings) await end();
  });

  /** With a certificate of this mesh, over the port that the chart ships. */
  const envoyOf = async ({ securePort }: Replica, side: number): Promise<RunningEnvoy> => {
    const roots = await poll('the roots in the namespace', async () => {
      const path = '/api/v1/namespaces/shop/configmaps/istio-ca-root-cert';
      const map = (await cluster.api.call('GET', path).catch(() => ({}))) as { readonly data?: Record<string, string> };
      return map.data?.['root-cert.pem'];
    });
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: ['istio-ca'] } };
    const { status } = await cluster.api.call('POST', '/api/v1/namespaces/shop/serviceaccounts/default/token', request);
    const { token } = status as { readonly token: string };
    const openssl = new OpenSsl(onEnd);
    const csr = openssl.request('ec -pkeyopt ec_paramgen_curve:P-256');
    const chain = await signCertificate(securePort, secureCall(roots, { token }, SERVER), csr);
    return startEnvoy({
      adsPort: securePort,
      delta: side === 0,
      tls: { certificate: chain[0]!, key: openssl.read('request.key'), roots, name: SERVER },
      node: {
        id: `sidecar~10.244.1.${side + 1}~client-${side}.shop~shop.svc.cluster.local`,
        metadata: { NAMESPACE: 'shop', INTERCEPTION_MODE: 'NONE', LABELS: { side: `${side}` } },
      },
    });
  };

  /** In every second round in the opposite order. */
  const apply = async (round: number): Promise<void> => {
    const objects = SHOPS.flatMap((shop) => objectsOf(shop, round, port, backend.port));
    const text = [...sidecars(port), ...objects].map((each) => JSON.stringify(each));
    const names = text.map((_, i) => `${i}.json`);
    for (const [i, each] of text.entries()) await writeFile(join(directory, names[i]!), each);
    const resources = round % 2 === 0 ? names : names.reverse();
    const kustomization = { resources, sortOptions: { order: 'fifo' } };
    await writeFile(join(directory, 'kustomization.yaml'), JSON.stringify(kustomization));
    await cluster.api.kubectl('apply', '-k', directory);
  };

  test('are in force together, in any order, without a request that is lost', async () => {
    await apply(0);
    for (const [side, replica] of replicas.entries()) envoys.push(await envoyOf(replica, side));
    await Promise.all(envoys.map((envoy) => envoy.ready()));
    const clients = SIDES.flatMap((address) =>
      SHOPS.map((shop) => startSteadyClient(port, hostOf(shop), stopping.signal, address, PAUSE_MS)),
    );
    await Promise.all(clients.map((client) => client.until('200 /round-0')));
    for (let round = 1; round <= rounds; round++) {
      await apply(round);
      await Promise.all(clients.map((client) => client.until(`200 /round-${round}`)));
    }
    const answers = await Promise.all(clients.map((client) => client.stop()));
    const [first = [], ...others] = answers.map((each) => each.slice(each.indexOf('200 /round-0')));
    expect(first).toEqual(Array.from({ length: rounds + 1 }, (_, round) => `200 /round-${round}`));
    for (const other of others) expect(other).toEqual(first);
  }, 300_000);
}

const hostOf = (shop: string): string => `${shop}.example`;

/**
 * Requests to a shop are delegated to another object, and that sends them to a subset of a host of the round: of the
 * former round, nothing is left.
 */
function objectsOf(shop: string, round: number, port: number, backend: number): object[] {
  const [name, host, target] = [`${shop}-target`, hostOf(shop), `${shop}.round-${round}.example`];
  const entry = {
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    ports: [{ number: port, name: 'http', protocol: 'HTTP' }],
    endpoints: [{ address: '127.0.0.1', ports: { http: backend }, labels: { version: 'v1' } }],
  };
  const destination = { host: target, subset: `round-${round}` };
  return [
    object('ServiceEntry', shop, { ...entry, hosts: [host] }),
    object('ServiceEntry', name, { ...entry, hosts: [target] }),
    object('DestinationRule', name, {
      host: target,
      subsets: [{ name: `round-${round}`, labels: { version: 'v1' } }],
    }),
    object('VirtualService', shop, {
      hosts: [host],
      http: [{ delegate: { name }, headers: { request: { set: { round: `${round}` } } } }],
    }),
    object('VirtualService', name, {
      http: [{ rewrite: { uri: `/round-${round}` }, route: [{ destination }] }],
    }),
  ];
}

/** Each Envoy listens on an address of its own. */
function sidecars(port: number): object[] {
  return SIDES.map((bind, side) =>
    object('Sidecar', `side-${side}`, {
      workloadSelector: { labels: { side: `${side}` } },
      egress: [{ port: { number: port, protocol: 'HTTP', name: 'http' }, bind, captureMode: 'NONE', hosts: ['./*'] }],
    }),
  );
}
