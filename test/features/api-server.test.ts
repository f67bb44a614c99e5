import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { writeFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import type { KubernetesObject } from '../../src/api/object.ts';
import { ClusterReader } from '../../src/kube/reading/cluster-reader.ts';
import { destinationRule, meshConfig, slice, target, virtualService } from './objects.ts';
import { get, Program } from './program.ts';
import type { Proxy } from './proxy.ts';
import { clusterOf, RATINGS, ratings, REVIEWS, reviews, rule, split, splitRoutes } from './shop.ts';
import { Cluster, Directory, pathOf } from './sources.ts';

const MINUTES = 60_000;

describe.each([
  ['delta', true],
  ['state of the world', false],
])('while the API server makes trouble, over %s', (_, delta) => {
  let cluster: Cluster;
  let program: Program;
  let proxy: Proxy;

  async function serve(...objects: readonly KubernetesObject[]): Promise<void> {
    cluster = await Cluster.create();
    await cluster.apply(...objects);
    program = await cluster.start();
    proxy = await program.connect(delta);
  }

  const ready = async (): Promise<number> => (await get(program.serving.ports.health, '/ready')).status;

  /** How often each kind has failed, at least. */
  async function failures(): Promise<number> {
    const { body } = await get(program.serving.ports.monitoring, '/metrics');
    const counts = [...body.matchAll(/^fairlead_kind_errors_total\{.*\} (\d+)$/gm)].map(([, count]) => Number(count));
    return Math.min(...counts);
  }

  test('a list after 410 loses neither a change nor a delete, and sends nothing else', async () => {
    await serve(...reviews, ...ratings, rule, split(80, 20));
    cluster.loseEvents();
    await cluster.delete(...ratings);
    await cluster.apply(split(50, 50), slice('reviews', [target('reviews-2', '10.1.0.2')]));
    await program.settled();
    expect(proxy.takeChanges()).toEqual({});

    cluster.server.cluster.compact();
    cluster.endWatches();
    const sent = await program.sent(proxy, (p) => {
      expect(Object.keys(p.routes('80'))).toEqual([REVIEWS]);
      expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(50, 50));
      expect(p.endpoints()[clusterOf('reviews', 'v1')]).toEqual([]);
      expect(p.clusters()).not.toContain(clusterOf('ratings'));
    });
    expect(sent['cds']).toEqual([`-${clusterOf('ratings')}`]);
    // Each kind is listed on its own: the endpoints may go before their Service.
    const kept = sent['eds']?.filter((change) => !change.includes('ratings'));
    expect(kept).toEqual([clusterOf(), clusterOf('reviews', 'v1')].map((name) => `~${name}`).sort());
    expect(new Set(sent['rds'])).toEqual(new Set(['~80']));
    expect(sent['lds']).toBeUndefined();
  });

  test('what is listed again unchanged is not sent', async () => {
    await serve(...reviews, ...ratings, rule, split(80, 20));
    cluster.server.cluster.compact();
    cluster.endWatches();
    await cluster.apply(split(50, 50));
    const sent = await program.sent(proxy, (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(50, 50)));
    expect(sent).toEqual({ rds: ['~80'] });
  });

  test('an object that was deleted and created anew while nobody looked is a younger one', async () => {
    const at = (minute: number, object: ReturnType<typeof split>) => ({
      ...object,
      metadata: { ...object.metadata, creationTimestamp: `2030-01-01T00:0${minute}:00Z` },
    });
    await serve(...reviews, rule, at(1, split(10, 90, 'first')), at(2, split(20, 80, 'second')));
    expect(proxy.routes('80')[REVIEWS]?.[0]).toEqual(splitRoutes(10, 90)[0]);
    const uid = program.object('VirtualService', 'shop', 'first')?.metadata.uid;

    cluster.loseEvents();
    cluster.recreate(at(3, split(10, 90, 'first')));
    cluster.server.cluster.compact();
    cluster.endWatches();
    const sent = await program.sent(proxy, (p) => expect(p.routes('80')[REVIEWS]?.[0]).toEqual(splitRoutes(20, 80)[0]));
    expect(sent).toEqual({ rds: ['~80'] });
    expect(program.object('VirtualService', 'shop', 'first')?.metadata.uid).not.toBe(uid);
  });

  test('a watch that dies silently is opened again', async () => {
    await serve(...reviews, rule, split(80, 20));
    cluster.loseEvents();
    await cluster.apply(split(50, 50));
    const lists = cluster.lists();
    program.clock.skip(3 * MINUTES);
    const sent = await program.sent(proxy, (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(50, 50)));
    expect(sent).toEqual({ rds: ['~80'] });
    expect(cluster.lists()).toBe(lists);
  });

  test('a line that arrives broken is asked for again, and nothing is listed', async () => {
    await serve(...reviews, rule, split(80, 20));
    const lists = cluster.lists();
    for (const watch of cluster.server.cluster.watches()) watch.corrupt('#');
    await cluster.apply(split(50, 50));
    const sent = await program.sent(proxy, (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(50, 50)));
    expect(sent).toEqual({ rds: ['~80'] });
    expect(cluster.lists()).toBe(lists);
  });

  test('a kind that is not installed is an empty one, said once, and read when it appears', async () => {
    cluster = await Cluster.create();
    const path = pathOf(rule);
    cluster.server.cluster.uninstall(path);
    await cluster.apply(...reviews, split(80, 20));
    program = await cluster.start();
    proxy = await program.connect(delta);
    expect(proxy.clusters()).toEqual([clusterOf()]);
    expect(proxy.routes('80')[REVIEWS]).toEqual(['/ -> BlackHoleCluster 80, BlackHoleCluster 20']);

    program.clock.skip(MINUTES);
    cluster.server.cluster.install(path, 'DestinationRule');
    await cluster.apply(rule);
    program.clock.skip(MINUTES);
    await program.sent(proxy, (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20)));
    expect(program.log.filter(({ msg }) => msg.includes('not installed'))).toHaveLength(1);
    expect(await program.logged('now installed')).toMatchObject({ kind: 'DestinationRule' });
  });

  test('nothing is served before the first answer, and everything through later outages', async () => {
    cluster = await Cluster.create();
    await cluster.apply(...reviews, rule, split(80, 20));
    await cluster.server.stop();
    program = await cluster.start();
    await program.logged('retrying');
    expect(await ready()).toBe(503);
    expect((await get(program.serving.ports.health, '/healthz')).status).toBe(200);
    await expect(program.refusal(delta)).resolves.toMatchObject({ code: 14 });

    await cluster.server.start();
    program.clock.skip(MINUTES);
    proxy = await program.connect(delta);
    expect(await ready()).toBe(200);

    await cluster.server.stop();
    await cluster.apply(...ratings);
    program.clock.skip(MINUTES);
    expect(await ready()).toBe(200);
    const late = await program.connect(delta);
    expect(late.routes('80')).toEqual({ [REVIEWS]: splitRoutes(80, 20) });

    await cluster.server.start();
    program.clock.skip(MINUTES);
    await program.sent(late, (p) => expect(Object.keys(p.routes('80'))).toContain(RATINGS));
    expect(await ready()).toBe(200);
    // Once for each of two outages.
    expect(program.log.filter(({ msg }) => msg.includes('retrying')).length).toBeLessThanOrEqual(2);
  });

  test('what changed together during an outage is seen together', async () => {
    await serve(...reviews, rule, split(80, 20));
    await program.settled();
    await cluster.server.stop();
    // Each kind has tried many times, and waits for seconds.
    while ((await failures()) < 6) program.clock.skip(10_000);
    const subsets = ['next', 'stable'].map((name, i) => ({ name, labels: { version: `v${i + 1}` } }));
    const route = [{ destination: { host: 'reviews', subset: 'next' } }];
    await cluster.apply(
      ...ratings,
      virtualService('reviews', { hosts: ['reviews'], http: [{ route }] }),
      destinationRule('reviews', { host: 'reviews', subsets }),
    );
    await program.settled();
    const seen = program.seen(() => {
      const kinds = [
        ['Service', 'ratings'],
        ['VirtualService', 'reviews'],
        ['DestinationRule', 'reviews'],
      ] as const;
      // Without status, which is written later.
      const specs = kinds.map(([kind, name]) => ({ ...program.object(kind, 'shop', name), metadata: {}, status: {} }));
      return JSON.stringify(specs);
    });
    await cluster.server.start();
    const { requests } = cluster.server.cluster;
    requests.length = 0;
    // The first kind that reaches the server wakes the others. From then on time is real, of which these have a few
    // seconds.
    while (!requests.some(({ query }) => query['watch'] !== undefined || query['limit'] !== undefined)) {
      program.clock.skip(20);
      await setImmediate();
    }
    await program.sent(proxy, (p) => {
      expect(p.routes('80')[REVIEWS]).toEqual([`/ -> ${clusterOf('reviews', 'next')}`]);
      expect(Object.keys(p.routes('80'))).toContain(RATINGS);
    });
    // In one commit.
    expect(seen).toHaveLength(2);
  });

  test('a token that has run out is read again, and what is served stays', async () => {
    cluster = await Cluster.create();
    cluster.server.tokens = new Set(['first']);
    const login = (token: string) => writeFile(cluster.kubeconfig, cluster.server.kubeConfig(token).exportConfig());
    await login('first');
    await cluster.apply(...reviews, rule, split(80, 20));
    program = await cluster.start();
    proxy = await program.connect(delta);

    cluster.server.tokens = new Set(['second']);
    cluster.endWatches();
    await program.logged('retrying');
    await cluster.apply(split(50, 50));
    await program.settled();
    expect(proxy.takeChanges()).toEqual({});
    expect(await ready()).toBe(200);

    await login('second');
    program.clock.skip(MINUTES);
    const sent = await program.sent(proxy, (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(50, 50)));
    expect(sent).toEqual({ rds: ['~80'] });
  });
});

