import { get } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type RunningEnvoy, startEnvoy } from '../peers/envoy.ts';
import { poll } from '../peers/process.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { assignment, type BackEnd, cluster, freePort, listenerWith, startBackEnd, table } from './envoy-resources.ts';
import { CDS, EDS, LDS, RDS, ServedMesh } from './served-mesh.ts';

/** Envoys that have a stream for each type: nothing on one of them waits for another. */

withPeers(['envoy'], 'an Envoy without ADS', () => {
  describe.each([
    ['delta', true],
    ['state of the world', false],
  ])('over %s', (_, delta) => {
    const fromControlPlane = {
      apiType: delta ? ('DELTA_GRPC' as const) : ('GRPC' as const),
      transportApiVersion: 'V3' as const,
      setNodeOnFirstMessageOnly: true,
      grpcServices: [{ envoyGrpc: { clusterName: 'xds-grpc' } }],
    };
    const ownService = {
      apiConfigSource: fromControlPlane,
      resourceApiVersion: 'V3' as const,
      initialFetchTimeout: { seconds: '0' },
    };
    const overAds = { ads: {}, resourceApiVersion: 'V3' as const, initialFetchTimeout: { seconds: '0' } };
    const clusterOf = (name: string, edsConfig: object, more: object = {}) =>
      cluster(name, { edsClusterConfig: { edsConfig }, ...more });
    const listenerOf = (configSource: object, more: object = {}) =>
      listenerWith('web', port, { rds: { routeConfigName: 'table', configSource } }, more);

    let one: BackEnd;
    let two: BackEnd;
    let mesh: ServedMesh;
    let envoy: RunningEnvoy;
    let port: number;
    printLogOnFailure(() => envoy);
    beforeAll(async () => {
      [one, two] = await Promise.all([startBackEnd('one'), startBackEnd('two')]);
    });
    afterAll(async () => {
      await Promise.all([one.stop(), two.stop()]);
    });
    afterEach(async () => {
      await envoy.stop();
      await mesh.stop();
    });

    const start = async (source: object, adsConfig?: object): Promise<void> => {
      port = await freePort();
      mesh = await ServedMesh.start({ tickMs: 20 });
      mesh.publish({
        [CDS]: { one: clusterOf('one', source) },
        [EDS]: { one: assignment('one', [one.port]) },
        [LDS]: { web: listenerOf(source) },
        [RDS]: { table: table('table', 'one') },
      });
      const own = { ...ownService, initialFetchTimeout: '0s' };
      envoy = await startEnvoy({
        adsPort: mesh.server.port!,
        delta,
        node: { id: 'a' },
        extraBootstrap: { dynamicResources: { cdsConfig: own, ldsConfig: own, ...(adsConfig && { adsConfig }) } },
      });
      await envoy.ready();
    };
    const request = (): Promise<string> =>
      new Promise((resolve, reject) => {
        get({ host: '127.0.0.1', port, agent: false }, (response) => {
          let body = '';
          response.on('data', (text: Buffer) => (body += text.toString()));
          response.on('end', () => resolve(response.statusCode === 200 ? body : `${response.statusCode} ${body}`));
        }).on('error', reject);
      });
    const answers = (text: string): Promise<unknown> =>
      poll(`${text} answers`, async () => (await request().catch(String)) === text || undefined);
    const hasNoCluster = (name: string): Promise<unknown> =>
      poll('a cluster is gone', async () => {
        const { clusters } = await envoy.configDump();
        return clusters.every((entry) => entry.name !== name) || undefined;
      });
    const settled = (): Promise<unknown> =>
      poll('everything is accepted', () => {
        const types = mesh.server.streams().flatMap((stream) => stream.types);
        return Promise.resolve(types.every((type) => type.synced) || undefined);
      });
    const streamsByType = (): Record<string, number> => {
      const counts: Record<string, number> = {};
      for (const { types } of mesh.server.streams()) {
        const key = types.map(({ shortName }) => shortName).join('+');
        counts[key] = (counts[key] ?? 0) + 1;
      }
      return counts;
    };
    /** What can happen to each type, on its own. */
    const follows = async (source: object): Promise<void> => {
      mesh.publish({ [EDS]: { one: assignment('one', [two.port]) } });
      await answers('two');
      mesh.publish({ [CDS]: { one: clusterOf('one', source, { connectTimeout: { seconds: '2' } }) } });
      await settled();
      await poll('the changed cluster is warm', async () => {
        const { 'cluster_manager.warming_clusters': warming } = await envoy.stats('^cluster_manager.warming_clusters$');
        return warming === 0 || undefined;
      });
      await answers('two');
      mesh.publish({ [CDS]: { new: clusterOf('new', source) }, [EDS]: { new: assignment('new', [one.port]) } });
      await settled();
      mesh.publish({ [RDS]: { table: table('table', 'new') } });
      await answers('one');
      mesh.publish({ [CDS]: { one: undefined }, [EDS]: { one: undefined } });
      await hasNoCluster('one');
      mesh.publish({ [LDS]: { web: listenerOf(source, { perConnectionBufferLimitBytes: { value: 65_536 } }) } });
      await settled();
      await answers('one');
      expect(mesh.rejections).toEqual([]);
      expect(mesh.server.counts()).toMatchObject({ failures: 0, timeouts: 0 });
    };

    test('gets each type from its own service, and follows changes of each', async () => {
      await start(ownService);
      expect(await request()).toBe('one');
      expect(streamsByType()).toEqual({ cds: 1, eds: 1, lds: 1, rds: 1 });
      await follows(ownService);
    });

    test('gets clusters and listeners from their own services, and the rest over ADS', async () => {
      await start(overAds, fromControlPlane);
      expect(await request()).toBe('one');
      expect(streamsByType()).toEqual({ cds: 1, lds: 1, 'eds+rds': 1 });
      await follows(overAds);
    });

    test('that rejects a cluster keeps the former one, and takes what comes on the other streams', async () => {
      await start(ownService);
      const bad = { lbPolicy: 'MAGLEV', maglevLbConfig: { tableSize: { value: '4' } } };
      mesh.publish({ [CDS]: { one: clusterOf('one', ownService, bad) } });
      await poll('the rejection', () =>
        Promise.resolve(mesh.rejections.some(({ name }) => name === 'one') || undefined),
      );
      mesh.publish({ [EDS]: { one: assignment('one', [two.port]) } });
      await answers('two');
    });
  });
});
