import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { freePorts } from '../../../src/testing/free-ports.ts';
import { afterSuite } from '../../../src/testing/on-end.ts';
import { blockOf } from '../../docs/markdown.ts';
import { type Shell, createShell } from '../../docs/shell.ts';
import { SHOP, SYSTEM } from '../bookshop.ts';
import type { RunningNode } from '../node.ts';

const TIMEOUT = 300_000;

/** What a reader of the guide types, in its order. Leaves the node as it was. */
export function guide(node: () => RunningNode): void {
  const onEnd = afterSuite();
  let shell: Shell;

  beforeAll(async () => {
    const env = { KUBECONFIG: node().kubeconfig };
    shell = await createShell({ programs: ['helm', 'istioctl', 'kubectl'], env, onEnd });
    // Two releases have little room on one node.
    const values = {
      image: { repository: 'fairlead' },
      proxy: { image: { repository: 'fairlead-proxy' } },
      meshConfig: { defaultConfig: { proxyMetadata: { ISTIO_META_DNS_CAPTURE: 'true' } } },
      ...{ replicas: 1, preStopSeconds: 1, resources: { requests: { cpu: '50m', memory: '128Mi' } } },
    };
    await writeFile(join(shell.directory, 'values.yaml'), JSON.stringify(values));
    await node().kubectl('create', 'namespace', 'shop');
    await type('kubectl -n shop create deployment web --image=bookshop:dev');
  });

  afterAll(async () => {
    for (const name of [SHOP, 'publisher', 'shop']) await node().kubectl('delete', 'namespace', name, '--wait=false');
    for (const release of ['second', 'canary', 'fairlead'])
      await node().helm('uninstall', release, '-n', SYSTEM, '--ignore-not-found');
    await type(blockOf('operations.md#uninstall/2').replaceAll(' delete ', ' delete --ignore-not-found '));
    await node().kubectl('wait', '--for=delete', 'namespace', SHOP, 'publisher', 'shop', '--timeout=120s');
  }, TIMEOUT);

  /** Runs a block, or commands; returns what it prints. */
  async function type(commands: string): Promise<string> {
    const { code, stdout, stderr } = await shell.run(commands);
    expect(code, `${commands}\n${stdout}${stderr}`).toBe(0);
    return stdout;
  }

  test('the first steps lead to a routed request', { timeout: TIMEOUT }, async () => {
    await type(blockOf('first-steps.md#in-your-own/3'));
    await type(blockOf('first-steps.md#in-your-own/4'));
    await type(blockOf('first-steps.md#in-your-own/5'));
    const [port] = await freePorts(1);
    const requests = blockOf('first-steps.md#in-your-own/6').replaceAll('8080', `${port}`);
    const answers = await type(`${requests}\nkill %1`);
    expect(answers.match(/"version": "v[12]"/g)?.length, answers).toBe(8);
  });

  test('a namespace becomes part of the mesh', { timeout: TIMEOUT }, async () => {
    await type(blockOf('first-steps.md#in-your-own/7'));
    await expect.poll(() => proxiesOf('shop'), { timeout: 60_000 }).toEqual(['istio-proxy']);
  });

  test('conditions can be read, and waited for', { timeout: TIMEOUT }, async () => {
    const text = await type(blockOf('status.md#where-to-start'));
    expect(text).toMatch(/^bookshop +virtualservice\S+\/reviews .* True +True +True /m);
    expect(text).toMatch(/^storefront-v1-\S+\.bookshop +envoy .* SYNCED/m);
    await type(blockOf('status.md#conditions'));
  });

  test('a release is upgraded, and rolled back', { timeout: TIMEOUT }, async () => {
    await type(blockOf('operations.md#upgrade'));
    await type(blockOf('operations.md#upgrade/2'));
    await type('helm upgrade fairlead charts/fairlead -n istio-system -f values.yaml --wait --timeout=2m');
  });

  test('a namespace moves to a canary, and back', { timeout: TIMEOUT }, async () => {
    await type(blockOf('operations.md#upgrade-by-a-canary'));
    await expect.poll(() => revisionsOf('shop'), { timeout: 60_000 }).toEqual(['canary']);
    await type(blockOf('operations.md#upgrade-by-a-canary/2'));
    await expect.poll(() => revisionsOf('shop'), { timeout: 60_000 }).toEqual(['default']);
    await type('helm uninstall canary -n istio-system --wait');
  });

  // In place of istiod, another release of Fairlead.
  test('a namespace moves to Fairlead from another control plane, and back', { timeout: TIMEOUT }, async () => {
    const values = '-f values.yaml --set revision=fairlead,createMeshConfig=false';
    await type(`helm install second charts/fairlead -n istio-system ${values}`);
    await type(blockOf('from-istiod-and-back.md#side-by-side/3').replaceAll('/fairlead', '/second-fairlead'));
    await type(blockOf('from-istiod-and-back.md#move-a-namespace'));
    await expect.poll(() => revisionsOf('shop'), { timeout: 60_000 }).toEqual(['fairlead']);
    await type(blockOf('from-istiod-and-back.md#return'));
    await expect.poll(() => revisionsOf('shop'), { timeout: 60_000 }).toEqual(['default']);
  });

  async function podsOf(namespace: string): Promise<readonly Pod[]> {
    const { items } = parse(await node().kubectl('-n', namespace, 'get', 'pods', '-o', 'json')) as { items: Pod[] };
    return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  async function proxiesOf(namespace: string): Promise<readonly string[]> {
    const pods = await podsOf(namespace);
    return pods.flatMap(({ spec }) =>
      (spec.initContainers ?? []).map(({ name }) => name).filter((name) => name === 'istio-proxy'),
    );
  }

  /** The revisions whose proxies its Pods have. */
  async function revisionsOf(namespace: string): Promise<readonly (string | undefined)[]> {
    return (await podsOf(namespace)).map(
      ({ metadata }) => metadata.labels?.['istio.io/rev'] ?? metadata.annotations?.['istio.io/rev'],
    );
  }
}

interface Pod {
  readonly metadata: {
    readonly deletionTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: { readonly initContainers?: readonly { readonly name: string }[] };
}
