import { expect, test } from 'vitest';
import type { ClusterReport, ExportReport } from '../debug/cluster-report.ts';
import { printClusters } from './clusters.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const own = { id: 'Kubernetes', secretName: '', syncStatus: 'synced', kind: 'Kubernetes', phase: 'synced' } as const;

test('clusters are listed with their state, and below them what is wrong', () => {
  const east = {
    ...{ ...own, id: 'east', secretName: 'istio-system/east', since: '2026-01-01T09:00:00Z' },
    ...{ objects: { Pod: 7, Service: 3 }, stalenessSeconds: 4.2 },
  };
  const west: ClusterReport = {
    ...{ ...own, id: 'west', secretName: 'istio-system/west', phase: 'timed out', since: '2026-01-01T11:55:00Z' },
    trouble: { reason: 'Node: 403 Forbidden', since: '2026-01-01T11:54:00Z' },
    refusals: ['Secret istio-system/west: data[west].users[0].user.exec is bad\u001b[2J'],
  };
  expect(printClusters([{ address: 'a', report: [own, east, west] }], NOW)).toBe(
    [
      'CLUSTER     NAMED BY           STATE      FOR  OBJECTS  HEARD\n',
      'Kubernetes  -                  SYNCED     -    -        -\n',
      'east        istio-system/east  SYNCED     3h   10       4s ago\n',
      'west        istio-system/west  TIMED OUT  5m   -        -\n',
      '\n',
      'CLUSTER  REMARK\n',
      'west     Node: 403 Forbidden, since 2026-01-01T11:54:00Z\n',
      'west     Secret istio-system/west: data[west].users[0].user.exec is bad\\u{1b}[2J\n',
    ].join(''),
  );
});

test('with several replicas, each says for itself', () => {
  const report = [{ ...own, refusals: ['x'] }];
  const text = printClusters(
    [
      { address: 'a', report },
      { address: 'b', report },
      { address: 'c', failure: 'away' },
    ],
    NOW,
  );
  expect(text.match(/ (REPLICA|a|b|c)$/gm)).toEqual([' REPLICA', ' a', ' b', ' REPLICA', ' a', ' b']);
  expect(printClusters([{ address: 'c', failure: 'away' }], NOW)).toBe('');
});

test('what is told to a ClusterMesh is a remark on the own cluster, of the replica that tells it', () => {
  const remarks = (clusterMeshExport: Partial<ExportReport>): string => {
    const all = { file: '/export', phase: 'written', keys: 0, pending: 0, refused: [], refusedInAll: 0 } as const;
    const report = [{ ...own, clusterMeshExport: { ...all, ...clusterMeshExport } }];
    return printClusters([{ address: 'a', report }], NOW).split('REMARK\n')[1] ?? '';
  };
  expect(remarks({ phase: 'standby' })).toBe('');
  expect(remarks({ phase: 'connecting', trouble: { reason: 'refused', since: '2026-01-01T11:00:00Z' } })).toBe(
    'Kubernetes  ClusterMesh export: refused, since 2026-01-01T11:00:00Z\n',
  );
  const refused = [{ key: 'cilium/a', reason: 'no space' }];
  expect(remarks({ phase: 'writing', endpoint: 'e:2379', keys: 7, pending: 2, refused, refusedInAll: 9 })).toBe(
    'Kubernetes  ClusterMesh export: 7 keys are in e:2379, 2 are still to be written\n' +
      'Kubernetes  ClusterMesh export: etcd refuses 9 keys; the first is cilium/a: no space\n',
  );
});

test('what a cluster of a ClusterMesh does not write is a remark on it', () => {
  const clusterMesh = { connected: true, resources: {}, failures: 0, lacks: 'writes no addresses' };
  const report: ClusterReport[] = [{ ...own, id: 'cilium:east', kind: 'ClusterMesh', clusterMesh }];
  expect(printClusters([{ address: 'a', report }], NOW)).toMatch(/^cilium:east {2}writes no addresses$/m);
});
