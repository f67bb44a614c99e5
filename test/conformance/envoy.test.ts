import { Agent, get } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type RunningEnvoy, startEnvoy } from '../peers/envoy.ts';
import { poll } from '../peers/process.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import {
  assignment,
  type BackEnd,
  cluster,
  freePort,
  inlineListener,
  listener,
  rangeListener,
  startBackEnd,
  table,
  misplacedListener,
} from './envoy-resources.ts';
import { CDS, EDS, LDS, RDS, ServedMesh } from './served-mesh.ts';

const TIMES = { lingerMs: 50, timeoutMs: 2_000, overdueMs: 300, stuckMs: 100, drainMs: 5_000 };

withPeers(['envoy'], 'a real Envoy', () => {
  describe.each([
    ['delta', true],
    ['state of the world', false],
  ])('over %s', (_, delta) => {
    let one: BackEnd;
    let two: BackEnd;
    let mesh: ServedMesh;
    let envoy: RunningEnvoy;
    let port: number;
    let adsPort: number;
    /** A server that serves `one`, but for what is said otherwise. */
    const serve = async (otherwise: Parameters<ServedMesh['publish']>[0] = {}): Promise<void> => {
      mesh = await ServedMesh.start({ plaintext: { host: '127.0.0.1', port: adsPort }, times: TIMES, tickMs: 20 });
      mesh.publish({
        [CDS]: { one: cluster('one') },
        [EDS]: { one: assignment('one', [one.port]) },
        [LDS]: { web: listener('web', port, 'table') },
        [RDS]: { table: table('table', 'one') },
        ...otherwise,
      });
    };
    printLogOnFailure(() => envoy);

    beforeAll(async () => {
      [one, two] = await Promise.all([startBackEnd('one'), startBackEnd('two')]);
    });
    afterAll(async () => {
      await Promise.all([one.stop(), two.stop()]);
    });
    beforeEach(async () => {
      [port, adsPort] = [await freePort(), await freePort()];
      await serve();
      envoy = await startEnvoy({ adsPort: mesh.server.port!, delta, node: { id: 'a' } });
      await envoy.ready();
    });
    afterEach(async () => {
      await envoy.stop();
      await mesh.stop();
    });

    const request = (agent?: Agent): Promise<string> =>
      new Promise((resolve, reject) => {
        get({ host: '127.0.0.1', port, agent: agent ?? false }, (response) => {
          let body = '';
          response.on('data', (text: Buffer) => (body += text.toString()));
          response.on('end', () => resolve(response.statusCode === 200 ? body : `${response.statusCode} ${body}`));
        }).on('error', reject);
      });
    const accepted = (): Promise<true> =>
      poll('everything is accepted', async () => {
        const types = mesh.server.streams().flatMap((stream) => stream.types);
        return Promise.resolve(types.every((type) => type.synced) || undefined);
      });

    test('is configured from nothing', async () => {
      expect(await request()).toBe('one');
      await accepted();
      expect(mesh.rejections).toEqual([]);
    });

    test('loses no request when its traffic moves from cluster to cluster', async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 20 });
      const seen = new Map<string, number>();
      let running = true;
      const workers = Array.from({ length: 20 }, async () => {
        while (running) {
          const answer = await request(agent).catch((error: unknown) => String(error));
          seen.set(answer, (seen.get(answer) ?? 0) + 1);
        }
      });
      let last = 'one';
      for (let i = 0; i < 10; i++) {
        const name = `cluster-${i}`;
        const to = i % 2 === 0 ? two : one;
        mesh.publish({
          [CDS]: { [name]: cluster(name), [last]: undefined },
          [EDS]: { [name]: assignment(name, [to.port]), [last]: undefined },
          [RDS]: { table: table('table', name) },
        });
        last = name;
        await accepted();
      }
      await poll('only the last cluster is left', async () => {
        const names = (await envoy.configDump()).clusters.map((entry) => entry.name);
        return (names.length === 1 && names[0] === last) || undefined;
      });
      running = false;
      await Promise.all(workers);
      agent.destroy();
      expect([...seen.keys()].sort()).toEqual(['one', 'two']);
      expect(mesh.server.counts()).toMatchObject({ timeouts: 0, failures: 0 });
    });

    test('is given the endpoints of a changed cluster without asking', async () => {
      mesh.publish({ [CDS]: { one: cluster('one', { connectTimeout: { seconds: '2' } }) } });
      await accepted();
      expect(await request()).toBe('one');
    });

    test('rejects one of many assignments, and gets all others', async () => {
      const names = Array.from({ length: 7 }, (_, i) => `c${i}`);
      const all = (make: (name: string, i: number) => Uint8Array): Record<string, Uint8Array> =>
        Object.fromEntries(names.map((name, i) => [name, make(name, i)]));
      mesh.publish({ [CDS]: all((name) => cluster(name)), [EDS]: all((name) => assignment(name, [one.port])) });
      await accepted();
      mesh.publish({ [EDS]: all((name, i) => assignment(name, [two.port], i === 4 ? 'nonsense' : '127.0.0.1')) });
      await accepted();
      const named = mesh.rejections.filter((rejection) => rejection.name !== undefined);
      expect(named.map((rejection) => rejection.name)).toEqual(['c4']);
      expect(named[0]!.message).toContain('malformed IP address');
      const dump = await envoy.configDump();
      const portOf = (name: string): string =>
        JSON.stringify(dump.endpoints.find((entry) => entry.name === name)?.resource);
      for (const name of names) expect(portOf(name)).toContain(String(name === 'c4' ? one.port : two.port));
    });

    test('rejects one of two tables, keeps its former version, and gets the other', async () => {
      const other = await freePort();
      mesh.publish({
        [LDS]: { other: listener('other', other, 'second') },
        [RDS]: { second: table('second', 'one') },
      });
      await poll(
        'the second table is there',
        async () => (await envoy.configDump()).routes.some((entry) => entry.name === 'second') || undefined,
      );
      await accepted();
      const bad = { domains: ['*', '*'] };
      mesh.publish({
        [RDS]: { table: table('table', 'one', { name: 'changed' }), second: table('second', 'one', bad) },
      });
      await accepted();
      expect(mesh.rejections.flatMap((rejection) => rejection.name ?? [])).toEqual(['second']);
      const routes = (await envoy.configDump()).routes;
      expect(JSON.stringify(routes.find((entry) => entry.name === 'table'))).toContain('changed');
      expect(await request()).toBe('one');
    });

    test('rejects a new cluster that would warm for ever, and takes all that follows', async () => {
      const stuck = {
        lbPolicy: 'RING_HASH' as const,
        ringHashLbConfig: { minimumRingSize: { value: '100' }, maximumRingSize: { value: '10' } },
      };
      mesh.publish({
        [CDS]: { bad: cluster('bad', stuck), good: cluster('good') },
        [EDS]: { bad: assignment('bad', [one.port]), good: assignment('good', [two.port]) },
      });
      await accepted();
      expect(mesh.rejections.map((rejection) => rejection.name)).toEqual(['bad']);
      mesh.publish({ [CDS]: { later: cluster('later') }, [EDS]: { later: assignment('later', [two.port]) } });
      mesh.publish({ [RDS]: { table: table('table', 'later') } });
      await accepted();
      expect(await request()).toBe('two');
      expect((await envoy.configDump()).clusters.map((entry) => entry.name).sort()).toEqual(['good', 'later', 'one']);
    });

    test('rejects a new version of a live cluster beside a new one, and goes on', async () => {
      const stuck = {
        lbPolicy: 'RING_HASH' as const,
        ringHashLbConfig: { minimumRingSize: { value: '100' }, maximumRingSize: { value: '10' } },
      };
      mesh.publish({
        [CDS]: { one: cluster('one', stuck), later: cluster('later') },
        [EDS]: { later: assignment('later', [two.port]) },
        [RDS]: { table: table('table', 'later') },
      });
      await accepted();
      expect(mesh.rejections.map((rejection) => rejection.name)).toEqual(['one']);
      expect(await request()).toBe('two');
      mesh.publish({ [RDS]: { table: table('table', 'one') } });
      await accepted();
      expect(await request()).toBe('one');
      mesh.publish({ [CDS]: { one: cluster('one', { connectTimeout: { seconds: '2' } }) } });
      await accepted();
      expect(await request()).toBe('one');
    });

    test('rejects a new version of a live cluster, and keeps using the old one', async () => {
      const stuck = {
        lbPolicy: 'RING_HASH' as const,
        ringHashLbConfig: { minimumRingSize: { value: '100' }, maximumRingSize: { value: '10' } },
      };
      mesh.publish({ [CDS]: { one: cluster('one', stuck) } });
      await accepted();
      expect(mesh.rejections.map((rejection) => rejection.name)).toEqual(['one']);
      mesh.publish({ [CDS]: { later: cluster('later') }, [EDS]: { later: assignment('later', [two.port]) } });
      await accepted();
      expect(await request()).toBe('one');
    });

    test.each<[string, Parameters<ServedMesh['publish']>[0]]>([
      ['table', { [RDS]: { table: table('table', 'one', { domains: ['*', '*'] }) } }],
      ['assignment', { [EDS]: { one: assignment('one', [1], 'nonsense') } }],
      [
        'cluster',
        { [CDS]: { one: cluster('one', { lbPolicy: 'MAGLEV', maglevLbConfig: { tableSize: { value: '4' } } }) } },
      ],
      ['listener', { [LDS]: { web: misplacedListener('web') } }],
    ])('keeps what it has when the server comes back with a %s that it rejects', async (_kind, bad) => {
      expect(await request()).toBe('one');
      await accepted();
      await mesh.stop();
      await serve(bad);
      await poll('a rejection', () =>
        Promise.resolve(mesh.rejections.some(({ name }) => name !== undefined) || undefined),
      );
      expect(await request()).toBe('one');
      mesh.publish({ [CDS]: { later: cluster('later') }, [EDS]: { later: assignment('later', [two.port]) } });
      await poll(
        'what is changed then is there',
        async () => (await envoy.configDump()).clusters.some((entry) => entry.name === 'later') || undefined,
      );
      expect(await request()).toBe('one');
    });

    test.each([
      ['takes HTTP to it, too', { range: '127.0.0.0/8', ranged: 'two', http: 'one' }],
      ['leaves the rest to the chain for HTTP', { range: '10.0.0.0/8', ranged: 'one', http: 'two' }],
    ])('a chain for a range of addresses %s', async (_title, chains) => {
      mesh.publish({
        [CDS]: { two: cluster('two') },
        [EDS]: { two: assignment('two', [two.port]) },
        [LDS]: { web: rangeListener('web', port, chains) },
      });
      await accepted();
      await poll('connections go elsewhere', async () => (await request()) === 'two' || undefined);
    });

    test('answers on idle connections while a former listener with routes of its own drains', async () => {
      mesh.publish({ [LDS]: { web: inlineListener('web', port, 'one') } });
      await accepted();
      const agents = Array.from({ length: 20 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
      expect(new Set(await Promise.all(agents.map(request)))).toEqual(new Set(['one']));
      mesh.publish({
        [CDS]: { two: cluster('two'), one: undefined },
        [EDS]: { two: assignment('two', [two.port]), one: undefined },
        [LDS]: { web: inlineListener('web', port, 'two') },
      });
      await accepted();
      await poll('new connections go elsewhere', async () => (await request()) === 'two' || undefined);
      // More than a linger, and less than a drain.
      mesh.pass(3_000);
      mesh.publish({ [CDS]: { later: cluster('later') }, [EDS]: { later: assignment('later', [two.port]) } });
      await accepted();
      for (const answer of await Promise.all(agents.map(request))) expect(['one', 'two']).toContain(answer);
      await poll('the former cluster goes in the end', async () => {
        const names = (await envoy.configDump()).clusters.map((entry) => entry.name);
        return !names.includes('one') || undefined;
      });
      for (const agent of agents) agent.destroy();
    });
  });
});
