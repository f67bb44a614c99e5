import { status as Status } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import { field, nodeField } from '../../test/harness/raw-ads.ts';
import { testProtos } from '../../test/harness/mesh.ts';
import { XdsClient } from '../../test/conformance/xds-client.ts';
import { serviceEntry } from '../../test/features/objects.ts';
import type { KubernetesObject } from '../api/object.ts';
import { CDS, LDS } from '../../test/features/proxy.ts';
import { SkippingClock } from '../../test/features/skipping-clock.ts';
import { LINGER_MS } from './departures.ts';
import { type Engine, type EngineOptions, startEngine } from './engine.ts';
import { defaultMeshOptions } from '../mesh/inputs.ts';

/** Stands in for a bug. */
const bug = (): never => {
  throw new Error('oh');
};

async function start(options: Partial<EngineOptions> = {}): Promise<Engine> {
  const end = new AbortController();
  const engine = await startEngine({
    mesh: defaultMeshOptions,
    protos: testProtos(),
    plaintext: { host: '127.0.0.1', port: 0 },
    batch: { quiet: 1, max: 5 },
    log: { info: () => {}, warn: () => {} },
    rejected: () => {},
    notAdmitted: () => {},
    heapBytes: 1 << 30,
    adsTimes: { tickMs: 10 },
    signal: end.signal,
    ...options,
  });
  onTestFinished(async () => {
    end.abort();
    await engine.ads.close();
  });
  await engine.open();
  return engine;
}

/** A sidecar that asks for clusters. */
function connect(engine: Engine, metadata: Readonly<Record<string, string>> = {}): XdsClient {
  const client = new XdsClient(engine.ads.port!, true);
  onTestFinished(() => client.close());
  const id = 'sidecar~10.0.0.1~a.shop~shop.svc.cluster.local';
  client.sendBytes(Buffer.concat([nodeField(id, metadata), field(2, CDS)]));
  return client;
}

async function acknowledged(client: XdsClient): Promise<XdsClient> {
  const { nonce } = await client.next(CDS);
  client.send({ typeUrl: CDS, nonce });
  return client;
}

/** Its requests are still answered. */
async function goesOn(client: XdsClient): Promise<void> {
  client.send({ typeUrl: LDS });
  expect((await client.next(LDS)).resources.size).toBeGreaterThan(0);
}

/** What failed in the program itself, when something did. No stream is ended for it. */
async function contained({ mesh, ads }: Engine): Promise<readonly string[]> {
  const failed = (): string[] => [...mesh.graph.failures.keys()];
  await expect.poll(failed).not.toEqual([]);
  expect(ads.counts().failures).toBe(0);
  return failed();
}

test('whoever is told of a rejection and throws harms no stream', async () => {
  const engine = await start({ rejected: bug });
  const client = connect(engine);
  const { nonce } = await client.next(CDS);
  client.send({ typeUrl: CDS, nonce, error: 'no' });
  expect(await contained(engine)).toEqual(['program rejections']);
  await goesOn(client);
});

test('whoever is told of a proxy that is not admitted and throws changes nothing in the answer', async () => {
  const engine = await start({ notAdmitted: bug, heapBytes: 1 });
  let refused;
  for (let i = 1; refused === undefined; i++) {
    const client = connect(engine, { IDLE_TIMEOUT: `${i}s` });
    refused = await Promise.race([client.closed, client.next(CDS).then(() => undefined)]);
  }
  expect(refused).toMatchObject({ code: Status.RESOURCE_EXHAUSTED });
  expect(await contained(engine)).toEqual(['program refusals']);
});

test('whoever is told how long a change took and throws keeps no later change from proxies', async () => {
  const engine = await start();
  engine.onConverged(bug);
  const client = await acknowledged(connect(engine));
  for (const host of ['a.example.com', 'b.example.com']) {
    const { ServiceEntry } = engine.mesh.inputs.objects;
    engine.committer.write(
      ServiceEntry.write(
        `Kubernetes/shop/${host}`,
        serviceEntry(host, {
          hosts: [host],
          resolution: 'DNS',
          ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
        }),
      ),
    );
    const { resources, nonce } = await client.next(CDS);
    expect([...resources.keys()]).toEqual([`outbound|80||${host}`]);
    client.send({ typeUrl: CDS, nonce });
  }
  expect(await contained(engine)).toEqual(['program convergence']);
});

