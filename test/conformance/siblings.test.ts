import { afterEach, beforeEach, expect, test } from 'vitest';
import { serviceOf } from '../../src/engine/catalog.ts';
import { NODE } from './script.ts';
import { CDS, EDS, RDS, ServedMesh } from './served-mesh.ts';
import { XdsClient } from './xds-client.ts';

/** A client with a stream for clusters and one for everything else: what holds on one stream holds across these. */

const { name, stream, delta } = serviceOf('Cluster');
const CLUSTERS = { stream: `/${name}/${stream}`, delta: `/${name}/${delta}` };

let mesh: ServedMesh;
let clusters: XdsClient;
let others: XdsClient;

beforeEach(async () => {
  mesh = await ServedMesh.start();
  connect();
  mesh.publish({ [CDS]: { a: '1', b: '1' }, [EDS]: { a: '1', b: '1' } });
});

afterEach(async () => {
  clusters.close();
  others.close();
  await mesh.stop();
});

/** Two streams on a new connection. */
function connect(): void {
  clusters = new XdsClient(mesh.server.port!, true, undefined, undefined, CLUSTERS);
  others = new XdsClient(mesh.server.port!, true, undefined, undefined, undefined, clusters);
}

async function take(client: XdsClient, typeUrl: string): Promise<string[]> {
  const { nonce, bodies } = await client.next(typeUrl);
  client.send({ typeUrl, nonce });
  return [...bodies.values()].sort();
}

test('a changed cluster on one stream is followed by its assignment on the other', async () => {
  clusters.send({ typeUrl: CDS, node: NODE });
  expect(await take(clusters, CDS)).toEqual(['a@1', 'b@1']);
  others.send({ typeUrl: EDS, node: NODE, subscribe: ['a', 'b'] });
  expect(await take(others, EDS)).toEqual(['a@1', 'b@1']);
  mesh.publish({ [CDS]: { a: '2' } });
  expect(await take(clusters, CDS)).toEqual(['a@2']);
  expect(await take(others, EDS)).toEqual(['a@1']);
});

test('who comes back and is sent a changed cluster first is sent its assignment, whatever it says that it has', async () => {
  others.send({ typeUrl: EDS, node: NODE, subscribe: ['a', 'b'] });
  const { versions } = await others.next(EDS);
  others.close();
  connect();
  clusters.send({ typeUrl: CDS, node: NODE, initial: { a: 'former', b: 'former' } });
  await clusters.next(CDS);
  others.send({ typeUrl: EDS, node: NODE, subscribe: ['a', 'b'], initial: Object.fromEntries(versions) });
  expect(await take(others, EDS)).toEqual(['a@1', 'b@1']);
});

test('assignments do not follow the clusters of another client', async () => {
  const stranger = new XdsClient(mesh.server.port!, true, undefined, undefined, CLUSTERS, clusters);
  stranger.send({ typeUrl: CDS, node: { id: 'another' } });
  expect(await take(stranger, CDS)).toEqual(['a@1', 'b@1']);
  others.send({ typeUrl: EDS, node: NODE, subscribe: ['a'] });
  expect(await take(others, EDS)).toEqual(['a@1']);
  mesh.publish({ [CDS]: { a: '2' } });
  expect(await take(stranger, CDS)).toEqual(['a@2']);
  expect(await others.settled(RDS)).toEqual([]);
});

test('of several streams that ask for clusters and assignments, each follows its own clusters alone', async () => {
  const more = Array.from(
    { length: 4 },
    () => new XdsClient(mesh.server.port!, true, undefined, undefined, undefined, clusters),
  );
  const all = [others, ...more];
  for (const each of all) {
    each.send({ typeUrl: CDS, node: NODE });
    expect(await take(each, CDS)).toEqual(['a@1', 'b@1']);
    each.send({ typeUrl: EDS, subscribe: ['a', 'b'] });
    expect(await take(each, EDS)).toEqual(['a@1', 'b@1']);
  }
  mesh.publish({ [CDS]: { a: '2' } });
  for (const each of all) {
    expect(await take(each, CDS)).toEqual(['a@2']);
    expect(await take(each, EDS)).toEqual(['a@1']);
  }
  for (const each of all) expect(await each.settled(RDS)).toEqual([]);
});
