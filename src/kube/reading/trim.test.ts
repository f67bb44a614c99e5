import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { kinds, type KindName } from '../../api/kinds.ts';
import { Interner } from './interner.ts';
import type { Json } from '../../api/json.ts';
import { shapeOf } from './trim.ts';
import { runs } from '../../testing/runs.ts';

function shape(kind: KindName, interner = new Interner()) {
  return shapeOf(
    kinds.find((k) => k.name === kind)!,
    interner,
  );
}

function check(kind: KindName, raw: Json, expected: Json): void {
  expect(shape(kind).trim(raw)).toEqual(expected);
}

/** What every object has and nobody reads. */
const noise = {
  resourceVersion: '17',
  selfLink: '/x',
  managedFields: [{ manager: 'kubectl', fieldsV1: {} }],
  finalizers: ['x'],
};
const lastApplied = { 'kubectl.kubernetes.io/last-applied-configuration': '{}' };

describe('of each kind is kept what the model reads', () => {
  test('ServiceExport', () => {
    const kept = { name: 'a', namespace: 'shop', uid: 'u', generation: 2, creationTimestamp: '2026-01-01T00:00:00Z' };
    const labels = { 'istio.io/rev': 'blue', app: 'a' };
    const conditions = [{ type: 'Ready', status: 'True' }];
    check(
      'ServiceExport',
      {
        metadata: { ...noise, ...kept, labels, annotations: lastApplied },
        spec: { exportedLabels: {} },
        status: { conditions },
      },
      {
        apiVersion: 'multicluster.x-k8s.io/v1beta1',
        kind: 'ServiceExport',
        metadata: { ...kept, resourceVersion: '17', labels: { 'istio.io/rev': 'blue' } },
        status: { conditions },
      },
    );
  });

  test('ServiceImport, whatever its definition allows', () => {
    const kept = { name: 'a', namespace: 'shop', uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z' };
    const port = { name: 'http', port: 80, protocol: 'TCP' };
    const trimmed = (spec: unknown) =>
      shape('ServiceImport').trim({ metadata: { ...noise, ...kept }, spec, status: {} });
    const expected = (spec: object) => ({
      apiVersion: 'multicluster.x-k8s.io/v1beta1',
      kind: 'ServiceImport',
      metadata: kept,
      spec: { ips: [], ports: [], ...spec },
    });
    const all = { type: 'ClusterSetIP', ips: ['10.0.0.1'], internalTrafficPolicy: 'Local', trafficDistribution: 'x' };
    expect(trimmed({ ...all, ports: [{ ...port, more: 1 }], sessionAffinity: 'None' })).toEqual(
      expected({ ...all, ports: [port] }),
    );
    expect(trimmed({ type: 1, ips: [1, '10.0.0.1'], ports: ['x', { port: 'x' }, { name: {}, port: 80 }] })).toEqual(
      expected({ ips: ['10.0.0.1'], ports: [{ port: 80 }] }),
    );
    expect(trimmed(null)).toEqual(expected({}));
  });

  test('Pod', () => {
    check(
      'Pod',
      {
        metadata: {
          ...noise,
          name: 'reviews-1',
          namespace: 'shop',
          uid: 'u',
          generation: 1,
          creationTimestamp: '2029-01-01T00:00:00Z',
          labels: { app: 'reviews' },
          annotations: { ...lastApplied, 'sidecar.istio.io/inject': 'true', 'example.com/x': 'y' },
          ownerReferences: [
            { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'reviews-7', uid: 'o', controller: true },
          ],
        },
        spec: {
          nodeName: 'n1',
          serviceAccountName: 'reviews',
          volumes: [{ name: 'v' }],
          containers: [
            { name: 'sidecar', image: 'x', env: [{ name: 'A', value: 'B' }] },
            { name: 'app', image: 'y', ports: [{ name: 'http', containerPort: 80, protocol: 'TCP', hostPort: 0 }] },
          ],
          initContainers: [{ name: 'proxy', restartPolicy: 'Always', ports: [{ containerPort: 15090 }] }],
        },
        status: {
          phase: 'Running',
          podIP: '10.0.0.1',
          podIPs: [{ ip: '10.0.0.1' }],
          hostIP: '1.1.1.1',
          conditions: [
            { type: 'Ready', status: 'True', lastTransitionTime: 'x' },
            { type: 'Initialized', status: 'True' },
          ],
          containerStatuses: [{}],
        },
      },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: 'reviews-1',
          namespace: 'shop',
          uid: 'u',
          labels: { app: 'reviews' },
          annotations: { 'sidecar.istio.io/inject': 'true' },
          ownerReferences: [{ kind: 'ReplicaSet', name: 'reviews-7', controller: true }],
        },
        spec: {
          nodeName: 'n1',
          serviceAccountName: 'reviews',
          containers: [{ name: 'app', ports: [{ name: 'http', containerPort: 80, protocol: 'TCP' }] }],
          initContainers: [{ name: 'proxy', restartPolicy: 'Always', ports: [{ containerPort: 15090 }] }],
        },
        status: { phase: 'Running', podIP: '10.0.0.1', conditions: [{ type: 'Ready', status: 'True' }] },
      },
    );
  });

  test('a Pod of two address families has both', () => {
    const podIPs = [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }];
    const raw = { metadata: { name: 'p', namespace: 'n' }, status: { podIP: '10.0.0.1', podIPs } };
    expect(shape('Pod').trim(raw)).toMatchObject({ status: { podIPs } });
  });

  test('Service', () => {
    const spec = {
      type: 'ClusterIP',
      clusterIP: '10.96.0.1',
      clusterIPs: ['10.96.0.1'],
      ports: [{ name: 'http', port: 80, targetPort: 'web', protocol: 'TCP', appProtocol: 'http' }],
      selector: { app: 'reviews' },
      internalTrafficPolicy: 'Local',
      trafficDistribution: 'PreferClose',
      publishNotReadyAddresses: true,
    };
    const annotations = { 'networking.istio.io/exportTo': '.', 'alpha.istio.io/canonical-serviceaccounts': 'a' };
    const own = { name: 's', namespace: 'n', uid: 'u', creationTimestamp: 't', labels: { a: 'b' } };
    const ingress = [{ ip: '1.2.3.4' }];
    check(
      'Service',
      {
        metadata: {
          ...noise,
          ...own,
          annotations: { ...lastApplied, ...annotations, 'meta.helm.sh/release-name': 'x' },
        },
        spec: { ...spec, sessionAffinity: 'None', ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' },
        status: { loadBalancer: { ingress: [{ ip: '1.2.3.4', ipMode: 'VIP' }] } },
      },
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { ...own, annotations },
        spec,
        status: { loadBalancer: { ingress } },
      },
    );
  });

  test('Service without addresses of its own', () => {
    const spec = { clusterIP: 'None', ipFamilies: ['IPv6'] };
    check(
      'Service',
      { metadata: { ...noise, name: 's', namespace: 'n' }, spec: { ...spec, ipFamilyPolicy: 'SingleStack' } },
      { apiVersion: 'v1', kind: 'Service', metadata: { name: 's', namespace: 'n' }, spec },
    );
  });

  test('EndpointSlice', () => {
    const labels = { 'kubernetes.io/service-name': 's' };
    const conditions = { ready: true, serving: true, terminating: false };
    check(
      'EndpointSlice',
      {
        metadata: {
          ...noise,
          name: 's-1',
          namespace: 'n',
          labels,
          annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': 'x' },
        },
        addressType: 'IPv4',
        ports: [{ name: 'http', port: 80, protocol: 'TCP', appProtocol: null }],
        endpoints: [
          {
            addresses: ['10.0.0.1'],
            conditions,
            nodeName: 'n1',
            zone: 'z',
            hints: { forZones: [{ name: 'z' }] },
            deprecatedTopology: { zone: 'z' },
            targetRef: { kind: 'Pod', name: 'p', namespace: 'n', uid: 'u' },
          },
        ],
      },
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 's-1', namespace: 'n', labels },
        addressType: 'IPv4',
        ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
        endpoints: [
          {
            addresses: ['10.0.0.1'],
            conditions,
            nodeName: 'n1',
            zone: 'z',
            hints: { forZones: [{ name: 'z' }] },
            targetRef: { kind: 'Pod', name: 'p', namespace: 'n', uid: 'u' },
          },
        ],
      },
    );
  });

  test('Endpoints', () => {
    const targetRef = { kind: 'Pod', name: 'p', namespace: 'n', uid: 'u' };
    check(
      'Endpoints',
      {
        metadata: {
          ...noise,
          name: 's',
          namespace: 'n',
          annotations: { 'control-plane.alpha.kubernetes.io/leader': 'x' },
        },
        subsets: [
          {
            addresses: [{ ip: '10.0.0.1', nodeName: 'n1', targetRef: { ...targetRef, fieldPath: 'x' } }],
            notReadyAddresses: [{ ip: '10.0.0.2' }],
            ports: [{ name: 'http', port: 80 }],
          },
        ],
      },
      {
        apiVersion: 'v1',
        kind: 'Endpoints',
        metadata: { name: 's', namespace: 'n' },
        subsets: [
          {
            addresses: [{ ip: '10.0.0.1', nodeName: 'n1', targetRef }],
            notReadyAddresses: [{ ip: '10.0.0.2' }],
            ports: [{ name: 'http', port: 80 }],
          },
        ],
      },
    );
  });

  test('Node, Namespace and ConfigMap', () => {
    const labels = { 'topology.kubernetes.io/zone': 'a' };
    check(
      'Node',
      { metadata: { ...noise, name: 'n1', labels, annotations: { x: 'y' } }, status: { images: [], conditions: [] } },
      { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', labels } },
    );
    const annotations = { 'networking.istio.io/traffic-distribution': 'PreferClose' };
    check(
      'Namespace',
      { metadata: { ...noise, name: 'n', labels, annotations: { ...annotations, x: 'y' } }, spec: { finalizers: [] } },
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n', labels, annotations } },
    );
    check(
      'ConfigMap',
      {
        metadata: { ...noise, name: 'istio', namespace: 'istio-system', uid: 'u' },
        data: { mesh: 'a: b', other: 'x' },
      },
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'istio', namespace: 'istio-system', uid: 'u' },
        data: { mesh: 'a: b' },
      },
    );
  });

  test('a kind with a CRD keeps its spec whole, and of its status what others decide', () => {
    const metadata = { name: 'v', namespace: 'n', uid: 'u', generation: 3, creationTimestamp: 't', labels: { a: 'b' } };
    const annotations = { 'networking.istio.io/traffic-distribution': 'PreferClose' };
    const spec = { hosts: ['a'], http: [{ anything: { 'at-all': [null, 1] } }] };
    const conditions = [{ type: 'Other', status: 'True' }];
    check(
      'VirtualService',
      {
        apiVersion: 'networking.istio.io/v1',
        kind: 'VirtualService',
        metadata: { ...noise, ...metadata, annotations: { ...lastApplied, ...annotations, theirs: 'x' } },
        spec,
        status: { conditions, validationMessages: [{}] },
      },
      {
        apiVersion: 'networking.istio.io/v1',
        kind: 'VirtualService',
        metadata: { ...metadata, resourceVersion: '17', annotations },
        spec,
        status: { conditions },
      },
    );
  });
});

