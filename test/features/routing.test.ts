import { describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import {
  destinationRule,
  legacyEndpoints,
  meshConfig,
  namespace,
  node,
  pod,
  service,
  slice,
  target,
  virtualService,
} from './objects.ts';
import type { Program } from './program.ts';
import type { Proxy } from './proxy.ts';
import { Cluster, Directory, type Source } from './sources.ts';

const hostOf = (name: string) => `${name}.shop.svc.cluster.local`;
const cluster = (name = 'reviews', subset = '') => `outbound|80|${subset}|${hostOf(name)}`;

const reviews = [
  service('reviews', '10.96.0.1'),
  slice('reviews', [target('reviews-1', '10.1.0.1'), target('reviews-2', '10.1.0.2')]),
  pod('reviews-1', '10.1.0.1', { app: 'reviews', version: 'v1' }),
  pod('reviews-2', '10.1.0.2', { app: 'reviews', version: 'v2' }),
];
const ratings = [service('ratings', '10.96.0.2'), slice('ratings', ['10.1.0.9'])];
const rule = destinationRule('reviews', {
  host: 'reviews',
  subsets: ['v1', 'v2'].map((version) => ({ name: version, labels: { version } })),
});
const split = (v1: number, v2: number) =>
  virtualService('reviews', {
    hosts: ['reviews'],
    http: [
      {
        route: [
          { destination: { host: 'reviews', subset: 'v1' }, weight: v1 },
          { destination: { host: 'reviews', subset: 'v2' }, weight: v2 },
        ],
      },
    ],
  });
const splitRoute = (v1: number, v2: number) => [
  `/ -> ${cluster('reviews', 'v1')} ${v1}, ${cluster('reviews', 'v2')} ${v2}`,
];
const reviewClusters = [cluster(), cluster('reviews', 'v1'), cluster('reviews', 'v2')].sort();

describe.each([
  ['a directory', () => Directory.create()],
  ['an API server', () => Cluster.create()],
] as const)('from %s', (_, createSource) => {
  describe.each([
    ['delta', true],
    ['state of the world', false],
  ])('over %s', (__, delta) => {
    let source: Source;
    let program: Program;
    let proxy: Proxy;

    /** A program that serves these objects, and a proxy that has all of them. */
    async function serve(...objects: readonly KubernetesObject[]): Promise<void> {
      source = await createSource();
      await source.apply(...objects);
      program = await source.start();
      proxy = await program.connect(delta);
      await proxy.until((p) => expect(p.listeners()).toContain('virtualOutbound'));
      await program.settled();
      proxy.takeChanges();
    }

    /** What a proxy is sent while the source becomes like this. */
    async function changes(
      change: Promise<void>,
      until: (proxy: Proxy) => void,
    ): Promise<ReturnType<Proxy['takeChanges']>> {
      await change;
      await proxy.until(until);
      await program.settled();
      return proxy.takeChanges();
    }

    test('a proxy is given what the objects say, and nothing else', async () => {
      await serve(...reviews, ...ratings, rule, split(80, 20));
      expect(proxy.clusters()).toEqual([cluster('ratings'), ...reviewClusters].sort());
      expect(proxy.endpoints()).toEqual({
        [cluster()]: ['10.1.0.1:8080', '10.1.0.2:8080'],
        [cluster('reviews', 'v1')]: ['10.1.0.1:8080'],
        [cluster('reviews', 'v2')]: ['10.1.0.2:8080'],
        [cluster('ratings')]: ['10.1.0.9:8080'],
      });
      expect(proxy.listeners()).toEqual(['0.0.0.0_80', 'virtualInbound', 'virtualOutbound']);
      expect(proxy.routes('80')).toEqual({
        [`${hostOf('reviews')}:80`]: splitRoute(80, 20),
        [`${hostOf('ratings')}:80`]: [`/ -> ${cluster('ratings')}`],
      });
    });

    test('a change of weights sends the route table, and nothing else', async () => {
      await serve(...reviews, rule, split(80, 20));
      const sent = await changes(source.apply(split(50, 50)), (p) =>
        expect(p.routes('80')[`${hostOf('reviews')}:80`]).toEqual(splitRoute(50, 50)),
      );
      expect(sent).toEqual({ rds: ['~80'] });
    });

    test('a change of endpoints sends their assignments, and nothing else', async () => {
      await serve(...reviews, ...ratings, rule);
      const more = slice('reviews', [
        target('reviews-1', '10.1.0.1'),
        target('reviews-2', '10.1.0.2'),
        target('reviews-3', '10.1.0.3'),
      ]);
      const third = pod('reviews-3', '10.1.0.3', { app: 'reviews', version: 'v2' });
      const sent = await changes(source.apply(third, more), (p) =>
        expect(p.endpoints()[cluster('reviews', 'v2')]).toEqual(['10.1.0.2:8080', '10.1.0.3:8080']),
      );
      expect(sent).toEqual({ eds: [cluster(), cluster('reviews', 'v2')].map((name) => `~${name}`).sort() });
    });

    test('a service that comes and goes changes nothing of others', async () => {
      await serve(...reviews, rule, split(80, 20));
      const added = await changes(source.apply(...ratings), (p) => {
        expect(p.endpoints()[cluster('ratings')]).toEqual(['10.1.0.9:8080']);
        expect(Object.keys(p.routes('80'))).toContain(`${hostOf('ratings')}:80`);
      });
      expect(added['cds']).toEqual([`+${cluster('ratings')}`]);
      expect(added['eds']).toContain(`+${cluster('ratings')}`);
      expect(added['eds']?.filter((change) => !change.includes('ratings'))).toEqual([]);
      expect(added['rds']).toEqual(['~80']);
      expect(added['lds']).toBeUndefined();

      const removed = await changes(source.delete(...ratings), (p) => {
        expect(p.clusters()).toEqual(reviewClusters);
        expect(Object.keys(p.routes('80'))).toEqual([`${hostOf('reviews')}:80`]);
      });
      expect(removed).toEqual({ cds: [`-${cluster('ratings')}`], rds: ['~80'] });
    });

    test('routes and subsets that are deleted leave the plain service', async () => {
      await serve(...reviews, rule, split(80, 20));
      await changes(source.delete(split(80, 20), rule), (p) => {
        expect(p.clusters()).toEqual([cluster()]);
        expect(p.routes('80')).toEqual({ [`${hostOf('reviews')}:80`]: [`/ -> ${cluster()}`] });
      });
    });

    test('a destination that does not exist leaves the others, with their weights', async () => {
      await serve(...reviews, rule, split(80, 20));
      const onlyV1 = destinationRule('reviews', {
        host: 'reviews',
        subsets: [{ name: 'v1', labels: { version: 'v1' } }],
      });
      await changes(source.apply(onlyV1), (p) => {
        expect(p.clusters()).toEqual([cluster(), cluster('reviews', 'v1')].sort());
        expect(p.routes('80')[`${hostOf('reviews')}:80`]).toEqual([
          `/ -> ${cluster('reviews', 'v1')} 80, BlackHoleCluster 20`,
        ]);
      });
      await changes(source.apply(rule), (p) =>
        expect(p.routes('80')[`${hostOf('reviews')}:80`]).toEqual(splitRoute(80, 20)),
      );
    });

    test('a change that alters nothing for proxies sends nothing', async () => {
      await serve(...reviews, rule, split(80, 20));
      const [plain] = reviews;
      await source.apply({ ...plain!, metadata: { ...plain!.metadata, labels: { team: 'a' } } });
      await program.committed(() =>
        expect(program.object('Service', 'shop', 'reviews')?.metadata.labels).toEqual({ team: 'a' }),
      );
      await program.settled();
      expect(proxy.takeChanges()).toEqual({});
    });

    test('the mesh config is read again when it changes, and its defaults come back when it goes', async () => {
      await serve(...reviews);
      const connectTimeouts = (p: Proxy) => p.cluster(cluster()).connectTimeout;
      expect(connectTimeouts(proxy)).toEqual({ seconds: '10' });
      const sent = await changes(source.apply(meshConfig('connectTimeout: 3s')), (p) =>
        expect(connectTimeouts(p)).toEqual({ seconds: '3' }),
      );
      expect(sent['cds']).toContain(`~${cluster()}`);
      expect(sent['lds']).toBeUndefined();
      expect(sent['rds']).toBeUndefined();
      await changes(source.delete(meshConfig('')), (p) => expect(connectTimeouts(p)).toEqual({ seconds: '10' }));
    });

    test('a mesh config that cannot be read leaves the last good one in force', async () => {
      await serve(...reviews, meshConfig('connectTimeout: 3s'));
      await source.apply(meshConfig('connectTimeout: ['));
      await program.reported('ConfigMap/istio-system/istio');
      await program.settled();
      expect(proxy.cluster(cluster()).connectTimeout).toEqual({ seconds: '3' });
      expect(proxy.takeChanges()).toEqual({});
    });

    test('endpoints follow the localities of their nodes', async () => {
      await serve(...reviews, node('node-a', 'west', 'one'));
      expect(proxy.endpoints()[cluster()]).toEqual(['10.1.0.1:8080@west/one', '10.1.0.2:8080@west/one']);
      const sent = await changes(source.apply(node('node-a', 'west', 'two')), (p) =>
        expect(p.endpoints()[cluster()]).toEqual(['10.1.0.1:8080@west/two', '10.1.0.2:8080@west/two']),
      );
      expect(sent).toEqual({ eds: [`~${cluster()}`] });
    });

    test('endpoints follow the labels of their Pods', async () => {
      await serve(...reviews, rule);
      const sent = await changes(source.apply(pod('reviews-1', '10.1.0.1', { app: 'reviews', version: 'v2' })), (p) =>
        expect(p.endpoints()[cluster('reviews', 'v2')]).toEqual(['10.1.0.1:8080', '10.1.0.2:8080']),
      );
      expect(proxy.endpoints()[cluster('reviews', 'v1')]).toEqual([]);
      expect(sent['eds']).toEqual(expect.arrayContaining(['v1', 'v2'].map((v) => `~${cluster('reviews', v)}`)));
      expect(Object.keys(sent)).toEqual(['eds']);
    });

    test('legacy Endpoints count for a Service that has no slice', async () => {
      const [plain, ...others] = reviews;
      await serve(plain!, legacyEndpoints('reviews', ['10.1.0.7']));
      expect(proxy.endpoints()).toEqual({ [cluster()]: ['10.1.0.7:8080'] });
      await changes(source.apply(...others), (p) =>
        expect(p.endpoints()).toEqual({ [cluster()]: ['10.1.0.1:8080', '10.1.0.2:8080'] }),
      );
      await changes(source.delete(others[0]!), (p) =>
        expect(p.endpoints()).toEqual({ [cluster()]: ['10.1.0.7:8080'] }),
      );
    });

    test('an object that comes back is a new one', async () => {
      await serve(...reviews, rule, split(80, 20));
      await changes(source.delete(split(80, 20)), (p) =>
        expect(p.routes('80')[`${hostOf('reviews')}:80`]).toEqual([`/ -> ${cluster()}`]),
      );
      await changes(source.apply(split(10, 90)), (p) =>
        expect(p.routes('80')[`${hostOf('reviews')}:80`]).toEqual(splitRoute(10, 90)),
      );
    });

    test('a client that comes later is given the present state', async () => {
      await serve(...reviews, rule, split(80, 20));
      await changes(source.apply(split(50, 50), ...ratings), (p) =>
        expect(Object.keys(p.routes('80'))).toHaveLength(2),
      );
      const late = await program.connect(delta, 'sidecar~10.0.0.8~late.shop~shop.svc.cluster.local');
      await late.until((p) => expect(p.routes('80')).toEqual(proxy.routes('80')));
      await program.settled();
      expect(late.endpoints()).toEqual(proxy.endpoints());
    });

    test('a Namespace that asks for near endpoints is followed, and its labels matter to nobody', async () => {
      const near = { 'networking.istio.io/traffic-distribution': 'PreferClose' };
      const far = pod('reviews-2', '10.1.0.2', {}, 'node-b');
      await serve(...reviews, far, node('node-a', 'west', 'one'), node('node-b', 'west', 'two'), namespace('shop', {}));
      proxy = await program.connect(delta, undefined, { region: 'west', zone: 'one' });
      const anywhere = ['10.1.0.1:8080@west/one', '10.1.0.2:8080@west/two'];
      await changes(Promise.resolve(), (p) => expect(p.endpoints()[cluster()]).toEqual(anywhere));

      const sent = await changes(source.apply(namespace('shop', { annotations: near })), (p) =>
        expect(p.endpoints()[cluster()]).toEqual(['10.1.0.1:8080@west/one', '10.1.0.2:8080@west/two, then']),
      );
      expect(sent).toEqual({ cds: [`~${cluster()}`], eds: [`~${cluster()}`] });

      const labels = { team: 'a' };
      await source.apply(namespace('shop', { annotations: near, labels }));
      await program.committed(() =>
        expect(program.object('Namespace', '', 'shop')?.metadata).toMatchObject({ labels }),
      );
      await program.settled();
      expect(proxy.takeChanges()).toEqual({});
    });
  });
});
