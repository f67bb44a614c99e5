import { afterAll, beforeAll, expect, test } from 'vitest';
import { leavesOf } from '../../src/ads/store/resource.ts';
import { createValidator } from '../../src/api/validate.ts';
import { node, resource } from '../../src/envoy/encode/resource.ts';
import { testProtos } from '../harness/mesh.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { goldenNames, readGoldenCase } from './case.ts';
import { LoadingEnvoy } from './loading-envoy.ts';
import { meshOf } from './mesh-of.ts';

withPeers(['envoy'], 'a real Envoy loads all that is served', () => {
  const validate = createValidator();
  let envoy: LoadingEnvoy;
  beforeAll(async () => {
    envoy = await LoadingEnvoy.start(testProtos());
  });
  afterAll(() => envoy.stop());
  printLogOnFailure(() => envoy);

  test('and would be heard to refuse', async () => {
    const golden = readGoldenCase('virtual-services/weights', validate);
    const snapshot = meshOf(golden).snapshot('client');
    const rds = snapshot.rds.map((table) => {
      const twice = node([table.body, ...leavesOf(table.body)]);
      return resource(table.typeUrl, table.name, twice);
    });
    expect(await envoy.load('twice', { ...snapshot, rds })).toEqual([expect.stringContaining('unique')]);
  });

  test.each(goldenNames())('for %s', async (name) => {
    const golden = readGoldenCase(name, validate);
    const mesh = meshOf(golden);
    for (const [proxy, { metadata }] of golden.proxies)
      // What gRPC's own clients are sent is not for an Envoy.
      if (metadata?.['GENERATOR'] !== 'grpc')
        expect(await envoy.load(`${name}/${proxy}`, mesh.snapshot(proxy))).toEqual([]);
  });
});
