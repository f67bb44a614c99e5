import { expect, test } from 'vitest';
import { withPeers } from '../peers/with-peers.ts';
import { configOf, deploymentOf, renderChart } from './chart.ts';

withPeers(['helm'], 'kubeconfigs of other clusters in the chart', () => {
  const readers = (objects: readonly unknown[]): number =>
    (objects as { kind: string; metadata: { name: string } }[]).filter(
      ({ kind, metadata: { name } }) => kind === 'Role' && name.endsWith('-remote-clusters'),
    ).length;
  const credentials = { namespaces: ['shop'] };

  test('are in Secrets that are found by their label, unless somebody names one', async () => {
    const objects = await renderChart({ credentials });
    const { container } = deploymentOf(objects);
    expect(configOf((container['args'] as string[]).slice(1)).remoteKubeconfigs).toBeUndefined();
    expect(readers(objects)).toBe(1);
  });

  test('are read from a Secret that is mounted, and no other is', async () => {
    const objects = await renderChart({ credentials, remoteKubeconfigsSecret: 'others' });
    const { container } = deploymentOf(objects);
    const directory = configOf((container['args'] as string[]).slice(1)).remoteKubeconfigs;
    expect(container['volumeMounts']).toContainEqual({ name: 'remote-clusters', mountPath: directory, readOnly: true });
    expect(JSON.stringify(objects)).toContain('"secretName":"others"');
    expect(readers(objects)).toBe(0);
  });
});