test('the first of its kind is sent all of its clusters at once, though they are made in several commits', async () => {
  const engine = await start();
  const hosts = Array.from({ length: 600 }, (_, i) => `host-${i}.example.com`);
  const { ServiceEntry } = engine.mesh.inputs.objects;
  const ports = [{ number: 80, name: 'http', protocol: 'HTTP' }];
  for (const host of hosts)
    engine.committer.write(
      ServiceEntry.write(
        `Kubernetes/shop/${host}`,
        serviceEntry(host, { hosts: [host], resolution: 'DNS', ports, exportTo: ['*'] }),
      ),
    );
  await engine.committer.settled();
  const before = engine.committer.stats.commits;
  const { resources } = await connect(engine).next(CDS);
  expect(engine.committer.stats.commits - before).toBeGreaterThan(2);
  expect([...resources.keys()].filter((name) => name.startsWith('outbound|')).length).toBe(hosts.length);
  expect([...engine.mesh.inputs.shardsMade.entries()]).toEqual([]);
});

test('proxies that nobody vouches for have few ways to differ in what selects them', async () => {
  const rejected: string[] = [];
  const engine = await start({ notAdmitted: ({ kind }) => rejected.push(kind) });
  const { Service, Pod } = engine.mesh.inputs.objects;
  const metadata = { namespace: 'shop', name: 'a' };
  const ports = [{ name: 'web', port: 80, targetPort: 'web' }];
  const write = (object: object, input: typeof Service): void =>
    engine.committer.write(input.write('Kubernetes/shop/a', object as KubernetesObject));
  write({ apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: { app: 'a' }, ports } }, Service);
  await engine.committer.settled();
  const answer = async (number: number): Promise<string> => {
    const client = connect(engine, { NAMESPACE: 'shop', POD_PORTS: `[{"name":"web","containerPort":${number}}]` });
    return Promise.race([client.closed.then(() => 'rejected'), client.next(CDS).then(() => 'served')]);
  };
  const most = 256;
  for (let number = 1; number <= most; number++) expect(await answer(number)).toBe('served');
  expect(await answer(most)).toBe('served');
  expect(await answer(most + 1)).toBe('rejected');
  expect(rejected).toEqual(['workloads']);
  write({ apiVersion: 'v1', kind: 'Pod', metadata, status: { podIP: '10.0.0.1' } }, Pod);
  await engine.committer.settled();
  expect(await answer(most + 1)).toBe('served');
});

test('an address has few places that no object states', async () => {
  const rejected: string[] = [];
  const engine = await start({ notAdmitted: ({ kind }) => rejected.push(kind) });
  const answer = async (node: number): Promise<string> => {
    const client = connect(engine, { NAMESPACE: 'shop', NODE_NAME: `node-${node}` });
    return Promise.race([client.closed.then(() => 'rejected'), client.next(CDS).then(() => 'served')]);
  };
  // Without a Service that only uses endpoints of a node, these two are in one place: their cluster.
  const most = 256;
  for (const node of [most + 1, most + 2]) expect(await answer(node)).toBe('served');
  const local = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'shop', name: 'local' },
    spec: { clusterIP: '10.0.0.9', internalTrafficPolicy: 'Local', ports: [{ name: 'http', port: 80 }] },
  };
  const { Service, Pod } = engine.mesh.inputs.objects;
  engine.committer.write(Service.write('Kubernetes/shop/local', local as KubernetesObject));
  await engine.committer.settled();
  for (let node = 1; node < most; node++) expect(await answer(node)).toBe('served');
  expect(await answer(most - 1)).toBe('served');
  expect(await answer(most)).toBe('rejected');
  expect(rejected).toEqual(['places']);
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'shop', name: 'a' },
    spec: { nodeName: 'node-1' },
    status: { podIP: '10.0.0.1' },
  };
  engine.committer.write(Pod.write('Kubernetes/shop/a', pod as KubernetesObject));
  await engine.committer.settled();
  expect(await answer(most)).toBe('served');
  expect(
    [...engine.mesh.proxies.entries()].map(([, proxy]) => 'topology' in proxy && proxy.topology.nodeName),
  ).toContain('node-1');
});

test('a bug in what follows the end of a stream harms no other one', async () => {
  const engine = await start();
  const other = await acknowledged(connect(engine));
  const client = connect(engine);
  await client.next(CDS);
  engine.mesh.inputs.proxies.write = bug;
  client.close();
  expect(await contained(engine)).toEqual(['program departures']);
  await goesOn(other);
});

test('a bug in forgetting proxies that are gone ends no process', async () => {
  const clock = new SkippingClock();
  const engine = await start({ clock });
  const client = await acknowledged(connect(engine));
  await goesOn(client);
  client.close();
  await expect.poll(() => engine.ads.counts().streams).toBe(0);
  engine.mesh.inputs.proxies.write = bug;
  clock.skip(LINGER_MS);
  expect(await contained(engine)).toEqual(['program departures']);
});
