import { expect, test } from 'vitest';
import type { Node, Pod, PodSpec, PodStatus } from '../../api/core.ts';
import type { ObjectMeta } from '../../api/object.ts';
import { augmentLabels, localityOfLabels, localityOfNode, reconcilePod, reconcileWorkloadEntry } from './workload.ts';

const context = { cluster: 'c1', trustDomain: 'td' };
const ready = [{ type: 'Ready', status: 'True' }];

function podOf(metadata: Partial<ObjectMeta> = {}, spec: PodSpec = {}, status: PodStatus = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a-1', namespace: 'shop', ...metadata },
    spec,
    status: { phase: 'Running', podIPs: [{ ip: '10.0.0.1' }], conditions: ready, ...status },
  };
}

function nodeOf(labels: Record<string, string>): Node {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n', labels } };
}

const topology = { 'topology.kubernetes.io/region': 'r', 'topology.kubernetes.io/zone': 'z' };

test('a Pod is a workload, with the locality of its node', () => {
  const pod = podOf(
    { labels: { app: 'a', 'security.istio.io/tlsMode': 'istio', 'topology.istio.io/network': 'n1' } },
    { serviceAccountName: 'a', nodeName: 'n' },
    { podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }] },
  );
  expect(reconcilePod(pod, { ...context, node: nodeOf(topology) })).toEqual({
    kind: 'Pod',
    cluster: 'c1',
    namespace: 'shop',
    name: 'a-1',
    addresses: ['10.0.0.1', 'fd00::1'],
    labels: {
      app: 'a',
      'security.istio.io/tlsMode': 'istio',
      ...topology,
      'topology.istio.io/cluster': 'c1',
      'topology.istio.io/network': 'n1',
      'kubernetes.io/hostname': 'n',
    },
    identity: 'spiffe://td/ns/shop/sa/a',
    tlsMode: 'istio',
    locality: 'r/z/',
    network: 'n1',
    nodeName: 'n',
    workload: 'a-1',
    ports: {},
    ready: true,
  });
});

test.each([
  ['has no address', { podIPs: [] }],
  ['has succeeded', { phase: 'Succeeded' as const }],
  ['has failed', { phase: 'Failed' as const }],
])('a Pod that %s is none', (_, status) => {
  expect(reconcilePod(podOf({}, {}, status), context)).toBeUndefined();
});

test('a status may have the one address only', () => {
  const { podIPs: _, ...status } = podOf().status!;
  expect(reconcilePod({ ...podOf(), status: { ...status, podIP: '10.0.0.2' } }, context)?.addresses).toEqual([
    '10.0.0.2',
  ]);
});

test.each([
  ['is ready', {}, {}, true],
  ['is not ready', {}, { conditions: [{ type: 'Ready', status: 'False' }] }, false],
  ['says nothing', {}, { conditions: [] }, false],
  ['is being deleted', { deletionTimestamp: '2026-01-01T00:00:00Z' }, {}, false],
])('a Pod that %s', (_, metadata, status, expected) => {
  expect(reconcilePod(podOf(metadata, {}, status), context)?.ready).toBe(expected);
});

test('ports have the names of containers and of those that run beside them; the first of a name counts', () => {
  const containers = [
    { name: 'a', ports: [{ name: 'web', containerPort: 80 }, { containerPort: 81 }] },
    {
      name: 'b',
      ports: [
        { name: 'web', containerPort: 90 },
        { name: 'dns', containerPort: 53, protocol: 'UDP' as const },
      ],
    },
  ];
  const initContainers = [
    { name: 'c', restartPolicy: 'Always', ports: [{ name: 'proxy', containerPort: 15_000 }] },
    { name: 'd', ports: [{ name: 'once', containerPort: 1 }] },
  ];
  expect(reconcilePod(podOf({}, { containers, initContainers }), context)?.ports).toEqual({ web: 80, proxy: 15_000 });
});

const owned = (kind: string, name: string): Partial<ObjectMeta> => ({
  ownerReferences: [{ kind, name, controller: true }],
});

test.each([
  ['nothing', {}, 'a-1'],
  ['a ReplicaSet of a Deployment', { ...owned('ReplicaSet', 'a-5d8f'), labels: { 'pod-template-hash': '5d8f' } }, 'a'],
  ['a ReplicaSet of its own', owned('ReplicaSet', 'a-5d8f'), 'a-5d8f'],
  ['a Job of a CronJob', owned('Job', 'nightly-29301230'), 'nightly'],
  ['a Job of its own', owned('Job', 'import'), 'import'],
  ['a StatefulSet', owned('StatefulSet', 'db'), 'db'],
])('a Pod of %s has the name of its workload', (_, metadata, expected) => {
  expect(reconcilePod(podOf(metadata), context)?.workload).toBe(expected);
});

test.each([
  [{ 'topology.istio.io/locality': 'r.z.s' }, 'r/z/s'],
  [{ 'topology.istio.io/locality': 'r/z.1/s' }, 'r/z.1/s'],
  [{ 'istio-locality': 'r.z' }, 'r/z'],
  [{ 'topology.istio.io/locality': 'a', 'istio-locality': 'b' }, 'a'],
  [{}, ''],
])('labels %j say the locality %j', (labels, expected) => {
  expect(localityOfLabels(labels as Record<string, string>)).toBe(expected);
});

