import { beforeAll, expect, test } from 'vitest';
import { version } from '../../../src/base/version.ts';
import type { RunningNode } from '../node.ts';

export function proxyImage(started: () => RunningNode): void {
  const inside = (...command: string[]): Promise<string> =>
    started().kubectl('-n', 'restricted', 'exec', 'proxy', '--', ...command);

  beforeAll(async () => {
    await started().apply(OBJECTS);
    await started().kubectl('-n', 'restricted', 'wait', '--for=condition=Ready', 'pod/proxy', '--timeout=60s');
  });

  test('runs as the user whose traffic is not intercepted, where its files cannot be changed', async () => {
    expect(await inside('node', '-p', 'process.getuid()')).toBe('1337\n');
    await expect(inside('node', '-e', 'fs.writeFileSync("/app/x", "")')).rejects.toThrow('read-only file system');
  });

  test('has Envoy, the agent, and nft and ip with their libraries', async () => {
    expect(await inside('envoy', '--version')).toMatch(/\/1\.40\.\d+\//);
    expect(await inside('node', '/app/dist/main.js', 'version')).toContain(version);
    expect(await inside('nft', '--version')).toMatch(/^nftables v1\./);
    expect(await inside('ip', '-Version')).toMatch(/^ip utility, iproute2-/);
  });

  test('has no shell and nothing else to run', async () => {
    await expect(inside('sh', '-c', 'true')).rejects.toThrow('executable file not found');
    const list = `console.log(process.env.PATH.split(':').flatMap((path) => { try { return fs.readdirSync(path) } catch { return [] } }).sort().join(' '))`;
    const found = (await inside('node', '-e', list)).trim().split(' ');
    expect(found).toEqual(['env', 'envoy', 'ip', 'nft', 'node', 'sleep']);
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