describe('what changes nothing for the model', () => {
  const entry = (version: string, status: Json, spec: Json = {}): Json => ({
    metadata: { name: 'w', namespace: 'n', uid: 'u', resourceVersion: version },
    spec,
    status,
  });

  test.each<[string, KindName, Json, Json, boolean]>([
    ['another revision', 'VirtualService', entry('1', {}), entry('2', {}), true],
    ['our conditions', 'VirtualService', entry('1', {}), entry('2', { conditions: [{ type: 'Accepted' }] }), true],
    ['the spec', 'VirtualService', entry('1', {}, { hosts: ['a'] }), entry('2', {}, { hosts: ['b'] }), false],
    [
      'the health of a WorkloadEntry',
      'WorkloadEntry',
      entry('1', { conditions: [{ type: 'Healthy', status: 'True' }] }),
      entry('2', { conditions: [{ type: 'Healthy', status: 'False' }] }),
      false,
    ],
    [
      'allocated addresses of a ServiceEntry',
      'ServiceEntry',
      entry('1', {}),
      entry('2', { addresses: [{ value: '240.0.0.1' }] }),
      false,
    ],
    [
      'the heartbeat of a Node',
      'Node',
      { metadata: { name: 'n', resourceVersion: '1' }, status: { conditions: [{ lastHeartbeatTime: '1' }] } },
      { metadata: { name: 'n', resourceVersion: '2' }, status: { conditions: [{ lastHeartbeatTime: '2' }] } },
      true,
    ],
  ])('%s', (_, kind, a, b, same) => {
    const { trim, same: isSame } = shape(kind);
    expect(isSame(trim(a), trim(b))).toBe(same);
  });
});

