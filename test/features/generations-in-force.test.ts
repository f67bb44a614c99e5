import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/api/json.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { conditions } from './conditions.ts';
import { object, pod, virtualService } from './objects.ts';
import { get, type Program } from './program.ts';
import { LDS, type Proxy } from './proxy.ts';
import { clusterOf, ratings, reviews, REVIEWS, rule, split, splitRoutes } from './shop.ts';
import { later } from './skipping-clock.ts';
import { Cluster, GENERATIONS, pathOf, REPORTS } from './sources.ts';

const good = split(80, 20);
const invalid = virtualService('reviews', { hosts: ['reviews'], http: [{ route: [] }] });
const worse = virtualService('reviews', { hosts: ['reviews'], http: [{ route: [{ weight: -1 }] }] });
const poisoned = virtualService('reviews', {
  hosts: ['reviews'],
  http: [{ name: 'poison', route: [{ destination: { host: 'reviews' } }] }],
});
const acknowledged = { status: 'True', reason: 'Programmed' };
const inForce = (generation: number) => ({
  status: 'False',
  message: expect.stringMatching(new RegExp(`Generation ${generation} is in force\\.$`)) as string,
});

async function shop(...objects: readonly KubernetesObject[]): Promise<Cluster> {
  const cluster = await Cluster.create();
  await cluster.apply(...reviews, ...ratings, rule, ...objects);
  return cluster;
}

const programmed = (cluster: Cluster, object: KubernetesObject, expected: object): Promise<void> =>
  cluster.changed(() => {
    const { generation } = cluster.object(object).metadata;
    expect(conditions(cluster, object)['Programmed']).toMatchObject({ observedGeneration: generation, ...expected });
  });

const kept = (cluster: Cluster): readonly Json[] => cluster.server.cluster.objects(GENERATIONS);

const isKept = (cluster: Cluster, spec: object): Promise<void> =>
  expect.poll(() => kept(cluster), { timeout: 10_000 }).toMatchObject([{ spec }]);

const nothingKept = (cluster: Cluster): Promise<void> =>
  expect.poll(() => kept(cluster), { timeout: 10_000 }).toEqual([]);

const rejectPoison = (proxy: Proxy, saw: string[]): void => {
  proxy.rejects = ({ resources }) => {
    if (![...resources.values()].some((bytes) => Buffer.from(bytes ?? []).includes('poison'))) return undefined;
    saw.push(proxy.id);
    return 'there is poison in it';
  };
};

/** Served by one replica that has ended, after the good object became an invalid one. */
async function left(): Promise<Cluster> {
  const cluster = await shop(good);
  const program = await cluster.start();
  await program.connect(true);
  await programmed(cluster, good, acknowledged);
  await cluster.apply(invalid);
  await isKept(cluster, { newest: 2, inForce: 1, reason: 'Invalid' });
  await program.stop();
  return cluster;
}

const forge = (cluster: Cluster, spec: object, metadata: object = {}): void => {
  const { uid } = cluster.object(invalid).metadata;
  const object = { kind: 'VirtualService', name: 'reviews', uid };
  const ownerReferences = [{ apiVersion: 'networking.istio.io/v1', kind: 'VirtualService', name: 'reviews', uid }];
  cluster.server.cluster.apply(GENERATIONS, {
    apiVersion: 'fairlead.dev/v1alpha1',
    kind: 'GenerationInForce',
    metadata: { name: 'virtualservice-reviews', namespace: 'shop', ownerReferences, ...metadata },
    spec: { object, newest: 2, inForce: 1, reason: 'Invalid', former: [], ...spec },
  });
};

const formerly = (spec: unknown, generation = 1): object => ({
  former: [{ apiVersion: 'networking.istio.io/v1', generation, spec }],
});

