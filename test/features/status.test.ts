import { describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { isObject } from '../../src/api/json.ts';
import { conditions } from './conditions.ts';
import { destinationRule, gateway, serviceEntry, sidecar, virtualService, workloadEntry } from './objects.ts';
import { get, type Program } from './program.ts';
import { clusterOf, ratings, REVIEWS, reviews, rule, split } from './shop.ts';
import { Cluster, EVENTS, LEASES } from './sources.ts';

/** Waits for conditions of the generation that the object has now. */
async function judged(cluster: Cluster, ...objects: readonly KubernetesObject[]): Promise<void> {
  await cluster.changed(() => {
    for (const object of objects) {
      const { generation } = cluster.object(object).metadata;
      expect(conditions(cluster, object)).toMatchObject({
        Accepted: { observedGeneration: generation },
        ResolvedRefs: { observedGeneration: generation },
      });
    }
  });
}

/** Nothing is left to be written. */
async function written({ serving, clock }: Program): Promise<void> {
  await serving.engine.committer.settled();
  for (;;) {
    const { body } = await get(serving.ports.monitoring, '/metrics');
    if (/^fairlead_status_pending 0$/m.test(body)) return;
    clock.skip(1_000);
  }
}

async function serve(...objects: readonly KubernetesObject[]): Promise<{ cluster: Cluster; program: Program }> {
  const cluster = await Cluster.create();
  await cluster.apply(...objects);
  const program = await cluster.start();
  return { cluster, program };
}

test('every kind is told that it is accepted, and that all it names exists', async () => {
  const ports = [{ number: 80, name: 'http', protocol: 'HTTP' }];
  const all = [
    rule,
    split(80, 20),
    gateway('way-in', { selector: { istio: 'ingress' }, servers: [{ port: ports[0], hosts: ['*'] }] }),
    serviceEntry('api', { hosts: ['api.example.com'], ports, resolution: 'DNS' }),
    sidecar('default', { egress: [{ hosts: ['./*'] }] }),
    workloadEntry('machine', { address: '10.9.0.1', labels: { app: 'reviews' } }),
  ];
  const { cluster } = await serve(...reviews, ...all);
  await judged(cluster, ...all);
  for (const object of all) {
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) as string;
    const common = { status: 'True', observedGeneration: 1, lastTransitionTime: time };
    expect(conditions(cluster, object)).toMatchObject({
      Accepted: { type: 'Accepted', reason: 'Accepted', message: 'The object is valid.', ...common },
      ResolvedRefs: {
        type: 'ResolvedRefs',
        reason: 'ResolvedRefs',
        message: 'All references resolve.',
        ...common,
      },
    });
  }
});

test.each([
  [
    'host',
    virtualService('v', { hosts: ['reviews'], http: [{ route: [{ destination: { host: 'nowhere' } }] }] }),
    'spec.http[0].route[0].destination.host: ',
    '"nowhere.shop.svc.cluster.local"',
  ],
  [
    'subset',
    virtualService('v', {
      hosts: ['reviews'],
      http: [{ route: [{ destination: { host: 'reviews', subset: 'v9' } }] }],
    }),
    'spec.http[0].route[0].destination.subset: ',
    '"v9"',
  ],
  [
    'port',
    virtualService('v', {
      hosts: ['reviews'],
      http: [{ route: [{ destination: { host: 'reviews', port: { number: 81 } } }] }],
    }),
    'spec.http[0].route[0].destination.port',
    '81',
  ],
  [
    'gateway',
    virtualService('v', {
      hosts: ['reviews'],
      gateways: ['nowhere', 'mesh'],
      http: [{ route: [{ destination: { host: 'reviews' } }] }],
    }),
    'spec.gateways[0]: ',
    '"nowhere"',
  ],
  ['host of a rule', destinationRule('d', { host: 'nowhere' }), 'spec.host: ', '"nowhere.shop.svc.cluster.local"'],
])('a %s that does not exist is named, by field and value', async (_, object, field, value) => {
  const { cluster } = await serve(...reviews, rule, object);
  await judged(cluster, object);
  const { Accepted, ResolvedRefs } = conditions(cluster, object);
  expect(Accepted).toMatchObject({ status: 'True' });
  expect(ResolvedRefs).toMatchObject({ status: 'False', reason: 'RefNotFound' });
  expect(ResolvedRefs?.message).toContain(field);
  expect(ResolvedRefs?.message).toContain(value);
});