test('a start that fails leaves no connection behind', async () => {
  const cluster = await Cluster.create();
  const other = await (await Directory.create()).start();
  const taken = `127.0.0.1:${other.serving.ports.health}`;
  await expect(cluster.start({ monitoringAddress: taken })).rejects.toMatchObject({ code: 'LISTEN' });
  await cluster.server.idle();
});

test('a start that is held up names all kinds that it waits for, and why', async () => {
  const cluster = await Cluster.create();
  const { denied } = cluster.server.cluster;
  denied.add(pathOf({ apiVersion: 'v1', kind: 'Pod' }));
  denied.add(pathOf({ apiVersion: 'networking.istio.io/v1', kind: 'Sidecar' }));
  const program = await cluster.start();
  const ready = (): Promise<{ readonly status: number; readonly body: string }> =>
    get(program.serving.ports.health, '/ready');
  await expect
    .poll(async () => (await ready()).body)
    .toBe('not ready, waiting for Pod (403 Forbidden), Sidecar (403 Forbidden), the first commit\n');
  program.clock.skip(1_000);
  expect(await program.logged('denying access to all of these')).toMatchObject({ who: ['Pod', 'Sidecar'] });
  program.clock.skip(30_000);
  expect(await program.logged('Not ready: waiting for kinds')).toMatchObject({
    kinds: ['Pod (403 Forbidden)', 'Sidecar (403 Forbidden)'],
  });
  denied.clear();
  program.clock.skip(10_000);
  await program.logged('Ready');
  expect((await ready()).body).toBe('ready\n');
});

