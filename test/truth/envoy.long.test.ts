import { afterAll, beforeAll, expect, test } from 'vitest';
import { LoadingEnvoy } from '../golden/loading-envoy.ts';
import { testProtos } from '../harness/mesh.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { caseNames, runCase } from './cases.ts';

withPeers(['envoy'], 'a real Envoy loads what is served in the recorded cases', () => {
  let envoy: LoadingEnvoy;
  beforeAll(async () => {
    envoy = await LoadingEnvoy.start(testProtos());
  });
  afterAll(() => envoy.stop());
  printLogOnFailure(() => envoy);

  test.each(caseNames())('for %s', async (name) => {
    for (const { proxy, snapshot } of runCase(name).proxies)
      expect(await envoy.load(`${name}/${proxy}`, snapshot)).toEqual([]);
  });
});