test('routes beside the one that leads nowhere are served', async () => {
  const mixed = virtualService('v', {
    hosts: ['reviews'],
    http: [
      { match: [{ uri: { prefix: '/old' } }], route: [{ destination: { host: 'nowhere' } }] },
      { route: [{ destination: { host: 'reviews' } }] },
    ],
  });
  const { cluster, program } = await serve(...reviews, mixed);
  const proxy = await program.connect(true);
  expect(proxy.routes('80')[REVIEWS]).toEqual(['/old -> BlackHoleCluster', `/ -> ${clusterOf()}`]);
  await judged(cluster, mixed);
  expect(conditions(cluster, mixed)['ResolvedRefs']).toMatchObject({ status: 'False' });
});

test('the younger of two objects that conflict is told to whom it lost', async () => {
  const born = (day: number, object: ReturnType<typeof split>) => ({
    ...object,
    metadata: { ...object.metadata, creationTimestamp: `2030-01-0${day}T00:00:00Z` },
  });
  const [older, younger] = [born(1, split(80, 20, 'older')), born(2, split(80, 20, 'younger'))] as const;
  const { cluster } = await serve(...reviews, rule, younger, older);
  await judged(cluster, older, younger);
  expect(conditions(cluster, older)['Accepted']).toMatchObject({ status: 'True' });
  expect(conditions(cluster, younger)['Accepted']).toMatchObject({ status: 'False', reason: 'Conflicted' });
  expect(conditions(cluster, younger)['Accepted']?.message).toContain('VirtualService/shop/older');
});

test('an object that is not accepted has one Event that says why, also after a restart', async () => {
  const others = [split(80, 20, 'a'), split(50, 50, 'b')];
  const { cluster, program } = await serve(...reviews, rule, ...others);
  const events = () => cluster.server.cluster.objects(EVENTS);
  const posts = () =>
    cluster.server.cluster.requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/events'));
  await judged(cluster, ...others);
  await written(program);
  await program.stop();
  expect(events()).toMatchObject([
    {
      type: 'Warning',
      reason: 'Conflicted',
      note: conditions(cluster, others[1]!)['Accepted']!.message,
      metadata: { namespace: 'shop' },
      regarding: { kind: 'VirtualService', namespace: 'shop', name: 'b' },
      reportingInstance: 'one',
    },
  ]);
  const next = await cluster.start({}, 'two');
  await next.logged('Became the leader');
  await next.logged('Ready');
  await written(next);
  await next.stop();
  expect(posts()).toHaveLength(1);
});

test('the time of a transition changes with the status, and with nothing else', async () => {
  const { cluster, program } = await serve(...reviews, rule, split(80, 20));
  await judged(cluster, split(80, 20));
  const first = conditions(cluster, split(0, 0));

  program.clock.skip(60_000);
  await cluster.apply(split(50, 50));
  await judged(cluster, split(0, 0));
  const second = conditions(cluster, split(0, 0));
  for (const type of ['Accepted', 'ResolvedRefs'])
    expect(second[type]).toEqual({ ...first[type], observedGeneration: 2 });

  program.clock.skip(60_000);
  await cluster.delete(rule);
  await cluster.changed(() =>
    expect(conditions(cluster, split(0, 0))['ResolvedRefs']).toMatchObject({ status: 'False', observedGeneration: 2 }),
  );
  const third = conditions(cluster, split(0, 0));
  expect(third['Accepted']).toEqual(second['Accepted']);
  expect(third['ResolvedRefs']?.lastTransitionTime).not.toBe(second['ResolvedRefs']?.lastTransitionTime);
});

test('nothing is written where nothing differs', async () => {
  const { cluster, program } = await serve(...reviews, rule, split(80, 20));
  await judged(cluster, rule, split(80, 20));
  await written(program);
  expect(cluster.writes()).toHaveLength(2);

  const labelled = split(80, 20);
  await cluster.apply({ ...labelled, metadata: { ...labelled.metadata, labels: { team: 'a' } } }, ...ratings);
  await program.committed(() => expect(program.object('Service', 'shop', 'ratings')).toBeDefined());
  await program.committed(() =>
    expect(program.object('VirtualService', 'shop', 'reviews')?.metadata.labels).toEqual({ team: 'a' }),
  );
  await written(program);
  expect(cluster.writes()).toHaveLength(2);

  await program.stop();
  const next = await cluster.start({}, 'two');
  await next.logged('Became the leader');
  await next.logged('Ready');
  await written(next);
  expect(cluster.writes()).toHaveLength(2);
});

