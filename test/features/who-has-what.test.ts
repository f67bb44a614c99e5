import { expect, test } from 'vitest';
import { createProgram } from '../../src/app.ts';
import { runCli } from '../../src/cli/cli.ts';
import type { StatusReport } from '../../src/debug/status-report.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { type Program, get } from './program.ts';
import { type Proxy, RDS } from './proxy.ts';
import { REVIEWS, ratings, reviews, rule, split, splitRoutes } from './shop.ts';
import { Cluster } from './sources.ts';

const OTHER = 'sidecar~10.0.0.9~other.shop~shop.svc.cluster.local';

async function shop(...objects: readonly KubernetesObject[]) {
  const cluster = await Cluster.create();
  await cluster.apply(...reviews, ...ratings, ...objects);
  const program = await cluster.start({}, 'istio-system/fairlead-a');
  return { cluster, program };
}

const addressOf = ({ serving }: Program): string => `127.0.0.1:${serving.ports.monitoring}`;

async function report({ serving }: Program, query = ''): Promise<StatusReport> {
  const { status, body } = await get(serving.ports.health, `/debug/status${query}`);
  expect(status).toBe(200);
  return JSON.parse(body) as StatusReport;
}

/** What the command prints about these programs. */
async function status(programs: readonly (Program | string)[], ...args: readonly string[]) {
  let [out, err] = ['', ''];
  const addresses = programs.flatMap((each) => ['--address', typeof each === 'string' ? each : addressOf(each)]);
  const code = await runCli(['status', ...args, ...addresses], {
    program: () => Promise.resolve(createProgram()),
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    env: {},
    signal: new AbortController().signal,
  });
  return { code, out, err };
}

/** Cells of each line. */
const cells = (text: string): string[][] => text.split('\n').map((line) => line.split(/ {2,}/));

const seen = (proxy: Proxy, routes: readonly string[]): Promise<void> =>
  proxy.until(() => expect(proxy.routes('80')[REVIEWS]).toEqual(routes));

const nothing = 'All objects are acknowledged by the proxies that they concern.';

test.each([
  ['delta', true],
  ['state of the world', false],
])(
  'a silent proxy is named, with the object that waits for it and since when, until it answers: %s',
  async (_, delta) => {
    const { cluster, program } = await shop(rule, split(80, 20));
    const proxy = await program.connect(delta);
    await program.connect(delta, { id: OTHER });
    await expect
      .poll(() => report(program))
      .toMatchObject({ objects: [], proxies: [{ synced: true }, { synced: true }] });
    expect(cells((await status([program])).out)).toEqual(
      expect.arrayContaining([
        ['PROXY', 'BUILD', 'CONNECTED', 'STATE', 'WAITED FOR BY'],
        ['client.shop', '-', expect.any(String), 'SYNCED', '-'],
        [nothing],
      ]) as unknown,
    );

    proxy.fallSilent();
    await cluster.apply(split(10, 90));
    await seen(proxy, splitRoutes(10, 90));
    await expect.poll(() => report(program)).toMatchObject({ objects: [{ waitingCount: 1 }] });
    program.clock.skip(60_000);
    const found = await report(program);
    expect(found).toMatchObject({ replica: 'fairlead-a', held: [] });
    const [object] = found.objects;
    expect(object).toMatchObject({
      ...{ object: 'VirtualService/shop/reviews', generation: 2, isDeleted: false, state: 'waiting' },
      ...{ waiting: [{ proxy: 'client.shop', since: object!.since }], rejections: [], rejectingCount: 0 },
    });
    expect(Date.parse(found.at) - Date.parse(object!.since)).toBeGreaterThanOrEqual(60_000);
    const [silent, other] = found.proxies;
    expect(silent).toMatchObject({ proxy: 'client.shop', node: proxy.id, synced: false, waitedForByCount: 1 });
    expect(silent).toMatchObject({ waitedForBy: ['VirtualService/shop/reviews'], behindSince: object!.since });
    expect(silent!.types['rds']).toMatchObject({ synced: false, unansweredSince: expect.any(String) as string });
    expect(silent!.types['cds']).toMatchObject({ synced: true });
    expect(other).toMatchObject({ proxy: 'other.shop', synced: true, waitedForBy: [] });

    const { code, out } = await status([program]);
    expect(code).toBe(0);
    const age = expect.stringMatching(/^[1-9]\d+s ago$/) as string;
    expect(cells(out)).toContainEqual(['VirtualService/shop/reviews', '2', age, 'waits for client.shop']);
    const behind = expect.stringMatching(/^BEHIND [1-9]\d+s$/) as string;
    expect(cells(out)[1]).toEqual(['client.shop', ...Array<unknown>(2).fill(expect.anything()), behind, '1 object']);

    const detail = await status([program], 'client.shop');
    const waits = expect.stringMatching(/^not acknowledged for [1-9]\d+s$/) as string;
    expect(cells(detail.out)).toContainEqual(['VirtualService/shop/reviews', '2', age, waits]);
    expect(cells(detail.out)).toContainEqual(['rds', expect.stringMatching(/^NO ANSWER [1-9]\d+s$/), '0', '-']);
    expect((await status([program], OTHER)).out).toContain('No object waits for it.');

    proxy.speak();
    await expect
      .poll(() => report(program))
      .toMatchObject({ objects: [], proxies: [{ synced: true }, { synced: true }] });
  },
);

