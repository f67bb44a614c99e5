import { afterAll, beforeAll, expect, test } from 'vitest';
import { version } from '../../src/version.ts';
import { printLogOnFailure } from '../peers/with-peers.ts';
import type { RunningNode } from './node.ts';
import { startOnlyNode } from './only-node.ts';
import { buildProjectImages } from './project-images.ts';
import { withNode } from './with-node.ts';

withNode('the image of the proxy', () => {
  let node: RunningNode | undefined;
  const started = (): RunningNode => node ?? expect.fail('it did not start');
  const inside = (...command: string[]): Promise<string> =>
    started().kubectl('-n', 'restricted', 'exec', 'proxy', '--', ...command);
  printLogOnFailure(() => node);

  beforeAll(async () => {
    node = await startOnlyNode({ images: await buildProjectImages(['fairlead-proxy']) });
    await started().apply(OBJECTS);
    await started().kubectl('-n', 'restricted', 'wait', '--for=condition=Ready', 'pod/proxy', '--timeout=60s');
  }, 600_000);
  afterAll(async () => {
    await node?.stop();
  });

  test('runs as the user whose traffic is not intercepted, where its files cannot be changed', async () => {
    expect(await inside('id', '-u')).toBe('1337\n');
    await expect(inside('touch', '/app/x')).rejects.toThrow('Read-only file system');
  });

  test('has Envoy, the agent, and nft with its libraries', async () => {
    expect(await inside('envoy', '--version')).toMatch(/\/1\.40\.\d+\//);
    expect(await inside('node', '/app/dist/main.js', 'version')).toContain(version);
    expect(await inside('nft', '--version')).toMatch(/^nftables v1\./);
  });
});

const OBJECTS = [
  {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'restricted', labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'proxy', namespace: 'restricted' },
    spec: {
      terminationGracePeriodSeconds: 1,
      // By its number, the user of the image is known not to be root.
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'proxy',
          image: `fairlead-proxy:${version}`,
          command: ['sleep', 'infinity'],
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    },
  },
]
  .map((object) => JSON.stringify(object))
  .join('\n---\n');