describe.each([
  ['delta', true],
  ['state of the world', false],
])('%s', (_, delta) => {
  test('what was good before stays in force after a restart of every replica', async () => {
    const cluster = await left();
    const next = await cluster.start();
    const proxy = await next.connect(delta);
    expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
    await later(next, () => conditions(cluster, invalid)['Programmed']).toMatchObject(inForce(1));
    // The API server collects it with the object.
    const { uid } = cluster.object(invalid).metadata;
    const owner = { apiVersion: 'networking.istio.io/v1', kind: 'VirtualService', name: 'reviews', uid };
    expect(kept(cluster)).toMatchObject([
      { metadata: { namespace: 'shop', name: 'virtualservice-reviews', ownerReferences: [owner] } },
    ]);
  });

  test('what proxies reject is not tried again by a restarted replica', async () => {
    const cluster = await shop(good);
    const program = await cluster.start();
    rejectPoison(await program.connect(delta), []);
    await programmed(cluster, good, acknowledged);
    await cluster.apply(poisoned);
    const message = expect.stringMatching(
      /^Rejected by 1 proxy .*poison in it"\. Generation 1 is in force\.$/,
    ) as string;
    await programmed(cluster, poisoned, { status: 'False', reason: 'Rejected', message });
    await isKept(cluster, { newest: 2, inForce: 1, reason: 'Rejected', rejected: [{ generation: 2, proxies: 1 }] });
    await program.stop();

    const next = await cluster.start();
    const proxy = await next.connect(delta);
    expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
    const saw: string[] = [];
    rejectPoison(proxy, saw);
    await later(next, () => conditions(cluster, poisoned)['Programmed']).toMatchObject({ reason: 'Rejected', message });
    expect([saw, proxy.routes('80')[REVIEWS]]).toEqual([[], splitRoutes(80, 20)]);
    await cluster.apply(split(10, 90));
    await programmed(cluster, split(10, 90), acknowledged);
    await nothingKept(cluster);
  });
});

test('of the usual mesh nothing is kept', async () => {
  const cluster = await shop(good);
  const program = await cluster.start();
  await program.connect(true);
  await programmed(cluster, good, acknowledged);
  expect(
    cluster.server.cluster.requests.filter(({ method, path }) => method !== 'GET' && path.includes('inforce')),
  ).toEqual([]);
});

test('no proxy is served before it is known what is in force', async () => {
  const cluster = await left();
  cluster.server.cluster.broken.add(GENERATIONS);
  const next = await cluster.start();
  await next.logged('API server: unavailable');
  const isWaiting = async (): Promise<string> => (await get(next.serving.ports.health, '/ready')).body;
  await expect.poll(isWaiting).toMatch(/^not ready, waiting for GenerationInForce, the first commit\s*$/);
  const tries = (): number => cluster.server.cluster.requests.filter(({ path }) => path === GENERATIONS).length;
  const before = tries();
  await expect.poll(tries, { timeout: 15_000 }).toBeGreaterThan(before + 1);
  expect(next.serving.engine.ready()).toBe(false);
  cluster.server.cluster.broken.clear();
  const proxy = await next.connect(true);
  expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
});

describe('what is kept of an object', () => {
  test('follows it from one invalid generation to the next, and goes when it is repaired', async () => {
    const cluster = await left();
    // While nobody is there.
    await cluster.apply(worse);
    const next = await cluster.start();
    const proxy = await next.connect(true);
    expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
    next.clock.skip(60_000);
    await isKept(cluster, { newest: 3, inForce: 1 });
    await cluster.apply(split(10, 90));
    await programmed(cluster, split(10, 90), acknowledged);
    await nothingKept(cluster);
    expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(10, 90));
  });

  test('goes when the object was repaired while no replica was there', async () => {
    const cluster = await left();
    await cluster.apply(split(10, 90));
    const next = await cluster.start();
    const proxy = await next.connect(true);
    expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(10, 90));
    next.clock.skip(60_000);
    await nothingKept(cluster);
  });

  test('goes with it', async () => {
    const cluster = await left();
    const next = await cluster.start();
    const proxy = await next.connect(true);
    await next.logged('Became the leader');
    await cluster.delete(invalid);
    await nothingKept(cluster);
    await proxy.until(() => expect(proxy.routes('80')[REVIEWS]).toEqual([`/ -> ${clusterOf()}`]));
  });

  test('goes also when the object was deleted while no replica was there', async () => {
    const cluster = await left();
    await cluster.delete(invalid);
    const next = await cluster.start();
    await next.connect(true);
    next.clock.skip(60_000);
    await nothingKept(cluster);
  });

  test.each(['while no replica was there', 'in front of everybody'])(
    'does not count for another one of its name that was created %s',
    async (when) => {
      const cluster = await left();
      // Of a later generation than what is kept.
      const anew = (): void => {
        cluster.recreate(worse);
        void cluster.apply(invalid);
      };
      if (when.startsWith('while')) anew();
      const next = await cluster.start();
      const proxy = await next.connect(true);
      if (!when.startsWith('while')) anew();
      await next.logged('Became the leader').catch(() => undefined);
      await proxy.until(() => expect(proxy.routes('80')[REVIEWS]).not.toEqual(splitRoutes(80, 20)));
      await later(next, () => kept(cluster)).toEqual([]);
      await later(next, () => conditions(cluster, invalid)['Programmed']).toMatchObject({
        message: expect.not.stringContaining('Generation') as string,
      });
    },
  );

  test('stays until it is known what the object is now, also when this replica leads', async () => {
    const cluster = await left();
    const stray = { kind: 'VirtualService', name: 'stray', uid: 'gone' };
    forge(cluster, { object: stray }, { name: 'virtualservice-stray' });
    const path = pathOf(invalid);
    cluster.server.cluster.broken.add(path);
    const next = await cluster.start();
    await later(next, () => next.log.some(({ msg }) => msg.includes('Became the leader'))).toBe(true);
    const tries = (): number => cluster.server.cluster.requests.filter((request) => request.path === path).length;
    const before = tries();
    await expect.poll(tries, { timeout: 15_000 }).toBeGreaterThan(before + 1);
    expect(kept(cluster)).toHaveLength(2);
    cluster.server.cluster.broken.clear();
    const proxy = await next.connect(true);
    expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
    await isKept(cluster, { newest: 2, inForce: 1 });
  });

  test('is written again when somebody deletes or changes it', async () => {
    const cluster = await left();
    const next = await cluster.start();
    await next.connect(true);
    await next.logged('Became the leader');
    const [before] = kept(cluster);
    cluster.server.cluster.delete(GENERATIONS, 'shop', 'virtualservice-reviews');
    await later(next, () => kept(cluster)).toMatchObject([{ spec: before!['spec'] }]);
    forge(cluster, formerly(split(1, 99).spec));
    await later(next, () => kept(cluster)).toMatchObject([{ spec: before!['spec'] }]);
  });
});

