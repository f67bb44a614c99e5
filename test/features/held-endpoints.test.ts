import { beforeEach, describe, expect, test } from 'vitest';
import { createProgram } from '../../src/app.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { pod, service, slice } from './objects.ts';
import { type Program, get } from './program.ts';
import type { Proxy } from './proxy.ts';
import { clusterOf } from './shop.ts';
import { Cluster, EVENTS } from './sources.ts';
import { later } from './skipping-clock.ts';

const MINUTES = 60_000;
const [ONE, TWO] = ['10.1.0.1', '10.1.0.2'];

/** A Pod of the reviews, with a uid of its own. */
function reviews(name: string, ip: string, uid = `uid-of-${name}`) {
  const { metadata, ...rest } = pod(name, ip, { app: 'reviews' });
  return { ...rest, metadata: { ...metadata, uid } };
}

const target = (name: string, ip: string) => ({
  addresses: [ip],
  targetRef: { kind: 'Pod', namespace: 'shop', name, uid: `uid-of-${name}` },
});
const [first, second] = [target('reviews-1', ONE), target('reviews-2', TWO)];

let cluster: Cluster;
let program: Program;
let proxy: Proxy;

async function serve(...more: readonly KubernetesObject[]): Promise<void> {
  cluster = await Cluster.create();
  const pods = [reviews('reviews-1', ONE), reviews('reviews-2', TWO)];
  await cluster.apply(service('reviews', '10.96.0.1'), slice('reviews', [first, second]), ...pods, ...more);
  program = await cluster.start();
  proxy = await program.connect(true);
}

/** The server changes while nobody hears of it, and then cannot resume the watches: each kind is listed. */
async function relist(change: () => Promise<void>): Promise<void> {
  cluster.loseEvents();
  await change();
  const lists = cluster.lists();
  const open = cluster.server.cluster.watches().length;
  cluster.server.cluster.compact();
  cluster.endWatches();
  await expect.poll(() => cluster.lists() - lists, { timeout: 15_000 }).toBeGreaterThanOrEqual(16);
  // A watch begins where a list ended: all have been read.
  await expect.poll(() => cluster.server.cluster.watches().length, { timeout: 15_000 }).toBeGreaterThanOrEqual(open);
  await program.settled();
}

const served = (): readonly string[] => (proxy.endpoints()[clusterOf()] ?? []).map((endpoint) => endpoint.slice(0, 8));
const held = async () =>
  JSON.parse((await get(program.serving.ports.monitoring, '/debug/held')).body) as readonly Record<string, unknown>[];
const metric = async (name: string): Promise<number> => {
  const { body } = await get(program.serving.ports.monitoring, '/metrics');
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(body)?.[1]);
};

describe('an endpoint that a list of the API server lost', () => {
  beforeEach(() => serve());

  test('is served while its Pod is there and ready, and everybody can see it', async () => {
    await relist(() => cluster.apply(slice('reviews', [first])));
    expect(served()).toEqual([ONE, TWO]);
    expect(await held()).toMatchObject([
      { service: 'shop/reviews', address: TWO, pod: 'shop/reviews-2', confirmed: false },
    ]);
    // News of Pods that come later than the list.
    program.clock.skip(2_000);
    cluster.server.cluster.bookmark();
    await expect.poll(async () => (await held())[0]?.['confirmed']).toBe(true);
    expect(await program.logged('Endpoints are held')).toMatchObject({ service: 'shop/reviews', endpoints: 1 });
    await later(program, () => cluster.server.cluster.objects(EVENTS)).toMatchObject([
      {
        reason: 'EndpointsHeld',
        regarding: { kind: 'Service', namespace: 'shop', name: 'reviews' },
        note: expect.stringContaining(`${TWO} (Pod reviews-2)`),
      },
    ]);
    expect(await metric('fairlead_held_endpoints')).toBe(1);
    program.clock.skip(5 * MINUTES);
    await program.sent(proxy, () => expect(served()).toEqual([ONE]));
    expect(await held()).toEqual([]);
  });

  test('goes when its Pod does, although nothing else changes', async () => {
    await relist(() => cluster.apply(slice('reviews', [])));
    expect(served()).toEqual([ONE, TWO]);
    await cluster.delete(reviews('reviews-2', TWO));
    await program.sent(proxy, () => expect(served()).toEqual([ONE]));
  });

  test('goes at once if its Pod went unseen too', async () => {
    await relist(async () => {
      await cluster.apply(slice('reviews', [first]));
      await cluster.delete(reviews('reviews-2', TWO));
    });
    await program.sent(proxy, () => expect(served()).toEqual([ONE]));
    expect(await held()).toEqual([]);
  });

  test('goes when somebody releases it', async () => {
    await relist(() => cluster.apply(slice('reviews', [first])));
    expect(served()).toEqual([ONE, TWO]);
    const { release } = createProgram();
    const settings = { source: { kind: 'kubernetes', kubeconfig: cluster.kubeconfig }, rootNamespace: '' } as const;
    const { signal } = new AbortController();
    await release(settings, { namespace: 'shop', name: 'reviews' }, signal);
    await program.sent(proxy, () => expect(served()).toEqual([ONE]));
    await expect(release(settings, { namespace: 'shop', name: 'other' }, signal)).rejects.toMatchObject({
      code: 'CLUSTER',
      message: expect.stringContaining('Service shop/other cannot be changed'),
    });
  });

  test('goes when its Service does', async () => {
    await relist(() => cluster.apply(slice('reviews', [])));
    await cluster.delete(service('reviews', '10.96.0.1'));
    await program.sent(proxy, () => expect(proxy.clusters()).not.toContain(clusterOf()));
  });

  test('is not one that a watch event removes, even the last', async () => {
    await cluster.apply(slice('reviews', []));
    await program.sent(proxy, () => expect(served()).toEqual([]));
    expect(await held()).toEqual([]);
  });

  test('is not one that moved to another slice', async () => {
    await relist(async () => {
      await cluster.apply(slice('reviews', [first, second], 'b'));
      await cluster.delete(slice('reviews', []));
    });
    expect(served()).toEqual([ONE, TWO]);
    expect(await held()).toEqual([]);
  });
});

test('a list without most slices and Pods is believed when another one agrees', async () => {
  const names = Array.from({ length: 12 }, (_, i) => `more-${i}`);
  const pods = names.map((name, i) => reviews(name, `10.1.1.${i + 1}`));
  const slices = names.map((name, i) => slice('reviews', [target(name, `10.1.1.${i + 1}`)], name));
  await serve(...pods, ...slices);
  expect(served()).toHaveLength(14);
  await relist(() => cluster.delete(...pods, ...slices));
  expect(served()).toHaveLength(14);
  expect(await metric('fairlead_kind_doubted{kind="Pod"}'.replace(/[{}]/g, '\\$&'))).toBe(12);
  expect(await metric('fairlead_kind_doubted{kind="EndpointSlice"}'.replace(/[{}]/g, '\\$&'))).toBe(12);
  program.clock.skip(31_000);
  await program.sent(proxy, () => expect(served()).toEqual([ONE, TWO]));
});
