import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LoadingEnvoy } from '../golden/loading-envoy.ts';
import { TestMesh, connectedProxy, testProtos } from '../harness/mesh.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { largeObjects, servedBeside } from './large-objects.ts';
import { hostileWorlds } from './worlds.ts';

withPeers(['envoy'], 'a real Envoy refuses nothing', () => {
  let envoy: LoadingEnvoy;
  beforeAll(async () => {
    envoy = await LoadingEnvoy.start(testProtos());
  });
  afterAll(() => envoy.stop());
  printLogOnFailure(() => envoy);

  // fast-check prints the seed of a world that fails.
  test('of what is made from objects and nodes with mistakes', async () => {
    let count = 0;
    await fc.assert(
      fc.asyncProperty(hostileWorlds(), async ({ objects, nodes }) => {
        const mesh = new TestMesh({ oracle: false });
        mesh.apply(objects);
        for (const [i, node] of nodes.entries()) {
          mesh.connect(connectedProxy(`proxy-${i}`, node));
          expect(await envoy.load(`world-${++count}`, mesh.snapshot(`proxy-${i}`))).toEqual([]);
        }
      }),
      { numRuns: 100 },
    );
  }, 60_000);

  test.each(largeObjects())('of %s', async (title, object) => {
    expect(await envoy.load(title, servedBeside(object).snapshot('sidecar'))).toEqual([]);
  });
});