const replica = (name: string, instance = 'fairlead') => {
  const { metadata, ...rest } = pod(name, '10.9.0.1', {
    'app.kubernetes.io/name': 'fairlead',
    'app.kubernetes.io/instance': instance,
  });
  return { ...rest, metadata: { ...metadata, namespace: 'istio-system' } };
};

/** By the proxies of this replica. */
const reject = (cluster: Cluster, metadata: { readonly name: string; readonly namespace: string }): void => {
  const { uid } = cluster.object(good).metadata;
  const key = 'networking.istio.io/VirtualService/Kubernetes/shop/reviews';
  const rejected = { key, uid, generation: 1, state: 'rejected', proxies: 1, rejections: [], isRejected: true };
  const spec = { servingSince: '2029-01-01T00:00:00Z', seen: {}, objects: [rejected] };
  cluster.server.cluster.apply(REPORTS, { metadata, spec });
};

const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

test('what a replica rejects counts when its Pod is ready, however long ago it said so', async () => {
  const cluster = await shop(good, replica('one'));
  const starting = { podIP: '10.9.0.2', phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] };
  await cluster.apply({ ...replica('two'), status: starting } as KubernetesObject);
  const program = await cluster.start({}, 'istio-system/one');
  await program.logged('Ready');
  reject(cluster, { name: 'two', namespace: 'istio-system' });
  await later(program, () => conditions(cluster, good)['Programmed']).toMatchObject({ reason: 'Rejected' });
  const { rejectedGenerations } = program.serving.engine.mesh.inputs;
  expect(rejectedGenerations.size).toBe(0);
  await cluster.apply(replica('two'));
  await program.committed(() => expect(rejectedGenerations.size).toBe(1));
  const proxy = await program.connect(true);
  expect(proxy.routes('80')[REVIEWS]).toEqual([`/ -> ${clusterOf()}`]);
});

