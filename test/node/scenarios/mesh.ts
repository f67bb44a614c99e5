import { beforeAll, describe } from 'vitest';
import { SHOP, installFairlead, openBookshop } from '../bookshop.ts';
import type { RunningNode } from '../node.ts';
import { PLAIN_GATEWAY } from '../plain-gateway.ts';
import { ends } from './ends.ts';
import { grpc } from './grpc.ts';
import { killedPods } from './killed-pods.ts';
import { restarts } from './restarts.ts';
import { sidecars } from './sidecars.ts';

/** How to reach the bookshop from this machine. */
export interface Ways {
  /** Through the gateway of the chart. */
  readonly gateway: string;
  /** Through an Envoy without an agent. */
  readonly plainGateway: string;
  /** Without TLS, by its Service. */
  readonly plaintext: string;
}

/** Fairlead with the bookshop, in turn for all that needs them. */
export function mesh(node: () => RunningNode): void {
  let ways: Ways = { gateway: '', plainGateway: '', plaintext: '' };
  beforeAll(async () => {
    await installFairlead(node(), '--set', 'plaintext.enabled=true');
    await node().apply(PLAIN_GATEWAY);
    await openBookshop(node());
    await node().kubectl('-n', 'plain', 'wait', '--for=condition=Available', 'deployment', '--all', '--timeout=90s');
    const forward = async (name: string): Promise<string> =>
      `http://127.0.0.1:${await node().forward(`${name}.svc.cluster.local`, 80)}`;
    ways = {
      gateway: await forward(`ingressgateway.${SHOP}`),
      plainGateway: await forward('gateway.plain'),
      plaintext: await forward(`storefront.${SHOP}`),
    };
  }, 300_000);

  describe('Pods with sidecars, behind a gateway', () => sidecars(node, () => ways));
  describe('gRPC applications without an Envoy', () => grpc(node));
  describe('a bookshop under load', () => restarts(node, () => ways));
  describe('a Pod that ends', () => ends(node));
  describe('a Pod that is killed', () => killedPods(node));
}