test('a status that somebody else empties is written again', async () => {
  const { cluster, program } = await serve(...reviews, rule);
  await judged(cluster, rule);
  await written(program);
  await cluster.apply({ ...rule, status: { conditions: [] } } as KubernetesObject);
  await cluster.changed(() => expect(conditions(cluster, rule)).toHaveProperty('Accepted'));
});

test('an object that changes under a write is read again', async () => {
  const cluster = await Cluster.create();
  await cluster.apply(...reviews, rule);
  let raced = false;
  cluster.server.cluster.onRequest = ({ method, path }) => {
    if (raced || method !== 'PATCH' || !path.endsWith('/reviews/status')) return;
    raced = true;
    void cluster.apply({ ...rule, metadata: { ...rule.metadata, annotations: { note: 'changed' } } });
  };
  const program = await cluster.start();
  await judged(cluster, rule);
  await written(program);
  expect(raced).toBe(true);
  expect((await get(program.serving.ports.monitoring, '/metrics')).body).toMatch(
    /fairlead_status_writes_total\{result="conflict"\} 1/,
  );
});

describe('of two replicas', () => {
  test('the one that holds the Lease writes, and the other one when that has ended', async () => {
    const { cluster, program: one } = await serve(...reviews, rule);
    await one.logged('Became the leader');
    const two = await cluster.start({}, 'two');
    await two.logged('Ready');
    await judged(cluster, rule);
    await cluster.apply(split(80, 20));
    await judged(cluster, split(80, 20));
    await written(one);
    expect(cluster.writes()).toHaveLength(2);
    expect(holder(cluster)).toBe('one');
    expect(two.log.filter(({ msg }) => msg === 'Became the leader')).toEqual([]);

    await one.stop();
    expect(holder(cluster)).toBe('');
    await cluster.apply(split(50, 50));
    two.clock.skip(5_000);
    await judged(cluster, split(50, 50));
    expect(holder(cluster)).toBe('two');
    expect(cluster.writes()).toHaveLength(3);
  });

  test('neither writes when it was told not to', async () => {
    const cluster = await Cluster.create();
    await cluster.apply(...reviews, rule);
    const program = await cluster.start({ statusWrites: 'off' });
    await program.connect(true);
    expect(cluster.writes()).toEqual([]);
    expect(holder(cluster)).toBeUndefined();
    expect(program.log.map(({ msg }) => msg)).not.toContain('Became the leader');
  });
});

describe('of two releases in a cluster', () => {
  const labelled = (revision: string) => {
    const { metadata, ...rest } = split(80, 20);
    const labels = { 'istio.io/rev': revision };
    return { ...rest, metadata: { ...metadata, name: revision, labels } } as KubernetesObject;
  };

  test('one writes, wherever they are and whatever their mesh is called, and the other one says who does', async () => {
    const cluster = await Cluster.create();
    await cluster.apply(...reviews, rule);
    const one = await cluster.start({}, 'istio-system/one');
    await one.logged('Became the leader');
    const two = await cluster.start({ rootNamespace: 'trial' }, 'trial/two');
    expect(await two.logged('Another replica leads')).toMatchObject({
      lease: 'kube-system/fairlead',
      holder: 'istio-system/one',
    });
    await two.logged('Ready');
    await judged(cluster, rule);
    await written(one);
    expect(cluster.writes()).toHaveLength(1);
    expect(two.log.map(({ msg }) => msg)).not.toContain('Became the leader');
  });

  test('each writes what is labelled for its revision, and one of them what is not labelled', async () => {
    const cluster = await Cluster.create();
    await cluster.apply(...reviews, rule, labelled('stable'), labelled('canary'));
    const stable = await cluster.start({ revision: 'stable' }, 'one');
    await judged(cluster, rule, labelled('stable'));
    const canary = await cluster.start({ revision: 'canary' }, 'two');
    await judged(cluster, labelled('canary'));
    await written(stable);
    await written(canary);
    expect(cluster.writes()).toHaveLength(3);
    expect(['fairlead', 'fairlead-stable', 'fairlead-canary'].map((name) => holder(cluster, name))).toEqual([
      'one',
      'one',
      'two',
    ]);
    await stable.stop();
    await cluster.apply({ ...rule, spec: { host: 'elsewhere' } } as KubernetesObject);
    canary.clock.skip(5_000);
    await judged(cluster, rule);
    expect(holder(cluster)).toBe('two');
  });
});

function holder(cluster: Cluster, name = 'fairlead'): unknown {
  const lease = cluster.server.cluster.object(LEASES, 'kube-system', name);
  return isObject(lease?.['spec']) ? lease['spec']['holderIdentity'] : undefined;
}
