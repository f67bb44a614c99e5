import { afterEach, beforeEach, expect, test } from 'vitest';
import { bodiesOf, NODE } from './script.ts';
import { CDS, EDS, LDS, RDS, ServedMesh } from './served-mesh.ts';
import { type Response, XdsClient } from './xds-client.ts';

/** What only the state-of-the-world variant has. */

let mesh: ServedMesh;
let client: XdsClient;

beforeEach(async () => {
  mesh = await ServedMesh.start({ times: { lingerMs: 20 }, tickMs: 10 });
  client = new XdsClient(mesh.server.port!, false);
});

afterEach(async () => {
  client.close();
  await mesh.stop();
});

async function take(typeUrl: string, names: readonly string[] = []): Promise<Response> {
  const response = await client.next(typeUrl);
  client.send({ typeUrl, names, nonce: response.nonce, version: response.version });
  return response;
}

test('a request that answers an old response is not heard', async () => {
  mesh.publish({ [EDS]: { a: '1', b: '1' } });
  client.send({ typeUrl: EDS, node: NODE, names: ['a'] });
  const first = await take(EDS, ['a']);
  mesh.publish({ [EDS]: { a: '2' } });
  const second = await client.next(EDS);
  client.send({ typeUrl: EDS, names: ['a', 'b'], nonce: first.nonce, version: first.version });
  expect(await client.settled(RDS)).toEqual([]);
  client.send({ typeUrl: EDS, names: ['a', 'b'], nonce: second.nonce, version: second.version });
  expect(bodiesOf(await take(EDS, ['a', 'b']))).toEqual(['b@1']);
});

test('an answer that looks like a repetition is one', async () => {
  mesh.publish({ [EDS]: { a: '1' } });
  client.send({ typeUrl: EDS, node: NODE, names: ['a'] });
  const { nonce, version } = await take(EDS, ['a']);
  client.send({ typeUrl: EDS, names: ['a'], nonce, version });
  client.send({ typeUrl: EDS, names: ['a'], nonce, version });
  expect(await client.settled(RDS)).toEqual([]);
});

test('the version of a first request is only a hint: it is answered in full', async () => {
  mesh.publish({ [CDS]: { a: '1' } });
  client.send({ typeUrl: CDS, node: NODE, version: '17' });
  expect(bodiesOf(await take(CDS))).toEqual(['a@1']);
});

test('blank names do not count', async () => {
  mesh.publish({ [EDS]: { a: '1' }, [RDS]: { r: '1' } });
  client.send({ typeUrl: EDS, node: NODE, names: ['a'] });
  const { nonce, version } = await take(EDS, ['a']);
  client.send({ typeUrl: EDS, names: [''], nonce, version });
  mesh.publish({ [EDS]: { a: '2' } });
  expect(await client.settled(RDS)).toEqual([]);
});

test('once names were sent, none means none', async () => {
  mesh.publish({ [LDS]: { a: '1', b: '1' } });
  client.send({ typeUrl: LDS, node: NODE, names: ['a'] });
  const first = await client.next(LDS);
  expect(bodiesOf(first)).toEqual(['a@1']);
  client.send({ typeUrl: LDS, names: [], nonce: first.nonce, version: first.version });
  mesh.publish({ [LDS]: { a: '2', b: '2' } });
  expect(await client.settled(RDS)).toEqual([]);
});

test('a listener that is named and does not exist is left out, and the response says so', async () => {
  client.send({ typeUrl: LDS, node: NODE, names: ['target'] });
  expect(bodiesOf(await take(LDS, ['target']))).toEqual([]);
  mesh.publish({ [LDS]: { target: '1', other: '1' } });
  expect(bodiesOf(await take(LDS, ['target']))).toEqual(['target@1']);
  mesh.publish({ [LDS]: { target: undefined } });
  expect(bodiesOf(await take(LDS, ['target']))).toEqual([]);
});

test('a wildcard can be asked for by name', async () => {
  mesh.publish({ [CDS]: { a: '1', b: '1' } });
  client.send({ typeUrl: CDS, node: NODE, names: ['*'] });
  expect(bodiesOf(await take(CDS, ['*']))).toEqual(['a@1', 'b@1']);
  mesh.publish({ [CDS]: { c: '1' } });
  expect(bodiesOf(await take(CDS, ['*']))).toEqual(['a@1', 'b@1', 'c@1']);
});

test('few responses to clusters wait for an answer, and one answer stands for all', async () => {
  mesh.publish({ [CDS]: { a: '0' } });
  client.send({ typeUrl: CDS, node: NODE });
  await take(CDS);
  const responses: Response[] = [];
  for (const content of ['1', '2', '3']) {
    mesh.publish({ [CDS]: { a: content } });
    responses.push(await client.next(CDS));
  }
  mesh.publish({ [CDS]: { a: '4' } });
  mesh.publish({ [CDS]: { a: '5' } });
  expect(await client.settled(RDS)).toEqual([]);
  const last = responses.at(-1)!;
  client.send({ typeUrl: CDS, nonce: last.nonce, version: last.version });
  expect(bodiesOf(await take(CDS))).toEqual(['a@5']);
});

test('a rejection that reports the version of its own response is about an earlier one', async () => {
  client.send({ typeUrl: CDS, node: NODE });
  await take(CDS);
  mesh.publish({ [CDS]: { bad: '1' } });
  await client.next(CDS);
  mesh.publish({ [CDS]: { good: '1' } });
  const last = await client.next(CDS);
  client.send({
    typeUrl: CDS,
    nonce: last.nonce,
    version: last.version,
    error: 'Error adding/updating cluster(s) bad: no',
  });
  expect(bodiesOf(await take(CDS))).toEqual(['good@1']);
  expect(mesh.rejections.map((rejection) => rejection.name)).toEqual(['bad']);
});

test('a state that cannot be read at all is not taken apart: leaving things out would delete them', async () => {
  mesh.publish({ [CDS]: { a: '1', b: '1' } });
  client.send({ typeUrl: CDS, node: NODE, version: '17' });
  const response = await client.next(CDS);
  client.send({ typeUrl: CDS, nonce: response.nonce, version: '17', error: 'Unable to unpack' });
  expect(await client.settled(RDS)).toEqual([]);
  mesh.publish({ [CDS]: { a: '2' } });
  expect(bodiesOf(await take(CDS))).toEqual(['a@2', 'b@1']);
});
