import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { poll } from '../peers/process.ts';
import { printLogOnFailure } from '../peers/with-peers.ts';
import { buildImages } from './images.ts';
import type { RunningNode } from './node.ts';
import { startOnlyNode } from './only-node.ts';
import { buildProjectImages, shopImage } from './project-images.ts';
import { startLoad } from './steady-load.ts';
import { withNode } from './with-node.ts';

const ROOT = join(import.meta.dirname, '../..');
const NAMESPACE = 'istio-system';
const SHOP = 'bookshop';

/** What the storefront answers: itself, and what it got of the services that it asks. */
interface Page {
  readonly service: string;
  readonly parts: Readonly<Record<string, { readonly status: number; readonly service?: string }>>;
}

withNode('Pods with sidecars, behind a gateway', () => {
  let node: RunningNode | undefined;
  const started = (): RunningNode => node ?? expect.fail('it did not start');
  const kubectl = (...args: string[]): Promise<string> => started().kubectl(...args);
  printLogOnFailure(() => node);
  let [gateway, plaintext] = ['', ''];

  beforeAll(async () => {
    const images = [
      ...(await buildProjectImages(['fairlead', 'fairlead-proxy'])),
      ...(await buildImages([shopImage()])),
    ];
    node = await startOnlyNode({ images });
    await kubectl('create', 'namespace', NAMESPACE);
    const names = 'meshConfig.defaultConfig.proxyMetadata.ISTIO_META_DNS_CAPTURE=true';
    const chart = join(ROOT, 'charts/fairlead');
    await node.helm('install', 'fairlead', chart, '-n', NAMESPACE, '--set-string', names, '--wait', '--timeout=120s');
    for (const name of ['shop', 'covers', 'gateway'])
      await node.apply(await readFile(join(ROOT, `examples/cluster/${name}.yaml`), 'utf8'));
    await node.helm(
      ...['install', 'ingressgateway', join(ROOT, 'charts/fairlead-gateway'), '-n', SHOP],
      ...['--set', 'service.type=ClusterIP,autoscaling.enabled=false', '--wait', '--timeout=120s'],
    );
    for (const namespace of [SHOP, 'publisher'])
      await kubectl('-n', namespace, 'wait', '--for=condition=Available', 'deployment', '--all', '--timeout=120s');
    const forward = async (name: string): Promise<string> =>
      `http://127.0.0.1:${await started().forward(`${name}.${SHOP}.svc.cluster.local`, 80)}`;
    [gateway, plaintext] = [await forward('ingressgateway'), await forward('storefront')];
  }, 600_000);
  afterAll(async () => {
    await node?.stop();
  });

  const page = async (origin: string): Promise<Page> => (await (await fetch(`${origin}/`)).json()) as Page;

  test('have an Envoy each, and are ready', async () => {
    const containers = await kubectl(
      ...['-n', SHOP, 'get', 'pods', '-l', 'app=storefront'],
      ...['-o', 'jsonpath={.items[*].spec.initContainers[*].name} {.items[*].status.initContainerStatuses[*].ready}'],
    );
    expect(containers).toBe('istio-init istio-proxy true true');
  });

  test('speak mutual TLS with each other, and with nobody else where a policy asks for that', async () => {
    expect(await page(plaintext)).toMatchObject({ service: 'storefront' });
    await started().apply(
      JSON.stringify({
        apiVersion: 'security.istio.io/v1',
        kind: 'PeerAuthentication',
        metadata: { name: 'default', namespace: SHOP },
        spec: { mtls: { mode: 'STRICT' } },
      }),
    );
    await expect.poll(() => page(plaintext).catch(() => 'refused'), { timeout: 60_000 }).toBe('refused');
    const { service, parts } = await page(gateway);
    expect([service, parts['reviews']?.status, parts['stock']?.status]).toEqual(['storefront', 200, 200]);
  });

  test('reach a ServiceEntry by a name that no DNS server has', async () => {
    await expect
      .poll(async () => (await page(gateway)).parts['covers'], { timeout: 60_000 })
      .toMatchObject({ status: 200, service: 'covers' });
  });

  /** Restarts it while requests come, and goes on until its last old Pod has ended and more have come after that. */
  async function restart(namespace: string, deployment: string, selector: string): Promise<readonly string[]> {
    const load = startLoad(gateway, 4);
    const more = async (count: number): Promise<void> => {
      const until = load.answered() + count;
      await poll('answers', () => Promise.resolve(load.answered() >= until || undefined));
    };
    try {
      await more(50);
      const pods = await kubectl('-n', namespace, 'get', 'pods', '-l', selector, '-o', 'name');
      await kubectl('-n', namespace, 'rollout', 'restart', `deployment/${deployment}`);
      await kubectl('-n', namespace, 'rollout', 'status', `deployment/${deployment}`, '--timeout=120s');
      await kubectl('-n', namespace, 'wait', '--for=delete', ...pods.trim().split('\n'), '--timeout=120s');
      await more(200);
    } finally {
      await load.stop();
    }
    return load.stop();
  }

  test('lose no request while an application restarts', { timeout: 300_000 }, async () => {
    expect(await restart(SHOP, 'reviews-v1', 'app=reviews,version=v1')).toEqual([]);
    expect(await restart(SHOP, 'storefront-v1', 'app=storefront')).toEqual([]);
  });

  test('lose no request while Fairlead restarts', { timeout: 300_000 }, async () => {
    expect(await restart(NAMESPACE, 'fairlead', 'app.kubernetes.io/name=fairlead')).toEqual([]);
  });

  test('lose no request while the gateway restarts', { timeout: 300_000 }, async () => {
    expect(await restart(SHOP, 'ingressgateway', 'app=ingressgateway')).toEqual([]);
  });
});
