import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { BARRIER_TIMES } from '../../src/ads/protocol/barrier-times.ts';
import { field } from '../harness/raw-ads.ts';
import { bodiesOf, NODE } from './script.ts';
import { CDS, EDS, LDS, RDS, resourceOf, ServedMesh } from './served-mesh.ts';
import { type Response, XdsClient } from './xds-client.ts';

/** What only the incremental variant has. */

let mesh: ServedMesh;
let client: XdsClient;

beforeEach(async () => {
  mesh = await ServedMesh.start({ times: { lingerMs: 20 }, tickMs: 10 });
  client = new XdsClient(mesh.server.port!, true);
});

afterEach(async () => {
  client.close();
  await mesh.stop();
});

const versionOf = (typeUrl: string, name: string, content: string): string =>
  resourceOf(typeUrl, name, `${name}@${content}`).version;

async function take(typeUrl: string): Promise<Response> {
  const response = await client.next(typeUrl);
  client.send({ typeUrl, nonce: response.nonce });
  return response;
}

test('a client that knows everything is sent nothing', async () => {
  mesh.publish({ [CDS]: { a: '1', b: '1' }, [EDS]: { a: '1', b: '1' } });
  const versions = (typeUrl: string): Record<string, string> => {
    return { b: versionOf(typeUrl, 'b', '1'), a: versionOf(typeUrl, 'a', '1') };
  };
  client.send({ typeUrl: CDS, node: NODE, initial: versions(CDS) });
  client.send({ typeUrl: EDS, subscribe: ['b', 'a'], initial: versions(EDS) });
  expect(await client.settled(RDS)).toEqual([]);
  mesh.publish({ [EDS]: { b: '2' } });
  expect(bodiesOf(await take(EDS))).toEqual(['b@2']);
});

test('a client that comes back gets what changed, what is new, and what is gone', async () => {
  mesh.publish({ [LDS]: { same: '1', changed: '2', fresh: '1' } });
  client.send({
    typeUrl: LDS,
    node: NODE,
    initial: { same: versionOf(LDS, 'same', '1'), changed: versionOf(LDS, 'changed', '1'), gone: 'x' },
  });
  const response = await take(LDS);
  expect(bodiesOf(response)).toEqual(['changed@2', 'fresh@1']);
  expect(response.removed).toEqual(['gone']);
});

test('a cluster that is gone when its client comes back is removed after a while', async () => {
  mesh.publish({ [CDS]: { a: '1' } });
  client.send({ typeUrl: CDS, node: NODE, initial: { a: versionOf(CDS, 'a', '1'), gone: 'x' } });
  const response = await take(CDS);
  expect(bodiesOf(response)).toEqual([]);
  expect(response.removed).toEqual(['gone']);
});

test('a client that comes back keeps an assignment that is gone, and is told of names that it never had', async () => {
  mesh.publish({ [EDS]: { a: '1' } });
  client.send({
    typeUrl: EDS,
    node: NODE,
    subscribe: ['a', 'gone', 'never'],
    initial: { a: versionOf(EDS, 'a', '1'), gone: 'x' },
  });
  expect(bodiesOf(await take(EDS))).toEqual(['never@absent']);
  expect(await client.settled(RDS)).toEqual([]);
});

test('behind clusters that changed while a client was away come their assignments, although it has them', async () => {
  mesh.publish({ [CDS]: { a: '2', b: '1' }, [EDS]: { a: '1', b: '1' } });
  client.send({ typeUrl: EDS, node: NODE, subscribe: ['a', 'b'], initial: known(EDS) });
  client.send({ typeUrl: CDS, initial: known(CDS) });
  expect(bodiesOf(await take(CDS))).toEqual(['a@2']);
  expect(bodiesOf(await take(EDS))).toEqual(['a@1']);

  function known(typeUrl: string): Record<string, string> {
    return { a: versionOf(typeUrl, 'a', '1'), b: versionOf(typeUrl, 'b', '1') };
  }
});

test('a name that is subscribed once more is sent once more', async () => {
  mesh.publish({ [EDS]: { a: '1' } });
  client.send({ typeUrl: EDS, node: NODE, subscribe: ['a'] });
  await take(EDS);
  client.send({ typeUrl: EDS, subscribe: ['a'] });
  expect(bodiesOf(await take(EDS))).toEqual(['a@1']);
});

test('names are heard beside an answer, and beside one that is late', async () => {
  mesh.publish({ [EDS]: { a: '1', b: '1', c: '1' } });
  client.send({ typeUrl: EDS, node: NODE, subscribe: ['a'] });
  const first = await client.next(EDS);
  client.send({ typeUrl: EDS, nonce: first.nonce, subscribe: ['b'] });
  const second = await take(EDS);
  expect(bodiesOf(second)).toEqual(['b@1']);
  client.send({ typeUrl: EDS, nonce: first.nonce, subscribe: ['c'], unsubscribe: ['a'] });
  expect(bodiesOf(await take(EDS))).toEqual(['c@1']);
  mesh.publish({ [EDS]: { a: '2' } });
  mesh.publish({ [EDS]: { b: '2' } });
  expect(bodiesOf(await take(EDS))).toEqual(['b@2']);
});

test('a wildcard can be asked for by name, beside names, and be given up', async () => {
  mesh.publish({ [CDS]: { a: '1', b: '1' } });
  client.send({ typeUrl: CDS, node: NODE, subscribe: ['*', 'later'] });
  const first = await take(CDS);
  expect(bodiesOf(first)).toEqual(['a@1', 'b@1']);
  expect(first.removed).toEqual(['later']);
  client.send({ typeUrl: CDS, subscribe: ['b'], unsubscribe: ['*'] });
  expect(bodiesOf(await take(CDS))).toEqual(['b@1']);
  mesh.publish({ [CDS]: { a: '2' } });
  mesh.publish({ [CDS]: { b: '2' } });
  expect(bodiesOf(await take(CDS))).toEqual(['b@2']);
});

