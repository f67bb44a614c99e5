import { expect, test } from 'vitest';
import { SHOP } from '../bookshop.ts';
import type { RunningNode } from '../node.ts';
import type { Ways } from './mesh.ts';
import { pageAt } from './page.ts';
import { peerMode } from './peer-mode.ts';

export function sidecars(node: () => RunningNode, ways: () => Ways): void {
  test('have an Envoy each, and are ready', async () => {
    const containers = await node().kubectl(
      ...['-n', SHOP, 'get', 'pods', '-l', 'app=storefront'],
      ...['-o', 'jsonpath={.items[*].spec.initContainers[*].name} {.items[*].status.initContainerStatuses[*].ready}'],
    );
    expect(containers).toBe('istio-init istio-proxy true true');
  });

  test('speak mutual TLS with each other by IPv4 and IPv6, and with nobody else where a policy asks for that', async () => {
    await node().apply(JSON.stringify(STOCK_BY_IPV6));
    expect(await pageAt(ways().plaintext)).toMatchObject({ service: 'storefront' });
    await node().apply(peerMode(SHOP, 'strict', 'STRICT'));
    await expect.poll(() => pageAt(ways().plaintext).catch(() => 'refused'), { timeout: 60_000 }).toBe('refused');
    const { service, parts } = await pageAt(ways().gateway);
    expect([service, parts['reviews']?.status, parts['stock']?.status]).toEqual(['storefront', 200, 200]);
    const ask =
      "fetch('http://stock-by-ipv6').then(({ status }) => console.log(status), ({ cause }) => console.log(cause))";
    const inside = ['exec', 'deploy/storefront-v1', '-c', 'storefront', '--', 'node', '-e', ask];
    await expect.poll(() => node().kubectl('-n', SHOP, ...inside), { timeout: 60_000 }).toBe('200\n');
    await node().kubectl('-n', SHOP, 'delete', 'service/stock-by-ipv6');
    await node().kubectl('-n', SHOP, 'delete', 'peerauthentication/strict');
    await expect
      .poll(() => pageAt(ways().plaintext).catch(() => 'refused'), { timeout: 60_000 })
      .toMatchObject({ service: 'storefront' });
  });

  test('reach a ServiceEntry by a name that no DNS server has', async () => {
    await expect
      .poll(async () => (await pageAt(ways().gateway)).parts['covers'], { timeout: 60_000 })
      .toMatchObject({ status: 200, service: 'covers' });
  });
}

const STOCK_BY_IPV6 = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'stock-by-ipv6', namespace: SHOP },
  spec: {
    ipFamilies: ['IPv6'],
    ipFamilyPolicy: 'SingleStack',
    selector: { app: 'stock' },
    ports: [{ name: 'http', port: 80, targetPort: 8080 }],
  },
};
