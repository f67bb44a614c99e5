import { expect, test } from 'vitest';
import { withPeers } from '../peers/with-peers.ts';
import { configOf, deploymentOf, renderChart } from './chart.ts';

withPeers(['helm'], 'a ClusterMesh in the chart', () => {
  const meshOf = async (clusterMesh: object): Promise<unknown> => {
    const { container } = deploymentOf(await renderChart({ clusterMesh }));
    return configOf((container['args'] as string[]).slice(1)).clusterMesh;
  };

  test('is off unless somebody wants it', async () => {
    expect(await meshOf({})).toBeUndefined();
    expect(JSON.stringify(await renderChart())).not.toContain('clustermesh-apiserver');
  });

  test("is read from Cilium's Secrets, where these expect to be mounted", async () => {
    const mesh = { enabled: true, name: 'home', id: 7, import: 'all' };
    expect(await meshOf(mesh)).toEqual({
      own: { name: 'home', id: 7, limit: 255 },
      directory: '/var/lib/cilium/clustermesh',
      importsServices: true,
    });
    const { container } = deploymentOf(await renderChart({ clusterMesh: mesh }));
    expect(container['volumeMounts']).toContainEqual({
      name: 'clustermesh',
      mountPath: '/var/lib/cilium/clustermesh',
      readOnly: true,
    });
  });

  test('is written into as a Secret says', async () => {
    expect(await meshOf({ exportSecret: 'etcd', name: 'home', id: 300, maxConnectedClusters: 511 })).toEqual({
      own: { name: 'home', id: 300, limit: 511 },
      importsServices: false,
      exportFile: '/etc/fairlead/clustermesh-export/config',
    });
  });
});
