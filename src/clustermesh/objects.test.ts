import { describe, expect, test } from 'vitest';
import type { EndpointSlice } from '../api/core.ts';
import type { GlobalBackend, NamedPort } from '../model/global-service.ts';
import { changesBetween, serviceOf, sliceOf, slicesOfService } from './objects.ts';
import type { RemoteService } from './service-value.ts';
import type { RemoteSlice } from './slice-value.ts';

const port = (name: string, number: number): NamedPort => ({ name, port: number, protocol: 'TCP' });
const http = [port('http', 8080)];
const old = [port('http', 80)];

const service = (change: Partial<RemoteService>): RemoteService => ({
  namespace: 'shop',
  name: 'cart',
  labels: {},
  shared: true,
  frontends: [],
  backends: [],
  ...change,
});

const backends = (count: number, ports: readonly NamedPort[] = http): readonly GlobalBackend[] =>
  Array.from({ length: count }, (_, i) => ({ address: `10.9.${i >> 8}.${i & 255}`, ports }));

/** Addresses and ports of each slice. */
function shown(slices: readonly EndpointSlice[]): string[] {
  return slices.map(({ addressType, endpoints, ports }) => {
    const numbers = (ports ?? []).map(({ name, port: number }) => `${name}:${number}`);
    return `${addressType} ${(endpoints ?? []).flatMap(({ addresses }) => addresses).join()} ${numbers.join()}`;
  });
}

const names = (slices: readonly EndpointSlice[]): string[] => slices.map(({ metadata: { name } }) => name).sort();

describe('the back ends of a service', () => {
  test('are ready endpoints in a slice of the Service of its name', () => {
    const [slice, ...others] = slicesOfService(
      service({
        backends: [
          { address: '10.9.0.1', ports: http, hostname: 'cart-0', zone: 'a1' },
          { address: '10.9.0.2', ports: http },
        ],
      }),
    );
    expect(others).toEqual([]);
    expect(slice).toMatchObject({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { namespace: 'shop', labels: { 'kubernetes.io/service-name': 'cart' } },
      addressType: 'IPv4',
    });
    expect(slice?.endpoints).toEqual([
      { addresses: ['10.9.0.1'], conditions: { ready: true }, hostname: 'cart-0', zone: 'a1' },
      { addresses: ['10.9.0.2'], conditions: { ready: true } },
    ]);
    expect(slice?.ports).toEqual(http);
  });

  test('are apart by family and by ports', () => {
    const slices = slicesOfService(
      service({
        backends: [
          { address: '10.9.0.1', ports: http },
          { address: '10.9.0.2', ports: old },
          { address: '10.9.0.3', ports: [...http] },
          { address: 'fd00::1', ports: http },
        ],
      }),
    );
    expect(shown(slices)).toEqual([
      'IPv4 10.9.0.1,10.9.0.3 http:8080',
      'IPv4 10.9.0.2 http:80',
      'IPv6 fd00::1 http:8080',
    ]);
    expect(new Set(names(slices)).size).toBe(3);
  });

  test('may have one port under several names, each for the port of the Service of that name', () => {
    const ports = [port('admin', 8080), port('http', 8080)];
    expect(shown(slicesOfService(service({ backends: [{ address: '10.9.0.1', ports }] })))).toEqual([
      'IPv4 10.9.0.1 admin:8080,http:8080',
    ]);
  });

  test('are in no slice if the service is not shared', () => {
    expect(slicesOfService(service({ shared: false, backends: backends(3) }))).toEqual([]);
  });

  test('keep the names of their slices while their number is of one size', () => {
    const [few, fewer] = [
      slicesOfService(service({ backends: backends(100) })),
      slicesOfService(service({ backends: backends(1) })),
    ];
    expect(names(few)).toEqual(names(fewer));
    const [many, more] = [
      slicesOfService(service({ backends: backends(1_500) })),
      slicesOfService(service({ backends: backends(1_501) })),
    ];
    expect(many).toHaveLength(16);
    expect(names(many)).toEqual(names(more));
    expect(changesBetween(many, more)).toMatchObject({ changed: [{}], gone: [] });
    expect(many.flatMap(({ endpoints }) => endpoints ?? [])).toHaveLength(1_500);
    for (const { endpoints = [] } of many) expect(endpoints?.length).toBeLessThan(200);
  });

  test('of services with similar names are in different slices', () => {
    const [slice] = slicesOfService(service({ backends: backends(1) }));
    const name = slice!.metadata.name;
    expect(names(slicesOfService(service({ name, backends: backends(1) })))).not.toContain(name);
  });
});

