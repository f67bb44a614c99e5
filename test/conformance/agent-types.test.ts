import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ResourceTypes } from '../../src/ads/types.ts';
import { Script } from './script.ts';
import { CDS, EDS, ServedMesh, TYPES } from './served-mesh.ts';

/** Types that agents ask for: computed on demand, and paced. */

const TABLE = 'type.googleapis.com/test.Table';

const types: ResourceTypes = [
  ...TYPES,
  { typeUrl: TABLE, shortName: 'table', wildcard: true, fullState: true, onDemand: true, paceMs: 1_000 },
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
});
