import { expect, test } from 'vitest';
import type { EndpointSlice, Endpoints, SliceEndpoint } from '../../api/core.ts';
import type { Workload } from '../../model/endpoint.ts';
import { type EndpointContext, reconcileEndpoints, reconcileEndpointSlice, serviceOfSlice } from './endpoint-slice.ts';

const nobody: EndpointContext = {
  cluster: 'c1',
  persistentSession: false,
  pod: () => undefined,
  podAt: () => undefined,
};

const workload: Workload = {
  kind: 'Pod',
  cluster: 'c1',
  namespace: 'shop',
  name: 'a-1',
  addresses: ['10.0.0.1'],
  labels: { app: 'a' },
  identity: 'spiffe://cluster.local/ns/shop/sa/a',
  tlsMode: 'istio',
  locality: 'r/z/',
  network: 'n1',
  nodeName: 'node-1',
  workload: 'a',
  ports: {},
  ready: true,
};

function sliceOf(endpoints: readonly SliceEndpoint[], more: Partial<EndpointSlice> = {}): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 's', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'a' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints,
    ...more,
  };
}

test('a slice is of the Service that its label names', () => {
  expect(serviceOfSlice(sliceOf([]))).toBe('a');
});

test.each([
  ['of names', { addressType: 'FQDN' as const }],
  ['of no Service', { metadata: { name: 's', namespace: 'shop' } }],
  [
    'of a Service of several clusters',
    {
      metadata: {
        name: 's',
        namespace: 'shop',
        labels: { 'kubernetes.io/service-name': 'a', 'multicluster.kubernetes.io/service-name': 'a' },
      },
    },
  ],
])('a slice %s is not for the mesh', (_, more) => {
  expect(serviceOfSlice(sliceOf([], more))).toBeUndefined();
});

test('every address serves every port, by the name of the port', () => {
  const slice = sliceOf([{ addresses: ['10.0.0.1', '10.0.0.2'] }], { ports: [{ name: 'http', port: 8080 }, {}] });
  expect(
    reconcileEndpointSlice(slice, nobody).map(({ addresses, port, portName }) => [...addresses, port, portName]),
  ).toEqual([
    ['10.0.0.1', 8080, 'http'],
    ['10.0.0.1', 0, ''],
    ['10.0.0.2', 8080, 'http'],
    ['10.0.0.2', 0, ''],
  ]);
});

test('lists may be null', () => {
  expect(reconcileEndpointSlice(sliceOf([], { endpoints: null, ports: null }), nobody)).toEqual([]);
});

test.each([
  [{}, 'Healthy', 'Healthy'],
  [{ ready: null }, 'Healthy', 'Healthy'],
  [{ ready: true, terminating: true }, 'Healthy', 'Healthy'],
  [{ ready: false, terminating: false }, 'UnHealthy', 'UnHealthy'],
  [{ ready: false, terminating: true }, 'Terminating', 'Draining'],
  [{ ready: false }, 'Terminating', 'Draining'],
  [{ ready: false, serving: false, terminating: true }, 'Terminating', 'Terminating'],
])('conditions %j mean %s, and %s where sessions persist', (conditions, usual, persistent) => {
  const healthOf = (persistentSession: boolean) =>
    reconcileEndpointSlice(sliceOf([{ addresses: ['10.0.0.1'], conditions }]), { ...nobody, persistentSession })[0]!
      .health;
  expect([healthOf(false), healthOf(true)]).toEqual([usual, persistent]);
});

test('an endpoint has what its Pod has', () => {
  const slice = sliceOf([{ addresses: ['10.0.0.1'], targetRef: { kind: 'Pod', name: 'a-1' } }]);
  const pod = (namespace: string, name: string) => (`${namespace}/${name}` === 'shop/a-1' ? workload : undefined);
  expect(reconcileEndpointSlice(slice, { ...nobody, pod })).toEqual([
    {
      addresses: ['10.0.0.1'],
      port: 8080,
      portName: 'http',
      health: 'Healthy',
      labels: { app: 'a' },
      locality: 'r/z/',
      network: 'n1',
      cluster: 'c1',
      identity: 'spiffe://cluster.local/ns/shop/sa/a',
      tlsMode: 'istio',
      workload: 'a',
      namespace: 'shop',
      nodeName: 'node-1',
    },
  ]);
});

test('an address waits for its Pod', () => {
  const slice = sliceOf([
    { addresses: ['10.0.0.1'], targetRef: { kind: 'Pod', name: 'a-1', namespace: 'other' } },
    { addresses: ['10.0.0.2'], targetRef: { kind: 'VirtualMachine', name: 'v' } },
  ]);
  expect(reconcileEndpointSlice(slice, nobody).map(({ addresses }) => addresses[0])).toEqual(['10.0.0.2']);
});

test('without a targetRef it is whatever has the address in that namespace', () => {
  const podAt = (namespace: string, address: string) =>
    `${namespace}/${address}` === 'shop/10.0.0.1' ? workload : undefined;
  const [known, unknown] = reconcileEndpointSlice(sliceOf([{ addresses: ['10.0.0.1'] }, { addresses: ['10.0.0.2'] }]), {
    ...nobody,
    podAt,
  });
  expect(known).toMatchObject({ identity: workload.identity, tlsMode: 'istio' });
  expect(unknown).toMatchObject({ identity: '', tlsMode: 'disabled', labels: {} });
});

test('legacy Endpoints are ready or not, and never terminating', () => {
  const object: Endpoints = {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'a', namespace: 'shop' },
    subsets: [
      {
        addresses: [{ ip: '10.0.0.1' }],
        notReadyAddresses: [{ ip: '10.0.0.2' }, { ip: '10.0.0.3', targetRef: { kind: 'Pod', name: 'unknown' } }],
        ports: [{ name: 'http', port: 8080 }],
      },
      { addresses: [{ ip: '10.0.0.4' }], ports: [{ port: 9090 }] },
      {},
    ],
  };
  expect(
    reconcileEndpoints(object, nobody).map(({ addresses, port, portName, health }) => [
      addresses[0],
      port,
      portName,
      health,
    ]),
  ).toEqual([
    ['10.0.0.1', 8080, 'http', 'Healthy'],
    ['10.0.0.2', 8080, 'http', 'UnHealthy'],
    ['10.0.0.4', 9090, '', 'Healthy'],
  ]);
});
