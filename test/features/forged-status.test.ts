import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { conditions } from './conditions.ts';
import { pod, virtualService } from './objects.ts';
import type { Proxy } from './proxy.ts';
import { reviews, REVIEWS, rule, split, splitRoutes } from './shop.ts';
import { later } from './skipping-clock.ts';
import { Cluster, GENERATIONS } from './sources.ts';

const good = split(80, 20);
const poisoned = virtualService('reviews', {
  hosts: ['reviews'],
  http: [{ name: 'poison', route: [{ destination: { host: 'reviews' } }] }],
});
const invalid = virtualService('reviews', { hosts: ['reviews'], http: [{ route: [] }] });
const KEY = 'networking.istio.io/VirtualService/Kubernetes/shop/reviews';

const rejectPoison = (proxy: Proxy): void => {
  proxy.rejects = ({ resources }) =>
    [...resources.values()].some((bytes) => Buffer.from(bytes).includes('poison'))
      ? 'there is poison in it'
      : undefined;
};

/** What Fairlead would write if every proxy had acknowledged this generation. */
const forged = (object: KubernetesObject, generation: number): KubernetesObject => {
  const common = { message: '', observedGeneration: generation, lastTransitionTime: '2029-01-01T00:00:00Z' };
  const condition = { type: 'Programmed', status: 'True', reason: 'Programmed', ...common };
  return { ...object, status: { conditions: [condition] } } as KubernetesObject;
};

const programmed = (cluster: Cluster, expected: object): Promise<void> =>
  cluster.changed(() => {
    const { generation } = cluster.object(good).metadata;
    expect(conditions(cluster, good)['Programmed']).toMatchObject({ observedGeneration: generation, ...expected });
  });

async function serve(...others: readonly KubernetesObject[]) {
  const cluster = await Cluster.create();
  await cluster.apply(...reviews, rule, good, ...others);
  return cluster;
}

async function served() {
  const cluster = await serve();
  const program = await cluster.start();
  const proxy = await program.connect(true);
  await programmed(cluster, { status: 'True', reason: 'Programmed' });
  return { cluster, program, proxy };
}

const isRejected = {
  reason: 'Rejected',
  message: expect.stringMatching(/there is poison in it"\. Generation 1 is in force\.$/) as string,
};

test('a status that says in advance that a generation is programmed does not hide that proxies reject it', async () => {
  const { cluster, proxy } = await served();
  rejectPoison(proxy);
  await cluster.apply(forged(good, 2));
  await cluster.apply(forged(poisoned, 2));
  await programmed(cluster, isRejected);
  expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
});

test('nor does one that says so of a generation that a silent proxy has, or that is not valid', async () => {
  const { cluster, program, proxy } = await served();
  proxy.fallSilent();
  await cluster.apply(forged(good, 2));
  await cluster.apply(forged(split(10, 90), 2));
  await proxy.until(() => expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(10, 90)));
  await later(program, () => conditions(cluster, good)['Programmed']).toMatchObject({ reason: 'Pending' });
  proxy.speak();
  await programmed(cluster, { status: 'True', reason: 'Programmed' });

  await cluster.apply(forged(invalid, 3));
  await programmed(cluster, { reason: 'Invalid', message: 'See Accepted. Generation 2 is in force.' });
  await cluster.apply(forged(invalid, 3));
  await programmed(cluster, { reason: 'Invalid', message: 'See Accepted. Generation 2 is in force.' });
  expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(10, 90));
});

test('what was rejected before a restart stays so, whatever its status says', async () => {
  const { cluster, program, proxy } = await served();
  rejectPoison(proxy);
  await cluster.apply(poisoned);
  await programmed(cluster, isRejected);
  await expect.poll(() => cluster.server.cluster.objects(GENERATIONS)).toMatchObject([{ spec: { newest: 2 } }]);
  await program.stop();
  await cluster.apply(forged(poisoned, 2));
  const next = await cluster.start();
  const late = await next.connect(true);
  expect(late.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
  await later(next, () => conditions(cluster, poisoned)['Programmed']).toMatchObject(isRejected);
  expect(late.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
});

const replica = (name: string): KubernetesObject => {
  const labels = { 'app.kubernetes.io/name': 'fairlead', 'app.kubernetes.io/instance': 'fairlead' };
  const { metadata, ...rest } = pod(name, '10.9.0.1', labels);
  return { ...rest, metadata: { ...metadata, namespace: 'istio-system' } };
};

test('what the proxies of another replica reject counts where nobody is concerned, whatever the status says', async () => {
  const cluster = await serve(replica('one'), replica('two'));
  const one = await cluster.start({}, 'istio-system/one');
  await one.logged('Became the leader');
  const other = await cluster.start({}, 'istio-system/two');
  const proxy = await other.connect(true);
  await programmed(cluster, { status: 'True', reason: 'Programmed' });
  proxy.fallSilent();
  rejectPoison(proxy);
  await cluster.apply(forged(good, 2));
  await cluster.apply(forged(poisoned, 2));
  const recalled = { object: { generation: 2 }, isRecalled: true };
  await expect.poll(() => one.serving.engine.progress.get(KEY)).toMatchObject(recalled);
  proxy.speak();
  await later(one, () => conditions(cluster, poisoned)['Programmed']).toMatchObject(isRejected);
  expect(one.serving.engine.progress.get(KEY)).toMatchObject({ progress: { state: 'rejected' } });
  const late = await one.connect(true);
  expect(late.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
});