test('a name can be added to a wildcard that was not named, and is answered when it is taken back', async () => {
  mesh.publish({ [CDS]: { a: '1' } });
  client.send({ typeUrl: CDS, node: NODE });
  await take(CDS);
  client.send({ typeUrl: CDS, subscribe: ['missing'] });
  expect((await take(CDS)).removed).toEqual(['missing']);
  mesh.publish({ [CDS]: { a: '2' } });
  expect(bodiesOf(await take(CDS))).toEqual(['a@2']);
  client.send({ typeUrl: CDS, unsubscribe: ['a', 'missing'] });
  const response = await take(CDS);
  expect(bodiesOf(response)).toEqual(['a@2']);
  expect(response.removed).toEqual(['missing']);
});

test('names alone do not make a wildcard', async () => {
  mesh.publish({ [LDS]: { a: '1', b: '1' } });
  client.send({ typeUrl: LDS, node: NODE, subscribe: ['a', 'none'] });
  const response = await take(LDS);
  expect(bodiesOf(response)).toEqual(['a@1']);
  expect(response.removed).toEqual(['none']);
});

test('every response to clusters is answered by itself', async () => {
  client.send({ typeUrl: CDS, node: NODE });
  await take(CDS);
  mesh.publish({ [CDS]: { h: '1' } });
  const first = await client.next(CDS);
  mesh.publish({ [CDS]: { bad: '1' } });
  const second = await client.next(CDS);
  mesh.publish({ [CDS]: { good: '1' } });
  const third = await client.next(CDS);
  client.send({ typeUrl: CDS, nonce: first.nonce });
  client.send({ typeUrl: CDS, nonce: second.nonce, error: 'Error adding/updating cluster(s) bad: no' });
  client.send({ typeUrl: CDS, nonce: third.nonce });
  expect((await take(CDS)).removed).toEqual(['bad']);
  expect(await client.settled(RDS)).toEqual([]);
  expect(mesh.rejections.map((rejection) => rejection.name)).toEqual(['bad']);
});

test('a client that does not answer for clusters is sent their assignments again', async () => {
  await mesh.stop();
  mesh = await ServedMesh.start({ times: { overdueMs: 200 }, tickMs: 10 });
  client = new XdsClient(mesh.server.port!, true);
  mesh.publish({ [CDS]: { a: '1', b: '1' }, [EDS]: { a: '1', b: '1' } });
  client.send({ typeUrl: CDS, node: NODE });
  await take(CDS);
  client.send({ typeUrl: EDS, subscribe: ['a', 'b'] });
  await take(EDS);
  mesh.publish({ [CDS]: { a: '2' } });
  await client.next(CDS);
  expect(bodiesOf(await take(EDS))).toEqual(['a@1']);
  expect(bodiesOf(await take(EDS))).toEqual(['a@1']);
  expect(mesh.server.counts().overdue).toBeGreaterThan(0);
});

test('a new cluster that the client did not take, without saying so, is taken back', async () => {
  await mesh.stop();
  mesh = await ServedMesh.start({ times: { stuckMs: 20 }, tickMs: 10 });
  client = new XdsClient(mesh.server.port!, true);
  client.send({ typeUrl: CDS, node: NODE });
  await take(CDS);
  client.send({ typeUrl: LDS });
  await take(LDS);
  mesh.publish({ [CDS]: { bad: '1', good: '1' }, [EDS]: { bad: '1', good: '1' } });
  const held = await client.next(CDS);
  client.send({ typeUrl: EDS, subscribe: ['good'] });
  await take(EDS);
  const withdrawal = await client.next(CDS);
  expect(withdrawal.removed).toEqual(['bad']);
  client.send({ typeUrl: CDS, nonce: held.nonce, error: 'Error adding/updating cluster(s) bad: no' });
  client.send({ typeUrl: CDS, nonce: withdrawal.nonce });
  expect(bodiesOf(await take(CDS))).toEqual(['good@1']);
  expect(mesh.rejections.map((rejection) => rejection.name)).toEqual(['bad']);
});

test('clusters of a former listener stay for as long as listeners of that node drain', async () => {
  mesh.publish({ [CDS]: { old: '1' }, [LDS]: { a: { content: '1', clusters: ['old'] } } });
  const drainDuration = field(1, field(1, 'drainDuration'), field(2, field(3, '10m')));
  const metadata = field(3, field(1, field(1, 'PROXY_CONFIG'), field(2, field(5, drainDuration))));
  const other = new XdsClient(mesh.server.port!, true);
  onTestFinished(() => other.close());
  client.sendBytes(Buffer.concat([field(1, field(1, NODE.id), metadata), field(2, CDS)]));
  other.send({ typeUrl: CDS, node: NODE });
  for (const each of [client, other]) {
    for (const typeUrl of [CDS, LDS]) {
      if (typeUrl === LDS) each.send({ typeUrl });
      each.send({ typeUrl, nonce: (await each.next(typeUrl)).nonce });
    }
    await each.settled(RDS);
  }
  mesh.publish({ [CDS]: { old: undefined }, [LDS]: { a: '2' } });
  for (const each of [client, other]) {
    each.send({ typeUrl: LDS, nonce: (await each.next(LDS)).nonce });
    await each.settled(RDS);
  }
  mesh.pass(BARRIER_TIMES.drainMs + 5_000);
  expect((await other.next(CDS)).removed).toEqual(['old']);
  expect((await client.settled(RDS)).filter(({ typeUrl }) => typeUrl === CDS)).toEqual([]);
});
