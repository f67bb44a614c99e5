import { expect, test } from 'vitest';
import { createProgram } from '../../src/app.ts';
import { runCli } from '../../src/cli/cli.ts';
import { printClusters } from '../../src/cli/clusters.ts';
import { printIdentities } from '../../src/cli/identities.ts';
import { printStatus } from '../../src/cli/status-text.ts';
import type { ObjectReport, ProxyReport, TypeReport } from '../../src/debug/status-report.ts';
import type { RotationReport } from '../../src/identity/rotation-report.ts';
import { blockOf } from './markdown.ts';
import { stepsOf } from './shell.ts';

const NOW = Date.parse('2026-11-24T09:17:41.000Z');
const ago = (seconds: number): string => new Date(NOW - seconds * 1_000).toISOString();

/** What a transcript prints for its only command. */
function outputOf(id: string, command: string): string {
  const [step, ...more] = stepsOf(blockOf(id));
  expect(more).toEqual([]);
  expect(step?.command).toBe(command);
  return step!.output;
}

test('clusters.md#several-clusters/2 is what fairlead clusters prints', () => {
  const own = { id: 'Kubernetes', secretName: '', syncStatus: 'synced', kind: 'Kubernetes', phase: 'synced' } as const;
  const secretName = (id: string): string => `istio-system/istio-remote-secret-${id}`;
  const report = [
    own,
    {
      ...{ ...own, id: 'east', secretName: secretName('east'), since: ago(3 * 3600) },
      ...{ objects: { Pod: 800, Service: 12 }, stalenessSeconds: 4 },
    },
    {
      ...{ ...own, id: 'west', secretName: secretName('west'), phase: 'timed out', since: ago(300) } as const,
      ...{ objects: { Pod: 300, Service: 10 }, stalenessSeconds: 6 },
      trouble: {
        reason: 'Node: 403 Forbidden (allow the account of the kubeconfig to list and watch them)',
        since: '2026-11-24T09:12:40.310Z',
      },
    },
  ];
  const printed = printClusters([{ address: 'a', report }], NOW);
  expect(outputOf('clusters.md#several-clusters/2', 'fairlead clusters')).toBe(printed);
});

test('clusters.md#cilium-clustermesh/2 is what fairlead clusters identities prints', () => {
  const labels = { 'k8s:app': 'db', 'k8s:io.cilium.k8s.policy.cluster': 'east' };
  const db = { cluster: 'east', id: 131_073, namespace: 'shop', pod: 'db-0', serviceAccount: 'db', host: '', node: 'n1' };
  expect(outputOf('clusters.md#cilium-clustermesh/2', 'fairlead clusters identities 10.2.3.4')).toBe(
    printIdentities([{ address: 'a', report: [{ ...db, labels }] }]),
  );
});

const synced: TypeReport = { synced: true, owed: 0, rejected: [], rejectedCount: 0, overdue: [] };

test('status.md#who-has-what is what fairlead status prints', () => {
  const proxy = (name: string, seconds: number, changes: Partial<ProxyReport> = {}): ProxyReport => ({
    ...{ proxy: `${name}.bookshop`, node: 'n', stream: name, build: 'envoy 1.40.0', connectedSince: ago(seconds) },
    ...{ synced: true, types: { cds: synced }, waitedForBy: [], waitedForByCount: 0 },
    ...changes,
  });
  const object = (name: string, seconds: number, changes: Partial<ObjectReport>): ObjectReport => ({
    ...{ object: name, generation: 7, isDeleted: false, since: ago(seconds), state: 'waiting' },
    ...{ waiting: [], waitingCount: 0, rejections: [], rejectingCount: 0 },
    ...changes,
  });
  const late = { waiting: [{ proxy: 'reviews-1.bookshop', stream: 's', since: ago(40) }], waitingCount: 1 };
  const rejection = {
    ...{ proxy: 'storefront-1.bookshop', build: 'envoy 1.40.0', name: '0.0.0.0_8080' },
    ...{ typeUrl: 'type.googleapis.com/envoy.config.listener.v3.Listener', message: '...' },
  };
  const printed = printStatus([
    {
      ...{ replica: 'fairlead-a', version: '1', at: ago(0), held: [] },
      proxies: [
        proxy('reviews-1', 3 * 3600, { synced: false, behindSince: ago(40), waitedForByCount: 2 }),
        proxy('storefront-1', 3 * 3600, {
          types: { lds: { ...synced, rejected: ['0.0.0.0_8080'], rejectedCount: 1, error: '...' } },
          waitedForByCount: 1,
        }),
        proxy('ratings-1', 26 * 60),
      ],
      objects: [
        object('DestinationRule/bookshop/old', 40, { isDeleted: true, ...late }),
        object('VirtualService/bookshop/reviews', 40, late),
        object('Gateway/bookshop/way-in', 12, { generation: 2, state: 'rejected', rejections: [rejection], rejectingCount: 1 }),
      ],
    },
  ]);
  expect(outputOf('status.md#who-has-what', 'fairlead status')).toBe(printed);
});

test('gateways.md#replace-the-root is what fairlead identity prints', async () => {
  const since = '2026-11-23T07:00:00.000Z';
  const root = (role: string, subject: string, fingerprint: string, expires: string, trusted: string) => ({
    ...{ role, subject: `"${subject}"`, fingerprint, expires, since: trusted },
  });
  const report = {
    ...{ step: 'Distributing', since },
    waitingFor: '2 proxies to acknowledge the roots, at most until 2026-11-24T08:00:00.000Z',
    roots: [
      root('signing', 'O=old', '5B:7E:...', '2036-11-20T06:48:24.000Z', '2026-11-01T09:12:00.000Z'),
      root('next', 'O=new', 'C2:19:...', '2036-11-23T07:00:00.000Z', since),
    ],
  };
  let out = '';
  await runCli(['identity'], {
    program: () => Promise.resolve({ ...createProgram(), identity: () => Promise.resolve(report as RotationReport) }),
    ...{ out: (text) => void (out += text), err: (text) => void (out += text), env: {} },
    signal: new AbortController().signal,
  });
  expect(outputOf('gateways.md#replace-the-root', 'fairlead identity')).toBe(out);
});
