import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { FakeClock } from '../../testing/fake-clock.ts';
import { type NamedObject, NamedObjects, mostForeign, mostForeignOfAll, mostOwn } from './named-objects.ts';
import { Outages } from '../client/outages.ts';
import { FakeCluster } from '../testing/fake-cluster.ts';
import { RecordingLog } from '../testing/recording-log.ts';

const SECRETS = '/api/v1/secrets';
const encoded = (text: string): string => Buffer.from(text).toString('base64');

let clock: FakeClock;
let cluster: FakeCluster;
let log: RecordingLog;
let told: [string, unknown][];
let objects: NamedObjects;

beforeEach(() => {
  const end = new AbortController();
  [clock, cluster, log, told] = [new FakeClock(), new FakeCluster(), new RecordingLog(), []];
  cluster.install(SECRETS, 'Secret').install('/api/v1/configmaps', 'ConfigMap');
  objects = new NamedObjects({
    api: cluster,
    clock,
    random: () => 0.5,
    log,
    outages: new Outages({ log, clock }),
    entries: ['tls.crt'],
    annotation: 'example.com/kept',
    sink: {
      found: (key, content) => told.push([key, content?.data]),
      failed: (key, { code }) => told.push([key, code]),
      refused: (key) => told.push([key, 'refused']),
    },
    signal: end.signal,
  });
  onTestFinished(() => end.abort());
});

const named = (name: string, namespace = 'edge', by: readonly string[] = [namespace]): NamedObject => ({
  kind: 'Secret',
  namespace,
  name,
  by,
});
const put = (name: string, data: object, more: object = {}): unknown =>
  cluster.apply(SECRETS, { metadata: { name, namespace: 'edge' }, data, ...more });
async function want(key: string, object: NamedObject): Promise<void> {
  objects.want(key, object);
  await clock.settle();
}

test('one object is read and followed, and of it only what is needed', async () => {
  put('a', { 'tls.crt': encoded('1'), other: encoded('private') }, { stringData: { x: 'y' } });
  put('b', { 'tls.crt': encoded('2') });
  await want('a', named('a'));
  put('a', { 'tls.crt': encoded('3') });
  put('b', { 'tls.crt': encoded('4') });
  cluster.delete(SECRETS, 'edge', 'a');
  await clock.settle();
  expect(told).toEqual([
    ['a', { 'tls.crt': encoded('1') }],
    ['a', { 'tls.crt': encoded('3') }],
    ['a', undefined],
  ]);
  const asked = cluster.requests.map(({ path, query }) => `${path}?${query['fieldSelector']}`);
  expect(new Set(asked)).toEqual(new Set(['/api/v1/namespaces/edge/secrets?metadata.name=a']));
  expect(JSON.stringify(log)).not.toContain(encoded('1'));
});

test('one that does not exist is told, and followed until it does', async () => {
  await want('a', named('a'));
  expect(told).toEqual([['a', undefined]]);
  put('a', { 'tls.crt': encoded('1') });
  await clock.settle();
  expect(told.slice(1)).toEqual([['a', { 'tls.crt': encoded('1') }]]);
});

test('changes that do not concern what is needed are not told', async () => {
  put('a', { 'tls.crt': encoded('1') });
  await want('a', named('a'));
  put('a', { 'tls.crt': encoded('1'), other: encoded('2') });
  await clock.settle();
  expect(told).toHaveLength(1);
});

test('one that may not be read is told, and is read when it may', async () => {
  put('a', { 'tls.crt': encoded('1') });
  cluster.denied.add(SECRETS);
  await want('a', named('a'));
  expect(told).toEqual([['a', 403]]);
  cluster.denied.clear();
  await clock.until(() => told.some(([, content]) => typeof content === 'object'), 120_000);
  expect(told.at(-1)).toEqual(['a', { 'tls.crt': encoded('1') }]);
});

test('what is no longer wanted is not watched any more', async () => {
  put('a', { 'tls.crt': encoded('1') });
  await want('a', named('a'));
  expect(cluster.watches()).toHaveLength(1);
  objects.unwant('a');
  objects.unwant('a');
  put('a', { 'tls.crt': encoded('2') });
  await clock.settle();
  expect([cluster.watches().length, told.length]).toEqual([0, 1]);
  await want('a', named('a'));
  expect(told.at(-1)).toEqual(['a', { 'tls.crt': encoded('2') }]);
});

test('those beyond the limit of a namespace are told, and are read when there is room', async () => {
  for (let i = 0; i < mostOwn; i++) objects.want(`${i}`, named(`${i}`));
  objects.want('late', named('late'));
  objects.want('other', named('late', 'bank'));
  await clock.settle();
  expect(told.filter(([, content]) => content === 'refused')).toEqual([['late', 'refused']]);
  expect(told.some(([key]) => key === 'other')).toBe(true);
  objects.unwant('7');
  await clock.settle();
  expect(told.at(-1)).toEqual(['late', undefined]);
  expect(cluster.watches()).toHaveLength(mostOwn + 1);
});

test('what others name in a namespace leaves room for what is named there', async () => {
  const refused = (): unknown[] => told.flatMap(([key, content]) => (content === 'refused' ? [key] : []));
  for (let i = 0; i <= mostForeign; i++) objects.want(`mallory ${i}`, named(`${i}`, 'edge', ['mallory']));
  objects.want('own', named('own'));
  objects.want('alice', named('alice', 'edge', ['alice']));
  objects.want('both', named('both', 'edge', ['mallory', 'alice']));
  await clock.settle();
  expect(refused()).toEqual([`mallory ${mostForeign}`]);
  expect(cluster.watches()).toHaveLength(mostForeign + 3);
  objects.want('both', named('both', 'edge', ['mallory']));
  await clock.settle();
  expect(refused()).toEqual([`mallory ${mostForeign}`, 'both']);
  objects.want('both', named('both', 'edge', ['edge', 'mallory']));
  await clock.settle();
  expect(told.at(-1)).toEqual(['both', undefined]);
  expect(cluster.watches()).toHaveLength(mostForeign + 3);
});

test('what all name elsewhere is bounded, in however many namespaces', async () => {
  for (let i = 0; i < 10; i++)
    for (let j = 0; j < mostForeign; j++) objects.want(`${i}/${j}`, named('a', `n${j}`, [`mallory${i}`]));
  objects.want('own', named('a', 'n0'));
  await clock.settle();
  expect(cluster.watches()).toHaveLength(mostForeignOfAll + 1);
});