test('no object makes a trim throw, and trimming changes nothing that it was given', () => {
  const keys = fc.constantFrom('metadata', 'spec', 'status', 'name', 'labels', 'ports', 'containers', 'endpoints', 'x');
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.constantFrom(null, 1, '', 'text', '\ud800', true),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(keys, tie('tree'), { maxKeys: 5 }),
    ),
  }));
  const metadata = fc.record({ name: fc.string(), labels: tree, annotations: tree, ownerReferences: tree });
  fc.assert(
    fc.property(fc.dictionary(keys, tree), metadata, (rest, meta) => {
      const raw = { ...rest, metadata: meta } as Json;
      const before = JSON.stringify(raw);
      for (const { name: kind } of kinds) {
        const { trim, same } = shape(kind);
        expect(same(trim(raw), trim(structuredClone(raw)))).toBe(true);
      }
      expect(JSON.stringify(raw)).toBe(before);
    }),
    { numRuns: runs(200) },
  );
});

test('replicas share what is equal', () => {
  const interner = new Interner();
  const { trim } = shape('Pod', interner);
  const pod = (name: string): { metadata: Json; spec: Json; status: Json } =>
    trim(
      structuredClone({
        metadata: { name, namespace: 'shop', labels: { app: 'reviews', version: 'v1' } },
        spec: { containers: [{ name: 'app', ports: [{ containerPort: 80 }] }] },
        status: { conditions: [{ type: 'Ready', status: 'True' }] },
      }),
    ) as never;
  const [a, b] = [pod('a'), pod('b')];
  expect(a.metadata['labels']).toBe(b.metadata['labels']);
  expect(a.spec['containers']).toBe(b.spec['containers']);
  expect(a.status['conditions']).toBe(b.status['conditions']);
});

