import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { virtualService } from '../features/objects.ts';
import { Program } from '../features/program.ts';
import type { Proxy } from '../features/proxy.ts';
import { clusterOf, REVIEWS } from '../features/shop.ts';
import { startApiServer, type ApiObject, type RunningApiServer } from '../peers/api-server.ts';
import { poll } from '../peers/process.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';

const VIRTUAL_SERVICE = '/apis/networking.istio.io/v1/namespaces/shop/virtualservices/reviews';
const KEPT = '/apis/fairlead.dev/v1alpha1/namespaces/shop/generationsinforce';

withPeers(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'], 'on a real API server', () => {
  let server: RunningApiServer;

  beforeAll(async () => {
    server = await startApiServer({ controllers: true });
    const crds = resolve(import.meta.dirname, '../../crds');
    for (const name of readdirSync(crds)) await server.apply(readFileSync(join(crds, name), 'utf8'));
    await server.kubectl('wait', '--for=condition=Established', 'crd', '--all');
    for (const name of ['shop', 'istio-system'])
      await server.call('POST', '/api/v1/namespaces', { metadata: { name } });
    await server.call('POST', '/api/v1/namespaces/shop/services', {
      metadata: { name: 'reviews' },
      spec: { selector: { app: 'reviews' }, ports: [{ name: 'http', port: 80 }] },
    });
  });
  afterAll(() => server?.stop());
  printLogOnFailure(() => server);

  const put = async (path: string, value = 'plain'): Promise<void> => {
    const headers = { request: { set: { 'x-kind': value } } };
    const http = [{ match: [{ uri: { prefix: path } }], headers, route: [{ destination: { host: 'reviews' } }] }];
    await server.apply(JSON.stringify(virtualService('reviews', { hosts: ['reviews'], http })));
  };
  const kept = async (): Promise<readonly ApiObject[]> =>
    (await server.call('GET', KEPT))['items'] as readonly ApiObject[];
  const start = (): Promise<Program> => Program.start({ kubeconfig: server.kubeconfig });
  const serves = (proxy: Proxy, path: string): void =>
    expect(proxy.routes('80')[REVIEWS]).toEqual([`${path} -> ${clusterOf()}`]);
  const keeps = (spec: object): Promise<true> =>
    poll('what is kept', async () => {
      const [found] = await kept();
      const matches = Object.entries(spec).every(([name, value]) => (found?.['spec'] as never)?.[name] === value);
      return found !== undefined && matches ? true : undefined;
    });

  test('the largest that is written is taken, unchanged', async () => {
    const spec = {
      object: { kind: 'VirtualService', name: 'large', uid: 'u' },
      newest: 2,
      inForce: 1,
      reason: 'Invalid',
      former: [
        {
          apiVersion: 'networking.istio.io/v1',
          generation: 1,
          labels: { a: 'b' },
          spec: {
            hosts: ['large'],
            http: Array.from({ length: 13_800 }, (_, i) => ({ name: `${i}`.padStart(80), x: null })),
          },
        },
      ],
      rejected: [
        { generation: 2, proxies: 1, rejections: [{ nodeId: 'n', build: 'b', typeUrl: 't', name: 'r', message: 'm' }] },
      ],
    };
    expect(JSON.stringify(spec).length).toBeGreaterThan(1_380_000);
    expect(JSON.stringify(spec).length).toBeLessThan(1_400_000);
    const body = { apiVersion: 'fairlead.dev/v1alpha1', kind: 'GenerationInForce', metadata: { name: 'large' }, spec };
    const answer = await server.call('POST', KEPT, body);
    expect(answer['spec']).toEqual(spec);
    await server.call('DELETE', `${KEPT}/large`);
  });

  test('what was good stays in force over restarts, and goes with the object', { timeout: 120_000 }, async () => {
    await put('/good');
    const first = await start();
    const before = await first.connect(true);
    serves(before, '/good');
    await server.kubectl('wait', '-n', 'shop', '--for=condition=Programmed', 'virtualservice/reviews', '--timeout=30s');
    await put('/bad', '%REQ(');
    await keeps({ newest: 2, inForce: 1 });
    await put('/worse', '%REQ(');
    await keeps({ newest: 3, inForce: 1 });
    const { metadata } = await server.call('GET', VIRTUAL_SERVICE);
    const owner = {
      apiVersion: 'networking.istio.io/v1',
      kind: 'VirtualService',
      name: 'reviews',
      uid: metadata!['uid'],
    };
    expect(await kept()).toMatchObject([
      {
        metadata: { name: 'virtualservice-reviews', ownerReferences: [owner] },
        spec: { object: { kind: 'VirtualService', name: 'reviews', uid: metadata!['uid'] }, reason: 'Invalid' },
      },
    ]);
    const table = await server.kubectl('get', '-n', 'shop', 'generationsinforce');
    expect(table.split('\n').map((line) => line.trim().split(/ {2,}/).slice(0, 6))).toMatchObject([
      ['NAME', 'KIND', 'OBJECT', 'IN FORCE', 'NEWEST', 'REASON'],
      ['virtualservice-reviews', 'VirtualService', 'reviews', '1', '3', 'Invalid'],
      [''],
    ]);
    await first.stop();

    const second = await start();
    const proxy = await second.connect(true);
    serves(proxy, '/good');
    await second.stop();

    // Repaired, and made invalid again.
    const third = await start();
    const last = await third.connect(true);
    await put('/mended');
    await last.until(() => serves(last, '/mended'));
    await third.settled();
    third.clock.skip(60_000);
    await poll('nothing kept', async () => ((await kept()).length === 0 ? true : undefined));
    await put('/bad', '%REQ(');
    await keeps({ newest: 5, inForce: 4 });
    await third.stop();

    // Nobody but the garbage collector is there.
    await server.call('DELETE', VIRTUAL_SERVICE);
    await poll('nothing kept', async () => ((await kept()).length === 0 ? true : undefined));
  });
});
