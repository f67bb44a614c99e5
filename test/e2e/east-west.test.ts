import { beforeAll, expect, test } from 'vitest';
import { afterSuite } from '../../src/testing/on-end.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { whyNoNetworks } from './networks.ts';
import { TwoNetworks } from './two-networks.ts';

const reason = whyNoNetworks();
const title = `clusters on two networks${reason === undefined ? '' : ` (${reason})`}`;

withPeers(['envoy', 'etcd', 'kube-apiserver', 'kubectl'], title, () => {
  const onEnd = afterSuite();
  let mesh: TwoNetworks;
  printLogOnFailure(() => mesh && { log: () => mesh.program.log.map((line) => JSON.stringify(line)).join('\n') });

  beforeAll(async () => {
    mesh = await TwoNetworks.start(onEnd);
    await Promise.all([mesh.server('own', 'one', 1), mesh.server('west', 'two', 1), mesh.gateway()]);
    await mesh.endpoints('own', { one: 1 });
    await mesh.endpoints('west', { two: 1 });
    await mesh.client();
  });

  test('the other cluster comes', async ({ signal }) => {
    const client = mesh.ask(signal);
    await client.until('200 one');
    await mesh.nameWest('reader');
    await client.until('200 two');
    await client.more(200);
    expect(new Set(await client.stop())).toEqual(new Set(['200 one', '200 two']));
  });
});
