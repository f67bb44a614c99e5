import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { virtualService } from './objects.ts';
import { get } from './program.ts';
import { clusterOf, RATINGS, ratings, REVIEWS, reviews, rule, split, splitRoutes } from './shop.ts';
import { Directory } from './sources.ts';
import { PATIENCE } from './waiters.ts';

const documents = (...objects: readonly unknown[]): string => objects.map((each) => stringify(each)).join('---\n');

const routes = (...route: readonly unknown[]) => virtualService('reviews', { hosts: ['reviews'], http: [{ route }] });

/** The shop in one file, its routes in another one. */
async function serve() {
  const directory = await Directory.create();
  await directory.write('shop.yaml', documents(...reviews, ...ratings));
  await directory.write('routes.yaml', documents(rule, split(80, 20)));
  const program = await directory.start();
  const proxy = await program.connect(true);
  return { directory, program, proxy };
}

test('a file with a broken document keeps what it had, and says in which line', async () => {
  const { directory, program, proxy } = await serve();
  const broken = `${documents(rule)}---\n${stringify(split(50, 50)).replace('spec:', 'spec: {')}`;
  await directory.write('routes.yaml', broken);
  const said = await program.logged('File has a problem');
  expect(said).toMatchObject({ level: 'error', place: expect.stringMatching(`^${directory.path}/routes.yaml:\\d+$`) });
  expect(Number(String(said['place']).split(':')[1])).toBeGreaterThan(documents(rule).split('\n').length);
  await program.settled();
  expect(proxy.takeChanges()).toEqual({});

  // Others go on.
  const [service, slice] = ratings;
  await directory.write('shop.yaml', documents(...reviews, service, { ...slice, endpoints: [] }));
  const others = await program.sent(proxy, (p) => expect(p.endpoints()[clusterOf('ratings')]).toEqual([]));
  expect(others).toEqual({ eds: [`~${clusterOf('ratings')}`] });

  await directory.write('routes.yaml', documents(rule, split(50, 50)));
  const mended = await program.sent(proxy, (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(50, 50)));
  expect(mended).toEqual({ rds: ['~80'] });
});

test('an object that fails its schema keeps its last good version, and others of its file are followed', async () => {
  const { directory, program, proxy } = await serve();
  const wrong = routes({ destination: { host: 'reviews' }, weight: 'half' });
  const onlyV1 = { ...rule, spec: { ...rule.spec, subsets: [{ name: 'v1', labels: { version: 'v1' } }] } };
  await directory.write('routes.yaml', documents(onlyV1, wrong));
  await program.sent(proxy, (p) =>
    expect(p.routes('80')[REVIEWS]).toEqual([`/ -> ${clusterOf('reviews', 'v1')} 80, BlackHoleCluster 20`]),
  );
  const text = documents(onlyV1, wrong).split('\n');
  expect(await program.logged('File has a problem')).toMatchObject({
    level: 'error',
    place: `${join(directory.path, 'routes.yaml')}:${text.findIndex((line) => line.includes('weight: half')) + 1}`,
    object: 'VirtualService/shop/reviews',
    field: 'spec.http[0].route[0].weight',
  });
});

test('what is wrong from the beginning is left out, and the rest is served', async () => {
  const directory = await Directory.create();
  await directory.write('shop.yaml', documents(...reviews));
  await directory.write('broken.yaml', 'kind: [');
  await directory.write('binary.yaml', '\u0000\u0001');
  const program = await directory.start();
  const proxy = await program.connect(true);
  expect(proxy.routes('80')).toEqual({ [REVIEWS]: [`/ -> ${clusterOf()}`] });
  const said = program.log.filter(({ msg }) => msg === 'File has a problem');
  const files = said.map(({ place }) => String(place).split(':')[0]);
  expect(new Set(files)).toEqual(new Set(['binary.yaml', 'broken.yaml'].map((file) => join(directory.path, file))));
});

test('a reference that leads nowhere is said with its place, as there is no status', async () => {
  const { directory, program, proxy } = await serve();
  const elsewhere = routes({ destination: { host: 'nowhere' } });
  await directory.write('routes.yaml', documents(rule, elsewhere));
  await program.sent(proxy, (p) => expect(p.routes('80')[REVIEWS]).toEqual(['/ -> BlackHoleCluster']));
  const said = await program.logged('Object has a problem');
  const line =
    documents(rule, elsewhere)
      .split('\n')
      .findIndex((each) => each.includes('host: nowhere')) + 1;
  expect(said).toMatchObject({
    level: 'warn',
    place: `${join(directory.path, 'routes.yaml')}:${line}`,
    object: 'VirtualService/shop/reviews',
    field: 'spec.http[0].route[0].destination.host',
    reason: 'RefNotFound',
  });
  const page = await get(program.serving.ports.health, '/debug/problems');
  expect(page.body).toContain(said['place']);
});

test('a kind that is not read is said once, with what does not happen', async () => {
  const { directory, program } = await serve();
  const telemetry = (name: string) => ({
    apiVersion: 'telemetry.istio.io/v1',
    kind: 'Telemetry',
    metadata: { name, namespace: 'shop' },
  });
  await directory.write('telemetry.yaml', documents(telemetry('a'), telemetry('b')));
  expect(await program.logged('File has a problem')).toMatchObject({
    level: 'warn',
    place: expect.stringMatching(`^${directory.path}/telemetry.yaml:\\d+$`),
    problem: expect.stringContaining('access logs'),
  });
  await directory.write('broken.yaml', 'kind: [');
  const files = (): string[] =>
    program.log.flatMap(({ msg, place }) => (msg === 'File has a problem' ? [String(place).split(':')[0]!] : []));
  await expect
    .poll(() => files().map((file) => file.slice(directory.path.length + 1)), { timeout: PATIENCE })
    .toEqual(['telemetry.yaml', 'broken.yaml']);
});

test('a file that goes takes its objects with it, and no others', async () => {
  const { directory, program, proxy } = await serve();
  await rm(join(directory.path, 'routes.yaml'));
  await program.sent(proxy, (p) =>
    expect(p.routes('80')).toEqual({ [REVIEWS]: [`/ -> ${clusterOf()}`], [RATINGS]: [`/ -> ${clusterOf('ratings')}`] }),
  );
});

test('of an object that is written twice the first counts, and the second is told where that is', async () => {
  const { directory, program, proxy } = await serve();
  await directory.write('zzz.yaml', documents(split(1, 99)));
  expect(await program.logged('File has a problem')).toMatchObject({
    place: `${join(directory.path, 'zzz.yaml')}:1`,
    object: 'VirtualService/shop/reviews',
  });
  await program.settled();
  expect(proxy.takeChanges()).toEqual({});
});
