import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ResourceTypes } from '../../src/ads/types.ts';
import { bodiesOf, Script } from './script.ts';
import { CDS, EDS, ServedMesh, TYPES } from './served-mesh.ts';

/** Types that agents ask for: computed on demand, paced, or on streams of their own. */

const TABLE = 'type.googleapis.com/test.Table';
const HOST = 'type.googleapis.com/test.Host';

const types: ResourceTypes = [
  ...TYPES,
  { typeUrl: TABLE, shortName: 'table', wildcard: true, fullState: true, onDemand: true, paceMs: 1_000 },
  { typeUrl: HOST, shortName: 'hosts', wildcard: true, fullState: true, onDemand: true, ofAgents: true },
];

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  let mesh: ServedMesh;
  let script: Script;
  let asked: string[];

  beforeEach(async () => {
    asked = [];
    mesh = await ServedMesh.start({ types, tickMs: 10 }, { asked: (_stream, typeUrl) => asked.push(typeUrl) });
    script = new Script(mesh, delta);
  });

  afterEach(async () => {
    script.client.close();
    await mesh.stop();
  });

  test('what is computed on demand is reported once, and not answered before it is there', async () => {
    mesh.publish({ [CDS]: { c: '1' } });
    script.subscribe(CDS, []);
    await script.take(CDS);
    script.subscribe(TABLE, []);
    expect(await script.client.settled(EDS)).toEqual([]);
    expect(asked).toEqual([TABLE]);
    mesh.publish({ [TABLE]: { '': 'first' } });
    expect(await script.take(TABLE)).toEqual(['@first']);
    expect(asked).toEqual([TABLE]);
  });

  test('a paced type is sent once in its time, then as it is by then', async () => {
    mesh.publish({ [TABLE]: { '': '1' } });
    script.subscribe(TABLE, []);
    expect(await script.take(TABLE)).toEqual(['@1']);
    mesh.publish({ [TABLE]: { '': '2' } });
    expect(await script.client.settled(EDS)).toEqual([]);
    mesh.publish({ [TABLE]: { '': '3' } });
    mesh.pass(1_000);
    expect(await script.take(TABLE)).toEqual(['@3']);
  });

  test('an agent is no proxy: its stream is counted apart, and in no list', async () => {
    mesh.publish({ [HOST]: { a: '1', b: '1' } });
    script.subscribe(HOST, []);
    expect(await script.take(HOST)).toEqual(['a@1', 'b@1']);
    expect([...mesh.proxies.values()]).toMatchObject([{ isAgent: true }]);
    expect(mesh.server.streams()).toEqual([]);
    expect(mesh.server.counts()).toMatchObject({ streams: 0, agentStreams: 1 });
  });

  test('a proxy that also asks for a type of agents stays a proxy', async () => {
    mesh.publish({ [CDS]: { c: '1' }, [HOST]: { a: '1' } });
    script.subscribe(CDS, []);
    await script.take(CDS);
    script.subscribe(HOST, []);
    expect(bodiesOf(await script.next(HOST))).toEqual(['a@1']);
    expect(mesh.server.counts()).toMatchObject({ streams: 1, agentStreams: 0 });
  });
});
