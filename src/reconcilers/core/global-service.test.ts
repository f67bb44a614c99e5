import { describe, expect, test } from 'vitest';
import type { EndpointSlice, Namespace, Service, ServiceSpec, SliceEndpoint, SlicePort } from '../../api/core.ts';
import type { ObjectMeta } from '../../api/object.ts';
import type { GlobalService } from '../../model/global-service.ts';
import { reconcileGlobalService } from './global-service.ts';

const GLOBAL = { 'service.cilium.io/global': 'true' };

interface Input {
  readonly metadata?: Partial<ObjectMeta>;
  readonly spec?: ServiceSpec;
  readonly slices?: readonly EndpointSlice[];
  readonly namespace?: Readonly<Record<string, string>>;
}

function reconcile({ metadata, spec, slices = [], namespace }: Input): GlobalService | undefined {
  const service: Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'shop', name: 'cart', annotations: GLOBAL, ...metadata },
    spec: { clusterIP: '10.1.0.9', ports: [{ name: 'http', port: 80 }], ...spec },
  };
  const object: Namespace | undefined = namespace && {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'shop', annotations: namespace },
  };
  return reconcileGlobalService(service, slices, object);
}

const slice = (
  endpoints: readonly SliceEndpoint[],
  ports: readonly SlicePort[] = [{ name: 'http', port: 8080, protocol: 'TCP' }],
  labels: Readonly<Record<string, string>> = {},
): EndpointSlice => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { namespace: 'shop', name: 'cart-1', labels },
  addressType: 'IPv4',
  endpoints,
  ports,
});

const http = [{ name: 'http', port: 8080, protocol: 'TCP' }];

test('a global Service is told with its addresses, endpoints and labels', () => {
  expect(
    reconcile({
      metadata: { labels: { tier: 'back' } },
      spec: {
        clusterIPs: ['10.1.0.9', 'FD00:0::9'],
        ports: [
          { name: 'http', port: 80, targetPort: 8080 },
          { name: 'dns', port: 53, protocol: 'UDP' },
        ],
        selector: { app: 'cart' },
      },
      slices: [
        slice([
          { addresses: ['10.9.0.2'], conditions: { ready: true }, zone: 'a1', nodeName: 'n1' },
          { addresses: ['10.9.0.1'], hostname: 'cart-0' },
        ]),
      ],
    }),
  ).toEqual({
    namespace: 'shop',
    name: 'cart',
    labels: { tier: 'back' },
    selector: { app: 'cart' },
    frontends: ['10.1.0.9', 'fd00::9'].map((address) => ({
      address,
      ports: [
        { name: 'dns', port: 53, protocol: 'UDP' },
        { name: 'http', port: 80, protocol: 'TCP' },
      ],
    })),
    backends: [
      { address: '10.9.0.1', ports: http, hostname: 'cart-0' },
      { address: '10.9.0.2', ports: http, zone: 'a1' },
    ],
  });
});

describe('who is told', () => {
  const annotated = (annotations: Readonly<Record<string, string>>): Input => ({ metadata: { annotations } });
  test.each<[boolean, Input]>([
    [false, annotated({})],
    [false, annotated({ 'service.cilium.io/shared': 'true' })],
    [false, annotated({ 'service.cilium.io/global': 'false' })],
    [true, annotated({ 'service.cilium.io/global': 'True' })],
    [true, annotated({ 'io.cilium/global-service': 'true' })],
    [false, annotated({ 'service.cilium.io/global': 'false', 'io.cilium/global-service': 'true' })],
    [true, annotated({ ...GLOBAL, 'service.cilium.io/shared': 'true' })],
    [false, annotated({ ...GLOBAL, 'service.cilium.io/shared': 'false' })],
    [false, annotated({ ...GLOBAL, 'io.cilium/shared-service': 'false' })],
    [true, { namespace: {} }],
    [true, { namespace: { 'clustermesh.cilium.io/global': 'true' } }],
    [false, { namespace: { 'clustermesh.cilium.io/global': 'false' } }],
    [false, { spec: { type: 'ExternalName', externalName: 'example.com' } }],
  ])('%s with %j', (isTold, input) => {
    expect(reconcile(input) !== undefined).toBe(isTold);
  });
});

test.each<[string, Input]>([
  ['clusterIP None', { spec: { clusterIP: 'None' } }],
  ['the label of headless Services', { metadata: { labels: { 'service.kubernetes.io/headless': '' } } }],
  ['an address that is not one', { spec: { clusterIP: '' } }],
])('there are no frontends with %s', (_, input) => {
  expect(reconcile(input)?.frontends).toEqual([]);
});

describe('back ends', () => {
  const addresses = (...slices: readonly EndpointSlice[]): string[] =>
    (reconcile({ slices })?.backends ?? []).map(({ address, ports }) =>
      `${address} ${ports.map(({ name, port }) => `${name}:${port}`).join()}`.trim(),
    );

  test.each<[SliceEndpoint['conditions'], boolean]>([
    [{}, true],
    [{ ready: null }, true],
    [{ ready: false }, false],
    [{ ready: false, serving: false, terminating: true }, false],
    [{ ready: false, serving: true, terminating: true }, true],
  ])('with conditions %j: %s', (conditions, isTold) => {
    expect(addresses(slice([{ addresses: ['10.9.0.1'], ...(conditions && { conditions }) }])).length > 0).toBe(isTold);
  });

  test('of several slices come together, with the ports of all of them', () => {
    const both = [{ addresses: ['10.9.0.1'] }, { addresses: ['10.9.0.2'] }];
    expect(
      addresses(
        slice(both),
        slice(both.slice(1), [
          { name: 'admin', port: 9000 },
          { name: 'http', port: 9999 },
        ]),
      ),
    ).toEqual(['10.9.0.1 http:8080', '10.9.0.2 admin:9000,http:8080']);
  });

  test('may have a port without a name, and none at all', () => {
    expect(addresses(slice([{ addresses: ['10.9.0.1'] }], [{ port: 80 }]))).toEqual(['10.9.0.1 :80']);
    expect(addresses(slice([{ addresses: ['10.9.0.1'] }], []))).toEqual(['10.9.0.1']);
  });

  test('of other clusters are not told: they say it themselves', () => {
    const labels = {
      'endpointslice.kubernetes.io/managed-by': 'endpointslice-mesh-controller.cilium.io',
      'multicluster.kubernetes.io/source-cluster': 'east',
    };
    expect(addresses(slice([{ addresses: ['10.9.0.1'] }], undefined, labels))).toEqual([]);
  });

  test('are addresses', () => {
    expect(addresses(slice([{ addresses: ['cart.example.com', '10.9.0.1'] }]))).toEqual(['10.9.0.1 http:8080']);
  });
});