describe('a slice', () => {
  const slice: RemoteSlice = {
    namespace: 'shop',
    name: 'cart-x7',
    labels: { 'kubernetes.io/service-name': 'cart', other: 'x' },
    addressType: 'IPv4',
    endpoints: [
      { addresses: ['10.9.0.1'], conditions: { ready: true, serving: true, terminating: false } },
      { addresses: ['10.9.0.2'], conditions: { ready: false, serving: false, terminating: false } },
    ],
    ports: http,
  };

  test('is taken as it is, with endpoints that are not ready', () => {
    expect(sliceOf(slice, 'east')).toEqual({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { namespace: 'shop', name: 'cart-x7', labels: { 'kubernetes.io/service-name': 'cart' } },
      addressType: 'IPv4',
      endpoints: slice.endpoints,
      ports: http,
    });
  });

  test.each([
    ['without a Service', {}],
    ['of a ServiceImport', { 'kubernetes.io/service-name': 'cart', 'multicluster.kubernetes.io/service-name': 'cart' }],
    [
      'of a third cluster',
      { 'kubernetes.io/service-name': 'cart', 'multicluster.kubernetes.io/source-cluster': 'west' },
    ],
  ])('%s is left out', (_, labels) => {
    expect(sliceOf({ ...slice, labels }, 'east')).toBeUndefined();
  });

  test('that says that it is of its own cluster is taken', () => {
    const labels = { 'kubernetes.io/service-name': 'cart', 'multicluster.kubernetes.io/source-cluster': 'east' };
    expect(sliceOf({ ...slice, labels }, 'east')).toBeDefined();
  });
});

describe('an imported Service', () => {
  test('has the addresses and ports of the frontends', () => {
    const frontends = [
      { address: '10.1.0.9', ports: [port('http', 80)] },
      { address: 'fd00:1::9', ports: [port('http', 80), port('dns', 53)] },
    ];
    expect(serviceOf(service({ labels: { app: 'cart' }, frontends, backends: backends(1) }))).toEqual({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'shop', name: 'cart', labels: { app: 'cart' }, creationTimestamp: '9999-12-31T23:59:59Z' },
      spec: {
        clusterIP: '10.1.0.9',
        clusterIPs: ['10.1.0.9', 'fd00:1::9'],
        ports: [port('http', 80), port('dns', 53)],
      },
    });
  });

  test('is headless without frontends, and has the ports of the back ends', () => {
    const found = serviceOf(service({ backends: [...backends(2), { address: 'fd00::1', ports: old }] }));
    expect(found?.spec).toEqual({ clusterIP: 'None', ports: http });
  });

  test('is none if the service is not shared', () => {
    expect(serviceOf(service({ shared: false }))).toBeUndefined();
  });
});

test('a sink is told what has changed, and what is gone', () => {
  const before = slicesOfService(service({ backends: [...backends(2), { address: 'fd00::1', ports: http }] }));
  const after = slicesOfService(service({ backends: [...backends(3), { address: '10.8.0.1', ports: old }] }));
  const { changed, gone } = changesBetween(before, after);
  expect(shown(changed)).toEqual(['IPv4 10.9.0.0,10.9.0.1,10.9.0.2 http:8080', 'IPv4 10.8.0.1 http:80']);
  expect(gone).toEqual([before[1]?.metadata.name]);
  expect(changesBetween(before, [...before])).toEqual({ changed: [], gone: [] });
});
