import { beforeAll, expect, test } from 'vitest';
import { afterSuite } from '../../src/testing/on-end.ts';
import { virtualService } from '../features/objects.ts';
import { get } from '../features/program.ts';
import type { RunningEnvoy } from '../peers/envoy.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { whyNoNetworks } from './networks.ts';
import { TwoNetworks, preferNear, preferNothing } from './two-networks.ts';

const reason = whyNoNetworks();
const title = `clusters on two networks${reason === undefined ? '' : ` (${reason})`}`;
const PATIENCE = 60_000;

withPeers(['envoy', 'etcd', 'kube-apiserver', 'kubectl'], title, () => {
  const onEnd = afterSuite();
  let mesh: TwoNetworks;
  let client: RunningEnvoy;
  let gateway: RunningEnvoy;
  let one: RunningEnvoy;
  const [direct, throughGateway] = ['10.9.0.1:8080', '10.99.0.2:15443'];
  printLogOnFailure(() => mesh && { log: () => mesh.program.log.map((line) => JSON.stringify(line)).join('\n') });

  beforeAll(async () => {
    if (reason !== undefined) return;
    mesh = await TwoNetworks.start(onEnd);
    [one, gateway] = await Promise.all([
      mesh.server('own', 'one', 1),
      mesh.gateway(),
      // It has the address of the other one.
      mesh.server('west', 'two', 1),
      mesh.server('west', 'three', 2),
    ]);
    await mesh.endpoints('own', { one: 1 });
    await mesh.endpoints('west', { two: 1 });
    client = await mesh.client();
  }, 2 * PATIENCE);

  const check = (name: string, body: (signal: AbortSignal) => Promise<void>): void =>
    test.skipIf(reason !== undefined)(name, ({ signal }) => body(signal), PATIENCE);

  /** What the service `a` answers while something happens: all that happens, and nothing else. */
  async function answers(signal: AbortSignal, during: (asking: ReturnType<TwoNetworks['ask']>) => Promise<void>) {
    const asking = mesh.ask(signal);
    await asking.more(1);
    await during(asking);
    await asking.more(200);
    return [...new Set(await asking.stop())].sort();
  }

  const has = (envoy: RunningEnvoy, cluster: string, expected: Readonly<Record<string, number>>): Promise<void> =>
    expect.poll(() => endpointsOf(envoy, cluster)).toEqual(expected);

  check('another cluster comes', async (signal) => {
    const all = await answers(signal, async (asking) => {
      await mesh.nameWest('reader');
      await asking.until('200 two');
    });
    expect(all).toEqual(['200 one', '200 two']);
  });

  check('equal addresses of two networks are two endpoints, and each stays in its own', async () => {
    expect(await endpointsOf(client, A)).toEqual({ [direct]: 0, [throughGateway]: 0 });
    expect(await endpointsOf(gateway, SNI_OF_A)).toEqual({ [direct]: 0 });
  });

  check('its account changes', async (signal) => {
    const all = await answers(signal, async (asking) => {
      await mesh.nameWest('other');
      await mesh.apis.west.kubectl('delete', 'clusterrolebinding', 'reader');
      await mesh.endpoints('west', { two: 1, three: 2 });
      await asking.until('200 three');
    });
    expect(all).toEqual(['200 one', '200 three', '200 two']);
  });

  check('its API server cannot be reached for a while', async (signal) => {
    await expect.poll(troubles).toEqual({});
    const all = await answers(signal, async (asking) => {
      mesh.reach(false);
      await expect.poll(troubles).toHaveProperty('west');
      await asking.until('200 two');
      await asking.until('200 three');
      await mesh.endpoints('west', { two: 1 });
      await asking.more(200);
      await has(gateway, SNI_OF_A, { [direct]: 0, '10.9.0.2:8080': 0 });
      mesh.reach(true);
      await has(gateway, SNI_OF_A, { [direct]: 0 });
      await expect.poll(troubles).toEqual({});
    });
    expect(all).toEqual(['200 one', '200 three', '200 two']);
  });

  check('what is near is preferred, and replaced by what is behind the gateway when it fails', async (signal) => {
    const retries = {
      attempts: 3,
      retryOn: 'connect-failure,refused-stream,unavailable,cancelled,reset',
      retryRemoteLocalities: true,
    };
    const route = [{ destination: { host: 'a.shop.svc.cluster.local' } }];
    const retried = virtualService('a', { hosts: ['a.shop.svc.cluster.local'], http: [{ route, retries }] });
    expect(
      await answers(signal, async () => {
        await mesh.apply(preferNear, retried);
        await has(client, A, { [direct]: 0, [throughGateway]: 1 });
      }),
    ).toEqual(['200 one', '200 two']);
    expect(await answers(signal, async () => {})).toEqual(['200 one']);
    expect(
      await answers(signal, async (asking) => {
        await one.stop();
        await asking.until('200 two');
      }),
    ).toEqual(['200 one', '200 two']);
    expect(
      await answers(signal, async (asking) => {
        one = await mesh.server('own', 'one', 1);
        await asking.until('200 one');
      }),
    ).toEqual(['200 one', '200 two']);
  });

  check('it goes with its Secret', async (signal) => {
    const { own } = mesh.apis;
    await mesh.apply(preferNothing);
    await has(client, A, { [direct]: 0, [throughGateway]: 0 });
    const all = await answers(signal, async (asking) => {
      await asking.until('200 two');
      await own.kubectl('delete', 'secret', 'west', '-n', 'istio-system');
      await has(client, A, { [direct]: 0 });
    });
    expect(all).toEqual(['200 one', '200 two']);
    expect(await answers(signal, async () => {})).toEqual(['200 one']);
  });

  /** What keeps clusters from being read, by cluster. */
  async function troubles(): Promise<Readonly<Record<string, string>>> {
    const { body } = await get(mesh.program.serving.ports.monitoring, '/debug/clusterz');
    const found = JSON.parse(body) as { readonly id: string; readonly trouble?: { readonly reason: string } }[];
    return Object.fromEntries(found.flatMap(({ id, trouble }) => (trouble ? [[id, trouble.reason]] : [])));
  }
});

const A = 'outbound|8000||a.shop.svc.cluster.local';
const SNI_OF_A = 'outbound_.8000_._.a.shop.svc.cluster.local';

interface Locality {
  readonly priority?: number;
  readonly lb_endpoints?: readonly {
    readonly endpoint: { readonly address: { readonly socket_address: { address: string; port_value: number } } };
  }[];
}

/** Priorities of a cluster's endpoints, by address. */
async function endpointsOf(envoy: RunningEnvoy, cluster: string): Promise<Readonly<Record<string, number>>> {
  const { endpoints } = await envoy.configDump();
  const found = endpoints.find(({ name }) => name === cluster)?.resource['endpoints'] ?? [];
  return Object.fromEntries(
    (found as readonly Locality[]).flatMap(({ priority = 0, lb_endpoints = [] }) =>
      lb_endpoints.map(({ endpoint }) => {
        const { address, port_value } = endpoint.address.socket_address;
        return [`${address}:${port_value}`, priority];
      }),
    ),
  );
}