test.each([
  [{ ...topology, 'topology.istio.io/subzone': 's' }, 'r/z/s'],
  [{ 'failure-domain.beta.kubernetes.io/region': 'r', 'failure-domain.beta.kubernetes.io/zone': 'z' }, 'r/z/'],
  [{ 'topology.kubernetes.io/zone': 'z' }, '/z/'],
  [{}, ''],
])('a node with labels %j is at %j', (labels, expected) => {
  expect(localityOfNode(nodeOf(labels as Record<string, string>))).toBe(expected);
});

test('the locality of a label comes before that of the node', () => {
  const pod = podOf({ labels: { 'istio-locality': 'x.y' } });
  expect(reconcilePod(pod, { ...context, node: nodeOf(topology) })?.locality).toBe('x/y');
});

test('labels get the topology, but not what is not known', () => {
  const nothing = { locality: '', network: '', cluster: 'c1', nodeName: '' };
  expect(augmentLabels({ app: 'a' }, nothing)).toEqual({ app: 'a', 'topology.istio.io/cluster': 'c1' });
  const labels = { 'topology.istio.io/network': 'own' };
  expect(augmentLabels(labels, { ...nothing, network: 'other' })['topology.istio.io/network']).toBe('own');
});

function entry(spec: object, metadata: Partial<ObjectMeta> = {}, status?: object) {
  return reconcileWorkloadEntry(
    {
      apiVersion: 'networking.istio.io/v1',
      kind: 'WorkloadEntry',
      metadata: { name: 'vm', namespace: 'shop', ...metadata },
      spec: { address: '10.0.0.9', ...spec },
      ...(status && { status }),
    },
    context,
  );
}

test('a WorkloadEntry is a workload; its own labels come before those of its spec', () => {
  const spec = {
    labels: { app: 'a', version: 'v1' },
    ports: { http: 8080 },
    locality: 'r/z',
    network: 'n1',
    serviceAccount: 'a',
    weight: 3,
  };
  expect(entry(spec, { labels: { version: 'v2' } }).workloads).toEqual([
    {
      kind: 'WorkloadEntry',
      cluster: 'c1',
      namespace: 'shop',
      name: 'vm',
      addresses: ['10.0.0.9'],
      labels: {
        app: 'a',
        version: 'v2',
        ...topology,
        'topology.istio.io/cluster': 'c1',
        'topology.istio.io/network': 'n1',
      },
      identity: 'spiffe://td/ns/shop/sa/a',
      tlsMode: 'istio',
      locality: 'r/z',
      network: 'n1',
      nodeName: '',
      workload: 'vm',
      ports: { http: 8080 },
      weight: 3,
      ready: true,
    },
  ]);
});

test.each([
  ['without an account', {}, 'disabled'],
  ['with an account', { serviceAccount: 'a' }, 'istio'],
  [
    'with an account and a label against it',
    { serviceAccount: 'a', labels: { 'security.istio.io/tlsMode': 'off' } },
    'disabled',
  ],
  ['with a label for it', { labels: { 'security.istio.io/tlsMode': 'istio' } }, 'istio'],
])('a WorkloadEntry %s has mutual TLS %s', (_, spec, tlsMode) => {
  expect(entry(spec).workloads).toMatchObject([{ tlsMode }]);
});

test('one whose health is checked is ready when it is healthy', () => {
  const checked = { annotations: { 'proxy.istio.io/health-checks-enabled': 'true' } };
  const status = (value: string) => ({ conditions: [{ type: 'Healthy', status: value }] });
  const readyWith = (found?: object) => entry({}, checked, found).workloads[0]?.ready;
  expect([readyWith(), readyWith(status('False')), readyWith(status('True'))]).toEqual([false, false, true]);
  expect(entry({}, {}, status('False')).workloads[0]?.ready).toBe(true);
});

test('a WorkloadEntry behind a gateway of another network has no address', () => {
  expect(entry({ address: '', network: 'n2' }).workloads).toMatchObject([{ addresses: [], network: 'n2' }]);
});

test.each([
  ['an address', { address: 'not an address' }, 'spec.address'],
  ['any address', { address: '' }, 'spec.address'],
  ['a port', { ports: { http: 70_000 } }, 'spec.ports["http"]'],
  ['an absolute path', { address: 'unix://relative' }, 'spec.address'],
  ['a path that Linux takes', { address: `unix:///${'x'.repeat(107)}` }, 'spec.address'],
  ['a path without NUL', { address: 'unix:///a\0b' }, 'spec.address'],
])('a WorkloadEntry without %s is none', (_, spec, field) => {
  const { workloads, problems } = entry(spec);
  expect(workloads).toEqual([]);
  expect(problems).toMatchObject([{ field, reason: 'Invalid', object: { kind: 'WorkloadEntry', name: 'vm' } }]);
});
