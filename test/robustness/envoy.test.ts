import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { problemOfRegex } from '../../src/reconcilers/regex.ts';
import { LoadingEnvoy } from '../golden/loading-envoy.ts';
import { TestMesh, connectedProxy, testProtos } from '../harness/mesh.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { custom, largeObjects, servedBeside } from './large-objects.ts';
import { hostileWorlds } from './worlds.ts';
import { runs } from '../../src/testing/runs.ts';

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
      fc.asyncProperty(hostileWorlds(), async ({ options, objects, nodes }) => {
        const mesh = new TestMesh({ oracle: false, mesh: options });
        mesh.apply(objects);
        for (const [i, node] of nodes.entries()) {
          // What gRPC's libraries get is not for Envoy.
          if (node.metadata?.['GENERATOR'] === 'grpc') continue;
          mesh.connect(connectedProxy(`proxy-${i}`, node));
          expect(await envoy.load(`world-${++count}`, mesh.snapshot(`proxy-${i}`))).toEqual([]);
        }
      }),
      { numRuns: runs(100) },
    );
  }, 60_000);

  test('of regular expressions that other engines take', async () => {
    const odd = ['Kawi', 'Garay', 'Todhri', 'LC', 'Cn', 'Assigned', 'Any', '^Greek'].map((name) => `\\p{${name}}`);
    odd.push('[\\xff-Ā]', '[\\377-я]', '[z-é]', '[а-я]', 'é{1000}', '(?<a>x)', '\\Q[', '\\08', '[[.a.]]', '\\x{ff}');
    odd.push('\\pP'.repeat(8), '\\PS'.repeat(8), '\\W'.repeat(12), '(?i)\\pS\\pP', '[^é]'.repeat(6));
    const taken = odd.filter((regex) => problemOfRegex(regex) === undefined);
    expect(taken.length).toBeGreaterThan(10);
    const match = taken.map((regex) => ({ uri: { regex } }));
    const spec = { hosts: ['a'], http: [{ match, route: [{ destination: { host: 'a' } }] }] };
    expect(await envoy.load('regexes', servedBeside(custom('VirtualService', spec)).snapshot('sidecar'))).toEqual([]);
  });

  test.each(largeObjects())('of %s', async (title, object) => {
    expect(await envoy.load(title, servedBeside(object).snapshot('sidecar'))).toEqual([]);
  });
});
