import { beforeAll, expect, test } from 'vitest';
import { version } from '../../../src/version.ts';
import type { RunningNode } from '../node.ts';

export function proxyImage(started: () => RunningNode): void {
  const inside = (...command: string[]): Promise<string> =>
    started().kubectl('-n', 'restricted', 'exec', 'proxy', '--', ...command);

  beforeAll(async () => {
    await started().apply(OBJECTS);
    await started().kubectl('-n', 'restricted', 'wait', '--for=condition=Ready', 'pod/proxy', '--timeout=60s');
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
}

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