test('a proxy that rejects something is named with its words; when all do, what is in force instead, also when they are gone', async () => {
  const { cluster, program } = await shop(rule, split(80, 20));
  // What may be rejected goes to the first proxy first.
  const others = [await program.connect(true, { id: OTHER }), await program.connect(true, { id: `${OTHER}2` })];
  const proxy = await program.connect(true);
  await expect.poll(() => report(program)).toMatchObject({ objects: [] });
  proxy.rejects = ({ typeUrl }) => (typeUrl === RDS ? 'these weights are bad' : undefined);
  await cluster.apply(split(10, 90));
  for (const other of others) await seen(other, splitRoutes(10, 90));
  const rejection = { proxy: 'client.shop', typeUrl: RDS, name: '80', message: 'these weights are bad' };
  await expect
    .poll(() => report(program))
    .toMatchObject({ objects: [{ state: 'rejected', rejections: [rejection], rejectingCount: 1, waiting: [] }] });
  const found = await report(program);
  expect(found.objects[0]).not.toHaveProperty('inForce');
  expect(found.proxies[2]).toMatchObject({ waitedForBy: ['VirtualService/shop/reviews'] });
  expect(found.proxies[2]!.types['rds']).toMatchObject({
    ...{ rejected: ['80'], rejectedCount: 1, error: 'these weights are bad' },
  });
  const { out } = await status([program]);
  expect(cells(out)[1]![3]).toBe('REJECTS 1');
  expect(out).toContain('  rejected by client.shop: RouteConfiguration 80: "these weights are bad"\n');
  const detail = (await status([program], 'client.shop')).out;
  expect(cells(detail)).toContainEqual(['rds', 'REJECTS 1', '0', 'rejects 80; "these weights are bad"']);
  expect(detail).toContain('  rejected: RouteConfiguration 80: "these weights are bad"\n');

  for (const other of others) other.rejects = proxy.rejects;
  await cluster.apply(split(30, 70));
  await expect
    .poll(() => report(program), { timeout: 10_000 })
    .toMatchObject({ objects: [{ generation: 3, state: 'rejected', inForce: expect.any(Number) as number }] });
  expect((await status([program])).out).toMatch(/these weights are bad"; generation \d is in force\n/);

  for (const each of [proxy, ...others]) each.close();
  await expect.poll(() => report(program)).toMatchObject({ proxies: [] });
  const { rejections } = (await report(program)).objects[0]!;
  expect(rejections.map((each) => each.proxy)).toContain('client.shop');
});

test('a deleted object is shown until its effect is gone from every proxy', async () => {
  const { cluster, program } = await shop(rule, split(80, 20));
  const proxy = await program.connect(true);
  await expect.poll(() => report(program)).toMatchObject({ objects: [] });
  proxy.fallSilent();
  await cluster.delete(split(80, 20));
  await proxy.until(() => expect(proxy.routes('80')[REVIEWS]).not.toEqual(splitRoutes(80, 20)));
  await expect
    .poll(() => report(program))
    .toMatchObject({
      objects: [{ object: 'VirtualService/shop/reviews', isDeleted: true, waiting: [{ proxy: 'client.shop' }] }],
    });
  const line = ['VirtualService/shop/reviews', 'deleted', expect.any(String), 'waits for client.shop'];
  expect(cells((await status([program])).out)).toContainEqual(line);
  program.clock.skip(600_000);
  expect(cells((await status([program])).out)).toContainEqual(line);
  proxy.speak();
  await expect.poll(() => report(program)).toMatchObject({ objects: [] });
  expect((await status([program])).out).toContain(nothing);
});

test('replicas are asked together, and those that do not answer are named', async () => {
  const { cluster, program: one } = await shop(rule, split(80, 20));
  const two = await cluster.start({}, 'istio-system/fairlead-b');
  const mine = await one.connect(true);
  const theirs = await two.connect(true, { id: OTHER });
  for (const program of [one, two]) await expect.poll(() => report(program)).toMatchObject({ objects: [] });
  for (const proxy of [mine, theirs]) proxy.fallSilent();
  await cluster.apply(split(10, 90));
  for (const proxy of [mine, theirs]) await seen(proxy, splitRoutes(10, 90));
  for (const program of [one, two])
    await expect.poll(() => report(program)).toMatchObject({ objects: [{ waitingCount: 1 }] });

  const both = cells((await status([one, two])).out);
  expect(both).toContainEqual(['client.shop', ...Array<unknown>(4).fill(expect.anything()), 'fairlead-a']);
  expect(both).toContainEqual(['other.shop', ...Array<unknown>(4).fill(expect.anything()), 'fairlead-b']);
  const waits = ['VirtualService/shop/reviews', '2', expect.any(String), 'waits for client.shop, other.shop'];
  expect(both).toContainEqual(waits);
  expect(await status([one, two], 'other.shop')).toMatchObject({ code: 0, out: expect.stringContaining('fairlead-b') });

  const json = await status([one, two], '-o', 'json');
  expect(JSON.parse(json.out)).toMatchObject({
    replicas: [
      { address: addressOf(one), replica: 'fairlead-a', proxies: [{ proxy: 'client.shop' }] },
      { address: addressOf(two), replica: 'fairlead-b', proxies: [{ proxy: 'other.shop' }] },
    ],
  });

  expect(await status([one, two], 'nobody.shop')).toEqual({
    ...{ code: 1, out: '' },
    err: 'error: proxy nobody.shop is not connected to fairlead-a, fairlead-b\n',
  });
  const gone = addressOf(two);
  await two.stop();
  const { code, out, err } = await status([one, gone]);
  expect([code, err]).toEqual([1, expect.stringMatching(new RegExp(`^error: ${gone}: .*ECONNREFUSED`))]);
  expect(out).toContain('waits for client.shop\n');
});