test('a program whose operator ends by a bug serves no longer, and says why: a new one follows objects again', async () => {
  const cluster = await Cluster.create();
  await cluster.apply(...reviews, rule, split(80, 20));
  const bug = Promise.withResolvers<never>();
  const { run } = ClusterReader.prototype;
  const running = vi.spyOn(ClusterReader.prototype, 'run').mockImplementationOnce(function (
    this: ClusterReader,
    options,
  ) {
    return Promise.race([run.call(this, options), bug.promise]);
  });
  onTestFinished(() => running.mockRestore());
  const program = await Program.start({ kubeconfig: cluster.kubeconfig }, { onEnd: () => {} });
  const proxy = await program.connect(true);
  onTestFinished(() => proxy.close());
  bug.reject(new Error('bug'));
  await expect(program.serving.ended).rejects.toThrow('objects are not followed any more');
  expect(await program.logged('What talks to the API server has ended')).toMatchObject({
    level: 'error',
    err: { message: 'bug' },
  });
});

test('a kind that is not read is said when the cluster has objects of it', async () => {
  const cluster = await Cluster.create();
  const telemetries = '/apis/telemetry.istio.io/v1/telemetries';
  cluster.server.cluster.install(telemetries, 'Telemetry');
  cluster.server.cluster.apply(telemetries, { metadata: { name: 'logs', namespace: 'shop' } });
  const program = await cluster.start();
  expect(await program.logged('Objects of a kind that Fairlead does not read')).toMatchObject({
    level: 'warn',
    kind: 'Telemetry',
    consequence: expect.stringContaining('access logs'),
  });
});

test.each([
  ['off', ['ConfigMap/istio-system/istio', 'VirtualService/shop/reviews']],
  ['on', ['ConfigMap/istio-system/istio']],
])('problems are logged of objects that get no status: with statusWrites=%s', async (statusWrites, objects) => {
  const cluster = await Cluster.create();
  await cluster.apply(meshConfig('connectTimeout: soon'), ...reviews, split(80, 20));
  const program = await cluster.start({ statusWrites });
  await program.logged('Ready');
  const said = program.log.flatMap(({ msg, object }) => (msg === 'Object has a problem' ? [object] : []));
  expect([...new Set(said)].sort()).toEqual(objects);
});