test('however long the values are, the interner keeps no more bytes of them than it may', () => {
  const interner = new Interner(100_000);
  const valueOf = (i: number) => ({ text: `${i}`.padStart(2_000) });
  const [first, last] = [valueOf(0), valueOf(99)];
  expect(interner.value(first)).toBe(first);
  expect(interner.value(valueOf(0))).toBe(first);
  for (let i = 1; i < 99; i++) interner.value(valueOf(i));
  interner.value(last);
  expect(interner.value(valueOf(99))).toBe(last);
  expect(interner.value(valueOf(0))).not.toBe(first);
});

test('the interner forgets when it is full, and is right nevertheless', () => {
  const interner = new Interner(10);
  for (let i = 0; i < 100; i++) expect(interner.value({ i: i % 15 })).toEqual({ i: i % 15 });
});

test('of the status of a kind with conditions is kept what we may write, wherever it stands', () => {
  const lists = {
    conditions: [{}],
    parents: [{ x: 1 }],
    ancestors: [{}],
    listeners: [{ name: 'a' }],
    addresses: ['1'],
  };
  const trimmed = (status: object) =>
    (shape('Gateway').trim({ metadata: { name: 'a' }, status }) as { status?: unknown }).status;
  expect(trimmed({ ...lists, observedGeneration: 2, other: [1] })).toEqual({ ...lists, observedGeneration: 2 });
  expect(trimmed({ parents: 'odd', listeners: {} })).toBeUndefined();
});
