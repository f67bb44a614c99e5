import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import type { EtcdConnection } from '../../src/etcd/connection.ts';
import { afterSuite } from '../../src/testing/on-end.ts';
import { CiliumWriter } from '../clustermesh/cilium-writer.ts';
import { configurationOf } from '../clustermesh/configuration.ts';
import { grantAsCilium } from '../clustermesh/rights.ts';
import { destinationRule, object, sidecar, virtualService } from '../features/objects.ts';
import { get, type Program } from '../features/program.ts';
import { securePort } from '../features/secure-cluster.ts';
import { Directory } from '../features/sources.ts';
import { type RunningEnvoy, startEnvoy } from '../peers/envoy.ts';
import { type RunningEtcd, startEtcd } from '../peers/etcd.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { application } from './application.ts';
import { type Networks, podAddress, startNetworks, whyNoNetworks } from './networks.ts';
import { type SteadyClient, startSteadyClient } from './traffic.ts';

const reason = whyNoNetworks();
const title = `a ClusterMesh${reason === undefined ? '' : ` (${reason})`}`;
const PATIENCE = 60_000;
const PORT = 8000;
const POD_PORT = 8080;

withPeers(['envoy', 'etcd'], title, () => {
  const onEnd = afterSuite();
  let [own, networks, etcd] = [] as unknown as [Directory, Networks, RunningEtcd];
  let [admin, east, program, envoy] = [] as unknown as [EtcdConnection, CiliumWriter, Program, RunningEnvoy];
  printLogOnFailure(() => program && { log: () => program.log.map((line) => JSON.stringify(line)).join('\n') });

  const prepare = (root: EtcdConnection): Promise<void> => grantAsCilium(root, 'east');
  /** A Service here. */
  const service = (annotations: Readonly<Record<string, string>> = {}): Promise<void> => {
    const made = object('v1', 'Service', 'a', {
      spec: { clusterIP: '10.0.0.1', ports: [{ name: 'http', port: PORT }] },
    });
    return own.apply({ ...made, metadata: { ...made.metadata, annotations } });
  };
  /** Its back ends here, by number. */
  const here = (...numbers: readonly number[]): Promise<void> => {
    const made = object('discovery.k8s.io/v1', 'EndpointSlice', 'a-1', {
      addressType: 'IPv4',
      ports: [{ name: 'http', port: POD_PORT, protocol: 'TCP' }],
      endpoints: numbers.map((number) => ({ addresses: [podAddress(number)], conditions: { ready: true } })),
    });
    return own.apply({ ...made, metadata: { ...made.metadata, labels: { 'kubernetes.io/service-name': 'a' } } });
  };
  /** And in the other cluster. */
  const there = (...numbers: readonly number[]): Promise<void> =>
    east.service({
      ...{ namespace: 'shop', name: 'a' },
      backends: Object.fromEntries(numbers.map((number) => [podAddress(number), POD_PORT])),
    });

  beforeAll(async () => {
    if (reason !== undefined) return;
    [networks, etcd, own] = await Promise.all([startNetworks(), startEtcd({ prepare }), Directory.create(onEnd)]);
    onEnd(() => networks.stop());
    onEnd(() => etcd.stop());
    admin = await etcd.connect('admin-east');
    east = new CiliumWriter(() => admin, 'east', 2);
    await east.begin();
    await there(2);
    await east.finish();
    const { admin: address, controlPlane } = networks.one.place;
    await service();
    await here(1);
    await own.apply(
      sidecar('client', {
        egress: [
          {
            port: { number: PORT, name: 'http', protocol: 'HTTP' },
            bind: address,
            captureMode: 'NONE',
            hosts: ['./*'],
          },
        ],
      }),
    );
    const { ca, settings } = await securePort(onEnd);
    const configuration = await temporaryDirectory(onEnd);
    await writeFile(join(configuration, 'east'), configurationOf(await etcd.access('remote')));
    program = await own.start({
      ...settings,
      ...{ clustermeshConfig: configuration, clustermeshName: 'own', clustermeshId: '1' },
      secureGrpcAddress: `${controlPlane}:0`,
    });
    await program.logged('Ready');
    await program.logged('Signing certificates');
    envoy = await startEnvoy({
      adsPort: program.serving.ports.secure!,
      delta: true,
      tls: await ca.certify('shop', 'client'),
      place: networks.one.place,
      node: {
        id: `sidecar~${podAddress(9)}~client.shop~shop.svc.cluster.local`,
        metadata: { NAMESPACE: 'shop', SERVICE_ACCOUNT: 'client', INTERCEPTION_MODE: 'NONE' },
      },
      extraBootstrap: {
        staticResources: {
          listeners: [1, 2, 3].map((number) => application(`pod ${number}`, POD_PORT, podAddress(number))),
        },
      },
    });
    onEnd(() => envoy.stop());
    await envoy.ready();
  }, 2 * PATIENCE);

  const check = (name: string, body: (signal: AbortSignal) => Promise<void>): void =>
    test.skipIf(reason !== undefined)(name, ({ signal }) => body(signal), PATIENCE);

  /** All that is answered while something happens: nothing else may be. */
  async function answers(signal: AbortSignal, during: (asking: SteadyClient) => Promise<void>) {
    const asking = startSteadyClient(PORT, 'a.shop', signal, networks.one.place.admin);
    await asking.more(1);
    await during(asking);
    await asking.more(200);
    return [...new Set(await asking.stop())].sort();
  }

  const report = async (): Promise<Readonly<Record<string, unknown>> | undefined> =>
    (JSON.parse((await get(program.serving.ports.health, '/debug/clusterz')).body) as { id: string }[]).find(
      ({ id }) => id === 'cilium:east',
    );

  check('a Service that is annotated gets the back ends of the other cluster', async (signal) => {
    const all = await answers(signal, async (asking) => {
      await asking.more(50);
      await service({ 'service.cilium.io/global': 'true' });
      await asking.until('200 pod 2');
    });
    expect(all).toEqual(['200 pod 1', '200 pod 2']);
    expect(await report()).toMatchObject({
      ...{ kind: 'ClusterMesh', syncStatus: 'synced', phase: 'synced', objects: { services: 1 } },
      clusterMesh: { connected: true, config: { id: 2 }, failures: 0 },
    });
  });

  check('back ends there come and go without a lost request', async (signal) => {
    const all = await answers(signal, async (asking) => {
      await there(3);
      await asking.until('200 pod 3');
      await here();
      await asking.more(50);
      await there(2, 3);
      await asking.until('200 pod 2');
      await there(2);
      await here(1);
      await asking.until('200 pod 1');
    });
    expect(all).toEqual(['200 pod 1', '200 pod 2', '200 pod 3']);
  });

  check('affinity flips', async (signal) => {
    const affinity = (value: string): Promise<void> =>
      service({ 'service.cilium.io/global': 'true', 'service.cilium.io/affinity': value });
    await affinity('local');
    await expect.poll(() => ranks(envoy)).toEqual({ [`${podAddress(1)}:8080`]: 0, [`${podAddress(2)}:8080`]: 1 });
    expect(await answers(signal, () => Promise.resolve())).toEqual(['200 pod 1']);
    await affinity('remote');
    await expect.poll(() => ranks(envoy)).toEqual({ [`${podAddress(1)}:8080`]: 1, [`${podAddress(2)}:8080`]: 0 });
    expect(await answers(signal, () => Promise.resolve())).toEqual(['200 pod 2']);
    // The others once none is left.
    expect(
      await answers(signal, async (asking) => {
        await there();
        await asking.until('200 pod 1');
      }),
    ).toEqual(['200 pod 1', '200 pod 2']);
    await there(2);
  });

  check('what is known of its Pods there chooses the back ends of a subset', async (signal) => {
    await east.identity(7, { 'k8s:version': 'v2' });
    await east.pod(podAddress(3), 7, 'shop', 'a-3');
    await there(2, 3);
    const rule = destinationRule('a', { host: 'a', subsets: [{ name: 'v2', labels: { version: 'v2' } }] });
    const route = virtualService('a', {
      hosts: ['a'],
      http: [{ route: [{ destination: { host: 'a', subset: 'v2' } }] }],
    });
    const all = await answers(signal, async (asking) => {
      await own.apply(rule);
      await own.apply(route);
      await asking.until('200 pod 3');
    });
    expect(all).toContain('200 pod 3');
    expect(await answers(signal, () => Promise.resolve())).toEqual(['200 pod 3']);
    // It moves with the address of the Pod.
    await east.remove('ip', podAddress(3));
    await east.pod(podAddress(2), 7, 'shop', 'a-3');
    await answers(signal, (asking) => asking.until('200 pod 2'));
    expect(await answers(signal, () => Promise.resolve())).toEqual(['200 pod 2']);
    await own.delete(route, rule);
    await there(2);
  });

  check('an etcd that is away, and comes back empty, takes nothing with it', async (signal) => {
    await service({ 'service.cilium.io/global': 'true', 'service.cilium.io/affinity': 'remote' });
    await expect.poll(() => ranks(envoy)).toMatchObject({ [`${podAddress(2)}:8080`]: 0 });
    const all = await answers(signal, async (asking) => {
      await etcd.kill();
      await expect.poll(async () => (await report())?.['trouble'], { timeout: PATIENCE / 2 }).toBeDefined();
      await asking.more(100);
      await etcd.start({ wiped: true, token: 'another', prepare });
      admin = await etcd.connect('admin-east');
      await east.begin();
      await asking.more(100);
      await there(3);
      await east.finish();
      await asking.until('200 pod 3');
    });
    expect(all).toEqual(['200 pod 2', '200 pod 3']);
  });
});

/** The priority of each endpoint of the service, as the Envoy has it. */
async function ranks(envoy: RunningEnvoy): Promise<Readonly<Record<string, number>>> {
  const found = [
    ...(await envoy.admin('/clusters')).matchAll(/^outbound\|8000\|\|a\.\S+?::([\d.]+:\d+)::priority::(\d+)$/gm),
  ];
  return Object.fromEntries(found.map(([, address, priority]) => [address, Number(priority)]));
}
