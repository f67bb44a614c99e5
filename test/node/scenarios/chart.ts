import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { version } from '../../../src/base/version.ts';
import { blockOf } from '../../docs/markdown.ts';
import { NODE } from '../configuration.ts';
import { IMAGES } from '../bookshop.ts';
import type { RunningNode } from '../node.ts';

const CHART = join(import.meta.dirname, '../../../charts/fairlead');
const NAMESPACE = 'istio-system';

/** On a node that nothing else was installed on. */
export function chart(started: () => RunningNode): void {
  const kubectl = (...args: string[]): Promise<string> => started().kubectl('-n', NAMESPACE, ...args);
  const helm = (...args: string[]): Promise<string> => started().helm('-n', NAMESPACE, ...args);
  let before = new Set<string>();

  beforeAll(async () => {
    await started().kubectl('create', 'namespace', NAMESPACE);
    await started().kubectl('label', 'namespace', NAMESPACE, 'pod-security.kubernetes.io/enforce=restricted');
    before = await objectsOf(started());
  });

  test('installs Pods that are ready, under the strictest Pod security', async () => {
    await helm(
      'install',
      'fairlead',
      CHART,
      ...IMAGES,
      '--set',
      'replicas=1,preStopSeconds=1',
      '--wait',
      '--timeout=120s',
    );
    expect(await ready()).toBe('1');
  });

  test('serves through its Service', async () => {
    const port = await started().forward(`fairlead.${NAMESPACE}.svc.cluster.local`, 15014);
    expect(await (await fetch(`http://127.0.0.1:${port}/version`)).text()).toBe(version);
  });

  test('is upgraded and rolled back', async () => {
    const first = await podNames();
    await helm('upgrade', 'fairlead', CHART, '--reuse-values', '--set', 'log.level=debug', '--wait', '--timeout=120s');
    await ended(first);
    const second = await podNames();
    expect(second).toHaveLength(1);
    await helm('rollback', 'fairlead', '1', '--wait', '--timeout=120s');
    await ended(second);
    expect(await ready()).toBe('1');
  });

  test('is uninstalled, and leaves what the guide says and how to remove that', async () => {
    const pods = await podNames();
    const [program, ...args] = blockOf('operations.md#uninstall').trim().split(' ');
    expect(program).toBe('helm');
    await started().helm(...args, '--wait', '--timeout=120s');
    await ended(pods);
    await expect.poll(left).toEqual(OUTLIVES);
    for (const command of removal()) {
      const [program, ...args] = command.split(' ');
      expect(program).toBe('kubectl');
      await started().kubectl(...args.map((arg) => arg.replace(/^charts\/fairlead/, CHART)));
    }
    await expect.poll(left).toEqual([]);
  });

  async function podNames(): Promise<string[]> {
    return (await kubectl('get', 'pods', '-o', 'name')).trim().split('\n');
  }

  async function ended(pods: readonly string[]): Promise<void> {
    await kubectl('wait', '--for=delete', ...pods, '--timeout=60s');
  }

  /** What there was not before. */
  async function left(): Promise<string[]> {
    return [...(await objectsOf(started()))].filter((name) => !before.has(name)).sort();
  }

  function ready(): Promise<string> {
    return kubectl('get', 'deployment/fairlead', '-o', 'jsonpath={.status.readyReplicas}');
  }
}

/** The trust of the mesh, its API, and who led last. */
const OUTLIVES = [
  ...['default', NAMESPACE, 'kube-system'].map((namespace) => `ConfigMap ${namespace} istio-ca-root-cert`),
  ...['fairlead-ca', 'istio-ca-secret'].map((name) => `Secret ${NAMESPACE} ${name}`),
  `ConfigMap ${NAMESPACE} istio`,
  'Lease kube-system fairlead',
  ...readdirSync(join(CHART, 'crds')).map((file) => {
    const [, name] = /^ {2}name: (\S+)$/m.exec(readFileSync(join(CHART, 'crds', file), 'utf8')) ?? [];
    return `CustomResourceDefinition <none> ${name}`;
  }),
].sort();

/** The commands of the guide. */
function removal(): readonly string[] {
  const commands = blockOf('operations.md#uninstall/2').trim().split('\n');
  expect(commands).not.toEqual([]);
  return commands;
}

/** Every object of the cluster, apart from what describes others: Events, and the versions of the API. */
async function objectsOf(node: RunningNode): Promise<Set<string>> {
  const objects = new Set<string>();
  for (const namespaced of [true, false]) {
    const kinds = await node.kubectl('api-resources', '--verbs=list', `--namespaced=${namespaced}`, '-o', 'name');
    const wanted = kinds
      .trim()
      .split('\n')
      .filter((kind) => !/^(events|apiservices)(\.|$)/.test(kind));
    const columns = 'custom-columns=K:.kind,NS:.metadata.namespace,N:.metadata.name';
    const lines = await node.kubectl('get', wanted.join(','), '-A', '--no-headers', '-o', columns);
    for (const line of lines.trim().split('\n')) objects.add(line.trim().split(/ +/).join(' '));
  }
  // The kubelet's, which may come after the node is ready.
  objects.delete(`Lease kube-node-lease ${NODE.name}`);
  return objects;
}
