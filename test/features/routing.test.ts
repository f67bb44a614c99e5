import { describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import {
  destinationRule,
  gateway,
  legacyEndpoints,
  meshConfig,
  namespace,
  node,
  pod,
  serviceEntry,
  sidecar,
  slice,
  target,
  virtualService,
  workloadEntry,
} from './objects.ts';
import type { Node } from '../conformance/xds-client.ts';
import type { Program } from './program.ts';
import type { Proxy } from './proxy.ts';
import { clusterOf, hostOf, RATINGS, ratings, REVIEWS, reviews, rule, split, splitRoutes } from './shop.ts';
import { Cluster, Directory, type Source } from './sources.ts';

const reviewClusters = [clusterOf(), clusterOf('reviews', 'v1'), clusterOf('reviews', 'v2')].sort();

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
      await serveTo({}, ...objects);
    }

    async function serveTo(node: Partial<Node>, ...objects: readonly KubernetesObject[]): Promise<void> {
      source = await createSource();
      await source.apply(...objects);
      program = await source.start();
      proxy = await program.connect(delta, node);
    }

    /** What the proxy is sent while the source becomes like this. */
    async function changes(change: Promise<void>, until: (proxy: Proxy) => void): ReturnType<Program['sent']> {
      await change;
      return program.sent(proxy, until);
    }

    test('a proxy is given what the objects say, and nothing else', async () => {
      await serve(...reviews, ...ratings, rule, split(80, 20));
      expect(proxy.clusters()).toEqual([clusterOf('ratings'), ...reviewClusters].sort());
      expect(proxy.endpoints()).toEqual({
        [clusterOf()]: ['10.1.0.1:8080', '10.1.0.2:8080'],
        [clusterOf('reviews', 'v1')]: ['10.1.0.1:8080'],
        [clusterOf('reviews', 'v2')]: ['10.1.0.2:8080'],
        [clusterOf('ratings')]: ['10.1.0.9:8080'],
      });
      expect(proxy.listeners()).toEqual(['0.0.0.0_80', 'virtualInbound', 'virtualOutbound']);
      expect(proxy.routes('80')).toEqual({
        [REVIEWS]: splitRoutes(80, 20),
        [RATINGS]: [`/ -> ${clusterOf('ratings')}`],
      });
    });

    test('a change of weights sends the route table, and nothing else', async () => {
      await serve(...reviews, rule, split(80, 20));
      const sent = await changes(source.apply(split(50, 50)), (p) =>
        expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(50, 50)),
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
        expect(p.endpoints()[clusterOf('reviews', 'v2')]).toEqual(['10.1.0.2:8080', '10.1.0.3:8080']),
      );
      expect(sent).toEqual({ eds: [clusterOf(), clusterOf('reviews', 'v2')].map((name) => `~${name}`).sort() });
    });

    test('a service that comes and goes changes nothing of others', async () => {
      await serve(...reviews, rule, split(80, 20));
      const added = await changes(source.apply(...ratings), (p) => {
        expect(p.endpoints()[clusterOf('ratings')]).toEqual(['10.1.0.9:8080']);
        expect(Object.keys(p.routes('80'))).toContain(RATINGS);
      });
      expect(added['cds']).toEqual([`+${clusterOf('ratings')}`]);
      expect(added['eds']).toContain(`+${clusterOf('ratings')}`);
      expect(added['eds']?.filter((change) => !change.includes('ratings'))).toEqual([]);
      expect(added['rds']).toEqual(['~80']);
      expect(added['lds']).toBeUndefined();

      const removed = await changes(source.delete(...ratings), (p) => {
        expect(p.clusters()).toEqual(reviewClusters);
        expect(Object.keys(p.routes('80'))).toEqual([REVIEWS]);
      });
      expect(removed).toEqual({ cds: [`-${clusterOf('ratings')}`], rds: ['~80'] });
    });

    test('routes and subsets that are deleted leave the plain service', async () => {
      await serve(...reviews, rule, split(80, 20));
      await changes(source.delete(split(80, 20), rule), (p) => {
        expect(p.clusters()).toEqual([clusterOf()]);
        expect(p.routes('80')).toEqual({ [REVIEWS]: [`/ -> ${clusterOf()}`] });
      });
    });

    test('a destination that does not exist leaves the others, with their weights', async () => {
      await serve(...reviews, rule, split(80, 20));
      const onlyV1 = destinationRule('reviews', {
        host: 'reviews',
        subsets: [{ name: 'v1', labels: { version: 'v1' } }],
      });
      await changes(source.apply(onlyV1), (p) => {
        expect(p.clusters()).toEqual([clusterOf(), clusterOf('reviews', 'v1')].sort());
        expect(p.routes('80')[REVIEWS]).toEqual([`/ -> ${clusterOf('reviews', 'v1')} 80, BlackHoleCluster 20`]);
      });
      await changes(source.apply(rule), (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20)));
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

    test('the mesh config is read again when it changes, and its defaults come back when it is empty', async () => {
      await serve(...reviews);
      const connectTimeouts = (p: Proxy) => p.cluster(clusterOf()).connectTimeout;
      expect(connectTimeouts(proxy)).toEqual({ seconds: '10' });
      const sent = await changes(source.apply(meshConfig('connectTimeout: 3s')), (p) =>
        expect(connectTimeouts(p)).toEqual({ seconds: '3' }),
      );
      expect(sent['cds']).toContain(`~${clusterOf()}`);
      expect(sent['lds']).toBeUndefined();
      expect(sent['rds']).toBeUndefined();
      await changes(source.apply(meshConfig('')), (p) => expect(connectTimeouts(p)).toEqual({ seconds: '10' }));
    });

    test('a mesh config that is deleted stays in force, and that is said until there is one again', async () => {
      await serve(...reviews, meshConfig('connectTimeout: 3s'));
      await source.delete(meshConfig(''));
      await program.reported('ConfigMap/istio-system/istio');
      await program.settled();
      expect(proxy.cluster(clusterOf()).connectTimeout).toEqual({ seconds: '3' });
      expect(proxy.takeChanges()).toEqual({});
      await changes(source.apply(meshConfig('')), (p) =>
        expect(p.cluster(clusterOf()).connectTimeout).toEqual({ seconds: '10' }),
      );
      expect([...program.serving.engine.mesh.problems.byObject.entries()]).toEqual([]);
    });

    test('a mesh config that cannot be read leaves the last good one in force', async () => {
      await serve(...reviews, meshConfig('connectTimeout: 3s'));
      await source.apply(meshConfig('connectTimeout: ['));
      await program.reported('ConfigMap/istio-system/istio');
      await program.settled();
      expect(proxy.cluster(clusterOf()).connectTimeout).toEqual({ seconds: '3' });
      expect(proxy.takeChanges()).toEqual({});
    });

    test('endpoints follow the localities of their nodes', async () => {
      await serve(...reviews, node('node-a', 'west', 'one'));
      expect(proxy.endpoints()[clusterOf()]).toEqual(['10.1.0.1:8080@west/one', '10.1.0.2:8080@west/one']);
      const sent = await changes(source.apply(node('node-a', 'west', 'two')), (p) =>
        expect(p.endpoints()[clusterOf()]).toEqual(['10.1.0.1:8080@west/two', '10.1.0.2:8080@west/two']),
      );
      expect(sent).toEqual({ eds: [`~${clusterOf()}`] });
    });

    test('endpoints follow the labels of their Pods', async () => {
      await serve(...reviews, rule);
      const sent = await changes(source.apply(pod('reviews-1', '10.1.0.1', { app: 'reviews', version: 'v2' })), (p) =>
        expect(p.endpoints()[clusterOf('reviews', 'v2')]).toEqual(['10.1.0.1:8080', '10.1.0.2:8080']),
      );
      expect(proxy.endpoints()[clusterOf('reviews', 'v1')]).toEqual([]);
      expect(sent['eds']).toEqual(expect.arrayContaining(['v1', 'v2'].map((v) => `~${clusterOf('reviews', v)}`)));
      expect(Object.keys(sent)).toEqual(['eds']);
    });

    test('legacy Endpoints count for a Service that has no slice', async () => {
      const [plain, ...others] = reviews;
      await serve(plain!, legacyEndpoints('reviews', ['10.1.0.7']));
      expect(proxy.endpoints()).toEqual({ [clusterOf()]: ['10.1.0.7:8080'] });
      await changes(source.apply(...others), (p) =>
        expect(p.endpoints()).toEqual({ [clusterOf()]: ['10.1.0.1:8080', '10.1.0.2:8080'] }),
      );
      await changes(source.delete(others[0]!), (p) =>
        expect(p.endpoints()).toEqual({ [clusterOf()]: ['10.1.0.7:8080'] }),
      );
    });

    test('an object that comes back is a new one', async () => {
      await serve(...reviews, rule, split(80, 20));
      await changes(source.delete(split(80, 20)), (p) =>
        expect(p.routes('80')[REVIEWS]).toEqual([`/ -> ${clusterOf()}`]),
      );
      await changes(source.apply(split(10, 90)), (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(10, 90)));
    });

    test('a Sidecar narrows what its namespace sees, for as long as it is there', async () => {
      await serve(...reviews, ...ratings);
      const narrow = sidecar('default', { egress: [{ hosts: [`./${hostOf('ratings')}`] }] });
      await changes(source.apply(narrow), (p) => {
        expect(p.clusters()).toEqual([clusterOf('ratings')]);
        expect(Object.keys(p.routes('80'))).toEqual([RATINGS]);
      });
      await changes(source.delete(narrow), (p) => {
        expect(p.clusters()).toEqual([clusterOf('ratings'), clusterOf()].sort());
        expect(Object.keys(p.routes('80')).sort()).toEqual([RATINGS, REVIEWS].sort());
      });
    });

    test('a ServiceEntry has the endpoints that it names, and the workloads that it selects', async () => {
      const host = 'api.example.com';
      const name = `outbound|80||${host}`;
      const entry = (spec: Readonly<Record<string, unknown>>) =>
        serviceEntry('api', {
          hosts: [host],
          ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
          resolution: 'STATIC',
          ...spec,
        });
      const machine = (address: string) => workloadEntry('machine', { address, labels: { app: 'api' } });
      await serve(...reviews, entry({ endpoints: [{ address: '10.9.0.1' }] }));
      expect(proxy.endpoints()[name]).toEqual(['10.9.0.1:80']);

      const selecting = entry({ workloadSelector: { labels: { app: 'api' } } });
      await changes(source.apply(selecting, machine('10.9.0.2')), (p) =>
        expect(p.endpoints()[name]).toEqual(['10.9.0.2:80']),
      );
      const sent = await changes(source.apply(machine('10.9.0.3')), (p) =>
        expect(p.endpoints()[name]).toEqual(['10.9.0.3:80']),
      );
      expect(sent).toEqual({ eds: [`~${name}`] });
      await changes(source.delete(selecting), (p) => expect(p.clusters()).toEqual([clusterOf()]));
    });

    test('a router opens the ports of its Gateways, and closes them', async () => {
      const servers = [{ port: { number: 8080, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }];
      const way = gateway('way-in', { selector: { app: 'way-in' }, servers });
      const routes = (path: string) =>
        virtualService('shop', {
          hosts: ['shop.example.com'],
          gateways: ['way-in'],
          http: [{ match: [{ uri: { prefix: path } }], route: [{ destination: { host: 'reviews' } }] }],
        });
      await serve(...reviews, pod('router', '10.1.0.50', { app: 'way-in' }), way, routes('/a'));
      const id = 'router~10.1.0.50~router.shop~shop.svc.cluster.local';
      proxy = await program.connect(delta, { id }, (p) => expect(p.listeners()).toEqual(['0.0.0.0_8080']));
      const host = 'shop.example.com:8080';
      expect(proxy.routes('http.8080')).toEqual({ [host]: [`/a -> ${clusterOf()}`] });
      const sent = await changes(source.apply(routes('/b')), (p) =>
        expect(p.routes('http.8080')).toEqual({ [host]: [`/b -> ${clusterOf()}`] }),
      );
      expect(sent).toEqual({ rds: ['~http.8080'] });
      await changes(source.delete(way), (p) => expect(p.listeners()).toEqual([]));
    });

    test('objects of another revision are left to others, until their label changes', async () => {
      const ours = 'canary';
      const of = (revision: string) => {
        const object = split(80, 20);
        return { ...object, metadata: { ...object.metadata, labels: { 'istio.io/rev': revision } } };
      };
      source = await createSource();
      await source.apply(...reviews, rule, of('stable'));
      program = await source.start({ revision: ours });
      proxy = await program.connect(delta);
      expect(proxy.routes('80')[REVIEWS]).toEqual([`/ -> ${clusterOf()}`]);
      await changes(source.apply(of(ours)), (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20)));
      await changes(source.apply(of('stable')), (p) =>
        expect(p.routes('80')[REVIEWS]).toEqual([`/ -> ${clusterOf()}`]),
      );
    });

    test('a client that comes later is given the present state', async () => {
      await serve(...reviews, rule, split(80, 20));
      await changes(source.apply(split(50, 50), ...ratings), (p) =>
        expect(Object.keys(p.routes('80'))).toHaveLength(2),
      );
      const late = await program.connect(delta);
      expect(late.routes('80')).toEqual(proxy.routes('80'));
      expect(late.endpoints()).toEqual(proxy.endpoints());
    });

    test('a Namespace that asks for near endpoints is followed, and its labels matter to nobody', async () => {
      const near = { 'networking.istio.io/traffic-distribution': 'PreferClose' };
      const far = pod('reviews-2', '10.1.0.2', {}, 'node-b');
      const nodes = [node('node-a', 'west', 'one'), node('node-b', 'west', 'two')];
      const here = { locality: { region: 'west', zone: 'one' } };
      await serveTo(here, ...reviews, far, ...nodes, namespace('shop', {}));
      expect(proxy.endpoints()[clusterOf()]).toEqual(['10.1.0.1:8080@west/one', '10.1.0.2:8080@west/two']);

      const sent = await changes(source.apply(namespace('shop', { annotations: near })), (p) =>
        expect(p.endpoints()[clusterOf()]).toEqual(['10.1.0.1:8080@west/one', '10.1.0.2:8080@west/two, then']),
      );
      expect(sent).toEqual({ cds: [`~${clusterOf()}`], eds: [`~${clusterOf()}`] });

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