describe('what somebody else wrote', () => {
  test.each([
    ['another namespace', 'shop', 'two', 'ReplicaSilent', splitRoutes(80, 20)],
    ['its namespace', 'istio-system', 'stranger', 'Rejected', splitRoutes(80, 20)],
    ['its namespace', 'istio-system', 'two', 'Rejected', [`/ -> ${clusterOf()}`]],
  ])(
    'in a ReplicaReport in %s, %s/%s, rejects only if it is of a replica',
    async (_, namespace, name, reason, routes) => {
      const cluster = await shop(good, replica('one'), replica('two'), replica('stranger', 'another'));
      const program = await cluster.start({}, 'istio-system/one');
      await program.logged('Ready');
      reject(cluster, { name, namespace });
      await later(program, () => conditions(cluster, good)['Programmed']).toMatchObject({ reason });
      const proxy = await program.connect(true);
      expect(proxy.routes('80')[REVIEWS]).toEqual(routes);
    },
  );

  test.each<[string, (cluster: Cluster) => void]>([
    [
      'about another object of the name',
      (cluster) =>
        forge(cluster, {
          object: { kind: 'VirtualService', name: 'reviews', uid: 'other' },
          ...formerly(split(1, 99).spec),
        }),
    ],
    [
      'that goes with another object',
      (cluster) => forge(cluster, formerly(split(1, 99).spec), { ownerReferences: [{ uid: 'other' }] }),
    ],
    ['under another name', (cluster) => forge(cluster, formerly(split(1, 99).spec), { name: 'gateway-reviews' })],
    ['in another namespace', (cluster) => forge(cluster, formerly(split(1, 99).spec), { namespace: 'other' })],
    ['of a generation that is not a former one', (cluster) => forge(cluster, formerly(split(1, 99).spec, 2))],
    [
      'of a generation that does not exist yet',
      (cluster) => forge(cluster, { newest: 3, ...formerly(split(1, 99).spec) }),
    ],
    [
      'that the API server would not take',
      (cluster) =>
        forge(cluster, {
          former: [
            { apiVersion: 'networking.istio.io/v1', generation: 1, labels: { a: '-' }, spec: split(1, 99).spec },
          ],
        }),
    ],
    ['that is not valid', (cluster) => forge(cluster, formerly(invalid.spec))],
    [
      'with owners that cannot be',
      (cluster) => forge(cluster, formerly(split(1, 99).spec), { ownerReferences: [null, { uid: 7 }] }),
    ],
    [
      'that is nested thousands of levels deep',
      (cluster) => forge(cluster, formerly({ ...(split(1, 99).spec as object), more: nested(3_000) })),
    ],
    ['without anything', (cluster) => forge(cluster, { former: 'x', object: 7, newest: 'y' })],
  ])('%s does not count', async (_, write) => {
    const cluster = await left();
    cluster.server.cluster.delete(GENERATIONS, 'shop', 'virtualservice-reviews');
    write(cluster);
    const next = await cluster.start();
    const proxy = await next.connect(true);
    expect(proxy.routes('80')[REVIEWS]).toEqual([`/ -> ${clusterOf()}`]);
    await later(next, () => kept(cluster)).toEqual([]);
  });

  test('counts if it could be ours: whoever may write it could write the object', async () => {
    const cluster = await left();
    cluster.server.cluster.delete(GENERATIONS, 'shop', 'virtualservice-reviews');
    forge(cluster, formerly(split(1, 99).spec));
    const proxy = await (await cluster.start()).connect(true);
    expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(1, 99));
  });

  test('takes back no policy, as earlier versions did, and goes', async () => {
    const policy = (rules: readonly object[]) => ({
      ...object('security.istio.io/v1', 'AuthorizationPolicy', 'lock', {}),
      spec: { action: 'DENY', rules },
    });
    const from = (principal: string) => ({ from: [{ source: { principals: [principal] } }] });
    const loose = policy([from('cluster.local/ns/old/sa/old')]);
    const strict = policy([from('cluster.local/ns/shop/sa/stolen')]);
    const cluster = await shop();
    await cluster.apply(loose);
    await cluster.apply(strict);
    const { uid, generation } = cluster.object(strict).metadata;
    const owner = { kind: 'AuthorizationPolicy', name: 'lock', uid };
    cluster.server.cluster.apply(GENERATIONS, {
      apiVersion: 'fairlead.dev/v1alpha1',
      kind: 'GenerationInForce',
      metadata: {
        name: 'authorizationpolicy-lock',
        namespace: 'shop',
        ownerReferences: [{ apiVersion: loose.apiVersion, ...owner }],
      },
      spec: {
        ...{ object: owner, newest: generation, inForce: 1, reason: 'Rejected' },
        former: [{ apiVersion: loose.apiVersion, generation: 1, spec: loose.spec }],
        rejected: [{ generation, proxies: 2, rejections: [] }],
      },
    });
    const program = await cluster.start();
    const proxy = await program.connect(true, { id: 'sidecar~10.1.0.1~reviews-1.shop~shop.svc.cluster.local' });
    expect(Buffer.from(proxy.held(LDS).get('virtualInbound') ?? []).includes('sa/stolen')).toBe(true);
    await later(program, () => kept(cluster)).toEqual([]);
  });

  test('rejects nothing that proxies have acknowledged, and goes', async () => {
    const cluster = await shop(good);
    const program = await cluster.start();
    const proxy = await program.connect(true);
    await programmed(cluster, good, acknowledged);
    forge(cluster, { newest: 1, rejected: [{ generation: 1, proxies: 9, rejections: [] }] });
    await later(program, () => kept(cluster)).toEqual([]);
    await program.settled();
    expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
  });
});

