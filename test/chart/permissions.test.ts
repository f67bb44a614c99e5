import { expect, test } from 'vitest';
import { kinds, kindsToRead } from '../../src/api/kinds.ts';
import { unreadResources } from '../../src/api/unread-kinds.ts';
import { withPeers } from '../peers/with-peers.ts';
import { NAMESPACE, configOf, deploymentOf, renderChart } from './chart.ts';
import { permissionsOf, printPermission } from './permissions.ts';

withPeers(['helm'], 'the account of the chart', () => {
  test('grants exactly the permissions that the program uses', async () => {
    const granted = permissionsOf(await renderChart(), 'fairlead', NAMESPACE).map(printPermission);
    expect(granted.sort()).toEqual([...reads(), ...writes(), ...tells('mutating', 'injection')].sort());
  });

  test('lets it read exports and imports of multi-cluster services where they are on, and say what became of exports', async () => {
    const granted = async (values: object): Promise<string[]> => {
      const all = permissionsOf(await renderChart(values), 'fairlead', NAMESPACE).map(printPermission);
      return all.filter((text) => text.includes('multicluster.x-k8s.io')).sort();
    };
    const read = kinds
      .filter(({ multicluster }) => multicluster === true)
      .flatMap(({ group, plural }) => [`list ${group}/${plural}`, `watch ${group}/${plural}`]);
    const written = kinds
      .filter(({ isReported }) => isReported === true)
      .flatMap(({ group, plural }) => [`get ${group}/${plural}`, `patch ${group}/${plural}/status`]);
    expect(await granted({})).toEqual([]);
    expect(await granted({ multiclusterServices: true })).toEqual([...read, ...written].sort());
    expect(await granted({ multiclusterServices: true, statusWrites: false })).toEqual(read.sort());
    const { container } = deploymentOf(await renderChart({ multiclusterServices: true }));
    expect(configOf((container['args'] as string[]).slice(1)).mesh.multiclusterServices).toBe(true);
  });

  test('lets it change what tells the API server to ask, by name, and only where that is wanted', async () => {
    const granted = async (values: object): Promise<string[]> => {
      const all = permissionsOf(await renderChart(values), 'fairlead', NAMESPACE).map(printPermission);
      return all.filter((text) => /webhookconfigurations|create networking/.test(text)).sort();
    };
    const injection = { enabled: false };
    expect(await granted({ injection })).toEqual([]);
    const own = tells('validating', 'validation').sort();
    expect(await granted({ injection, validation: { enabled: true } })).toEqual(own);
    expect(await granted({ injection, validation: { enabled: true, failurePolicy: 'Fail' } })).toEqual([
      `create networking.istio.io/gateways ${NAMESPACE}/*`,
      ...own,
    ]);
  });

  test('may read Secrets and ConfigMaps in the named namespaces, in all, or in none but its own', async () => {
    const granted = async (namespaces: string[]): Promise<string[]> => {
      const objects = await renderChart({ credentials: { namespaces } });
      const all = permissionsOf(objects, 'fairlead', NAMESPACE).map(printPermission);
      return all.filter((text) => /^(list|watch) \/(secrets|configmaps)( edge| bank|$)/.test(text)).sort();
    };
    expect(await granted([])).toEqual([]);
    const all = ['list /configmaps', 'list /secrets', 'watch /configmaps', 'watch /secrets'];
    expect(await granted(['*'])).toEqual(all);
    expect(await granted(['edge', '*'])).toEqual(all);
    expect(await granted(['edge', 'bank'])).toEqual(
      ['edge', 'bank']
        .flatMap((each) => [`list /configmaps ${each}/*`, `list /secrets ${each}/*`, `watch /configmaps ${each}/*`])
        .concat('watch /secrets edge/*', 'watch /secrets bank/*')
        .sort(),
    );
  });

  test('may read the Secrets of remote clusters, wherever else it may read Secrets', async () => {
    const granted = async (namespaces: string[]): Promise<string[]> => {
      const objects = await renderChart({ credentials: { namespaces } });
      const all = permissionsOf(objects, 'fairlead', NAMESPACE).map(printPermission);
      return all.filter((text) => text === `list /secrets ${NAMESPACE}/*` || text === `watch /secrets ${NAMESPACE}/*`);
    };
    expect(await granted([])).toHaveLength(2);
    expect(await granted(['edge'])).toHaveLength(2);
    expect(await granted(['edge', NAMESPACE])).toHaveLength(2);
    // A rule for all namespaces has them.
    expect(await granted(['*'])).toEqual([]);
  });

  test('lets it write no status when it shall not', async () => {
    const objects = await renderChart({ statusWrites: false });
    const granted = permissionsOf(objects, 'fairlead', NAMESPACE).map(printPermission);
    expect(granted.sort()).toEqual([...reads(), ...tells('mutating', 'injection')].sort());
    expect(configOf((deploymentOf(objects).container['args'] as string[]).slice(1)).statusWrites).toBe(false);
  });
});

/** The roots in a webhook configuration. */
function tells(kind: string, name: string): string[] {
  const resource = `admissionregistration.k8s.io/${kind}webhookconfigurations fairlead-${NAMESPACE}-${name}`;
  return ['list', 'watch', 'patch'].map((verb) => `${verb} ${resource}`);
}

/** All but conditions: objects, and what the certificate authority needs. */
function reads(): string[] {
  const read = kindsToRead({ multiclusterServices: false }).flatMap(({ kind, group, plural }) => {
    const place = kind === 'ConfigMap' ? ` ${NAMESPACE}/istio` : '';
    return ['list', 'watch'].map((verb) => `${verb} ${group}/${plural}${place}`);
  });
  const authority = [
    'list /configmaps istio-ca-root-cert',
    'create authentication.k8s.io/tokenreviews',
    'create authorization.k8s.io/subjectaccessreviews',
    // For kubeconfigs of remote clusters.
    ...['list', 'watch'].map((verb) => `${verb} /secrets ${NAMESPACE}/*`),
    `get /secrets ${NAMESPACE}/istio-ca-secret`,
    `get /secrets ${NAMESPACE}/fairlead-ca`,
    `update /secrets ${NAMESPACE}/istio-ca-secret`,
    `update /secrets ${NAMESPACE}/fairlead-ca`,
    `get /secrets ${NAMESPACE}/cacerts`,
  ];
  const reports = [
    ...['list', 'watch'].map((verb) => `${verb} fairlead.dev/generationsinforce`),
    ...['list', 'watch', 'create', 'patch'].map((verb) => `${verb} fairlead.dev/replicareports ${NAMESPACE}/*`),
  ];
  return [...read, ...unreadResources.map(({ group, plural }) => `list ${group}/${plural}`), ...authority, ...reports];
}

/** Conditions, Events beside them, the roots of the mesh, and the Lease that says who may write them. */
function writes(): string[] {
  return [
    ...kinds
      .filter(({ custom }) => custom)
      .flatMap(({ group, plural }) => [`get ${group}/${plural}`, `patch ${group}/${plural}/status`]),
    'create /configmaps',
    ...['watch', 'patch'].map((verb) => `${verb} /configmaps istio-ca-root-cert`),
    ...['create', 'update', 'delete'].map((verb) => `${verb} fairlead.dev/generationsinforce`),
    'create events.k8s.io/events',
    'create coordination.k8s.io/leases kube-system/*',
    'get coordination.k8s.io/leases kube-system/fairlead',
    'update coordination.k8s.io/leases kube-system/fairlead',
  ];
}
