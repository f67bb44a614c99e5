import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunningNode } from './node.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Of Fairlead itself; of the bookshop and its gateway (examples/cluster). */
export const [SYSTEM, SHOP] = ['istio-system', 'bookshop'];

export const CHARTS = { fairlead: join(ROOT, 'charts/fairlead'), gateway: join(ROOT, 'charts/fairlead-gateway') };

/** As the node has them, which no registry does. */
export const IMAGES = ['--set', 'image.repository=fairlead,proxy.image.repository=fairlead-proxy'];

/** Where `helm install` and `helm upgrade` wait for Pods. */
export const WAIT = ['--wait', '--timeout=120s'];

/** Installs Fairlead in a namespace that admits Pods of the strictest level only. */
export async function installFairlead(node: RunningNode, ...values: string[]): Promise<void> {
  await node.apply(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: SYSTEM, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    }),
  );
  // Names that no DNS server has, such as covers.example.com.
  const names = ['--set-string', 'meshConfig.defaultConfig.proxyMetadata.ISTIO_META_DNS_CAPTURE=true'];
  await node.helm('install', 'fairlead', CHARTS.fairlead, '-n', SYSTEM, ...IMAGES, ...names, ...values, ...WAIT);
  // From then on, no Pod starts without its proxy.
  const injection = `mutatingwebhookconfiguration/fairlead-${SYSTEM}-injection`;
  for (const [field, value] of [
    ['rules[0].operations[0]', 'CREATE'],
    ['failurePolicy', 'Fail'],
  ])
    await node.kubectl('wait', `--for=jsonpath={.webhooks[0].${field}}=${value}`, injection, '--timeout=120s');
}

/** The bookshop with sidecars, behind a gateway. @param files more of its objects, of examples/. */
export async function openBookshop(node: RunningNode, files: readonly string[] = []): Promise<void> {
  for (const file of ['cluster/shop', 'cluster/covers', 'cluster/gateway', ...files])
    await node.apply(await readFile(join(ROOT, `examples/${file}.yaml`), 'utf8'));
  const service = ['--set', 'service.type=ClusterIP,autoscaling.enabled=false'];
  await node.helm('install', 'ingressgateway', CHARTS.gateway, '-n', SHOP, ...service, ...WAIT);
  for (const namespace of [SHOP, 'publisher'])
    await node.kubectl('-n', namespace, 'wait', '--for=condition=Available', 'deployment', '--all', '--timeout=120s');
}

/** One more gateway of the bookshop, in a namespace of its own, with its own `ProxyConfig`. Returns its origin. */
export async function openGateway(node: RunningNode, name: string, proxyConfig: object): Promise<string> {
  const values = {
    service: { type: 'ClusterIP' },
    autoscaling: { enabled: false },
    labels: { istio: 'ingressgateway' },
    podAnnotations: { 'proxy.istio.io/config': JSON.stringify(proxyConfig) },
    // Longer than any test waits: whatever ends earlier has ended by itself.
    terminationGracePeriodSeconds: 600,
  };
  const file = join(node.directory, `${name}.json`);
  await writeFile(file, JSON.stringify(values));
  await node.helm('install', name, CHARTS.gateway, '-n', name, '--create-namespace', '-f', file, ...WAIT);
  return `http://127.0.0.1:${await node.forward(`${name}.${name}.svc.cluster.local`, 80)}`;
}

/** Removes it with its namespace. */
export async function closeGateway(node: RunningNode, name: string): Promise<void> {
  await node.helm('uninstall', name, '-n', name);
  await node.kubectl('delete', 'namespace', name, '--wait=false');
}