test('is written when the API server takes it, however often it did not', async () => {
  const cluster = await shop(good);
  const program = await cluster.start();
  await program.connect(true);
  await programmed(cluster, good, acknowledged);
  cluster.server.cluster.broken.add(GENERATIONS);
  await cluster.apply(invalid);
  await program.logged('API server: unavailable');
  expect(kept(cluster)).toEqual([]);
  cluster.server.cluster.broken.clear();
  await later(program, () => kept(cluster)).toMatchObject([{ spec: { newest: 2, inForce: 1 } }]);
  await program.logged('API server: no longer unavailable');
});

describe('of several replicas', () => {
  async function two(): Promise<{ cluster: Cluster; one: Program; other: Program }> {
    const cluster = await shop(good);
    const one = await cluster.start({}, 'istio-system/one');
    await one.logged('Became the leader');
    const other = await cluster.start({}, 'istio-system/two');
    await other.logged('Ready');
    return { cluster, one, other };
  }

  test('the leader writes, and one that joins serves the same', async () => {
    const { cluster, one } = await two();
    await one.connect(true);
    await programmed(cluster, good, acknowledged);
    await cluster.apply(invalid);
    await isKept(cluster, { newest: 2, inForce: 1 });
    const third = await cluster.start({}, 'istio-system/three');
    const proxy = await third.connect(true);
    expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
    expect(kept(cluster)).toHaveLength(1);
  });

  test('what the proxies of one reject, the others do not try', async () => {
    const { cluster, one, other } = await two();
    const proxy = await one.connect(true);
    await programmed(cluster, good, acknowledged);
    rejectPoison(proxy, []);
    await cluster.apply(poisoned);
    await isKept(cluster, { newest: 2, inForce: 1, reason: 'Rejected' });
    const { rejectedGenerations } = other.serving.engine.mesh.inputs;
    await other.committed(() =>
      expect([...rejectedGenerations.entries()]).toMatchObject([
        [expect.anything(), { generations: [{ generation: 2 }] }],
      ]),
    );
    const far = await other.connect(true);
    expect(far.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
  });

  test('what one tenant rejects where nobody else is concerned, the others try', async () => {
    const { cluster, one, other } = await two();
    const of = (namespace: string) => ({ id: `sidecar~10.0.0.9~client.${namespace}~${namespace}.svc.cluster.local` });
    const proxy = await one.connect(true, of('tenant'));
    await programmed(cluster, good, acknowledged);
    rejectPoison(proxy, []);
    await cluster.apply(poisoned);
    await programmed(cluster, poisoned, inForce(1));
    await isKept(cluster, { newest: 2, inForce: 1, reason: 'Rejected' });
    expect(kept(cluster)).not.toMatchObject([{ spec: { rejected: expect.anything() as unknown } }]);
    const far = await other.connect(true, of('another'));
    expect(far.routes('80')[REVIEWS]).toEqual([`/ -> ${clusterOf()}`]);
  });

  test('what proxies of another one than the leader reject is kept, counted once, and not tried after a restart', async () => {
    const cluster = await shop(good, replica('one'), replica('two'));
    const one = await cluster.start({}, 'istio-system/one');
    await one.logged('Became the leader');
    const other = await cluster.start({}, 'istio-system/two');
    const proxy = await other.connect(true);
    await programmed(cluster, good, acknowledged);
    rejectPoison(proxy, []);
    await cluster.apply(poisoned);
    await isKept(cluster, { newest: 2, inForce: 1, reason: 'Rejected', rejected: [{ generation: 2, proxies: 1 }] });
    const message = expect.stringMatching(
      /^Rejected by 1 proxy \(client\.shop\)\..* Generation 1 is in force\.$/,
    ) as string;
    await later(one, () => conditions(cluster, poisoned)['Programmed']).toMatchObject({ reason: 'Rejected', message });
    for (const program of [one, other]) await program.stop();
    const again = [];
    for (const name of ['one', 'two']) again.push(await cluster.start({}, `istio-system/${name}`));
    const saw: string[] = [];
    for (const program of again) {
      const late = await program.connect(true);
      rejectPoison(late, saw);
      expect(late.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
    }
    const [next] = again;
    await later(next!, () => conditions(cluster, poisoned)['Programmed']).toMatchObject({
      reason: 'Rejected',
      message,
    });
    expect(saw).toEqual([]);
  });

  test('the next leader goes on', async () => {
    const { cluster, one, other } = await two();
    await one.connect(true);
    await programmed(cluster, good, acknowledged);
    await cluster.apply(invalid);
    await isKept(cluster, { newest: 2, inForce: 1 });
    const [before] = kept(cluster);
    await one.stop();
    await later(other, () => other.log.some(({ msg }) => msg.includes('Became the leader'))).toBe(true);
    const proxy = await other.connect(true);
    expect([proxy.routes('80')[REVIEWS], kept(cluster)]).toEqual([splitRoutes(80, 20), [before]]);
    await cluster.apply(split(10, 90));
    await nothingKept(cluster);
  });

  test('of two revisions, each writes about its own objects', async () => {
    const label = (object: typeof good) => ({
      ...object,
      metadata: { ...object.metadata, labels: { 'istio.io/rev': 'canary' } },
    });
    const cluster = await shop(label(good));
    const stable = await cluster.start({}, 'istio-system/stable');
    await stable.connect(true);
    await stable.logged('Became the leader');
    await cluster.apply(label(invalid));
    const { formerGenerations } = stable.serving.engine.mesh.inputs;
    await stable.committed(() => expect(formerGenerations.size).toBe(1));
    await stable.settled();
    expect(kept(cluster)).toEqual([]);
    await cluster.apply(label(good));
    const canary = await cluster.start({ revision: 'canary' }, 'istio-system/canary');
    await canary.connect(true);
    await canary.logged('Became the leader');
    await programmed(cluster, good, acknowledged);
    await cluster.apply(label(invalid));
    await isKept(cluster, { newest: 4, inForce: 3 });
    expect(kept(cluster)).toMatchObject([{ metadata: { labels: { 'istio.io/rev': 'canary' } } }]);
    const writes = cluster.server.cluster.requests.filter(
      ({ method, path }) => method !== 'GET' && path.includes('generationsinforce'),
    );
    expect(writes).toHaveLength(1);
  });
});

describe('in a cluster', () => {
  test('without the CRD it starts, and begins to write when there is one', async () => {
    const cluster = await shop(good);
    cluster.server.cluster.uninstall(GENERATIONS);
    const program = await cluster.start();
    await program.connect(true);
    expect(program.log).toContainEqual(
      expect.objectContaining({
        msg: 'Kind is not installed, checking for it periodically',
        kind: 'GenerationInForce',
      }),
    );
    await programmed(cluster, good, acknowledged);
    await cluster.apply(invalid);
    await programmed(cluster, invalid, inForce(1));
    cluster.server.cluster.install(GENERATIONS, 'GenerationInForce');
    await later(program, () => kept(cluster)).toMatchObject([{ spec: { newest: 2, inForce: 1 } }]);
  });

  test('replicas of which one has missed a good generation fall back to the same', async () => {
    const cluster = await shop(good);
    const one = await cluster.start({}, 'istio-system/one');
    await one.logged('Became the leader');
    const near = await one.connect(true);
    await near.until((proxy) => expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20)));
    cluster.loseEvents();
    const two = await cluster.start({}, 'istio-system/two');
    const far = await two.connect(true);
    await cluster.apply(split(50, 50));
    await far.until((proxy) => expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(50, 50)));
    await cluster.apply(invalid);
    await two.settled();
    cluster.server.cluster.compact();
    cluster.endWatches();
    await isKept(cluster, { newest: 3, inForce: 1 });
    for (const proxy of [near, far])
      await proxy.until(() => expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20)));
  });

  test('where it may not read them it starts, and says so', async () => {
    const cluster = await shop(good);
    cluster.server.cluster.denied.add(GENERATIONS);
    const program = await cluster.start();
    await program.connect(true);
    await program.logged('Generations that were in force before the restart are not known');
    await programmed(cluster, good, acknowledged);
  });
});
