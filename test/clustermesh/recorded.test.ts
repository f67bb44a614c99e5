import { zstdDecompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { EndpointSlice, Service, SliceEndpoint } from '../../src/api/core.ts';
import { encodeSlice } from '../../src/clustermesh/slice-encoding.ts';
import { encodeService } from '../../src/clustermesh/service-value.ts';
import { reconcileGlobalService } from '../../src/reconcilers/core/global-service.ts';
import { recordedKeys } from './recorded.ts';

const east = { name: 'east', id: 2, limit: 255 } as const;
const recorded = new Map(recordedKeys('1.20.2').map(({ key, value }) => [key, value]));

const ready = { ready: true, serving: true, terminating: false };
const tcp = 'TCP' as const;

function slice(
  name: string,
  service: string,
  more: Pick<EndpointSlice, 'addressType' | 'ports'> & { readonly endpoints: readonly SliceEndpoint[] },
  labels: Readonly<Record<string, string>> = {},
): EndpointSlice {
  return {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', ...more },
    metadata: { namespace: 'shop', name, labels: { 'kubernetes.io/service-name': service, ...labels } },
  };
}

/** What the recording's cluster had. */
const web = [
  slice(
    'web-4',
    'web',
    {
      addressType: 'IPv4',
      endpoints: [
        {
          ...{ addresses: ['10.2.1.1'], conditions: ready, nodeName: 'n1', zone: 'z1' },
          hints: { forZones: [{ name: 'z1' }] },
        },
        { addresses: ['10.2.1.2'], conditions: { ready: false, serving: false, terminating: false }, nodeName: 'n1' },
        {
          ...{ addresses: ['10.2.1.3'], nodeName: 'n1', zone: 'z1' },
          conditions: { ready: false, serving: true, terminating: true },
        },
        { addresses: ['10.2.2.1'], conditions: {}, nodeName: 'n2', zone: 'z2' },
      ],
      ports: [
        { name: 'http', protocol: tcp, port: 8080 },
        { name: 'grpc', protocol: tcp, port: 9090, appProtocol: 'kubernetes.io/h2c' },
        { name: 'metrics', protocol: tcp, port: 9100 },
      ],
    },
    { 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' },
  ),
  slice('web-6', 'web', {
    addressType: 'IPv6',
    endpoints: [{ addresses: ['fd00:10:2:1::1'], conditions: ready, nodeName: 'n1', zone: 'z1' }],
    ports: [
      { name: 'http', protocol: tcp, port: 8080 },
      { name: 'grpc', protocol: tcp, port: 9090 },
      { name: 'metrics', protocol: tcp, port: 9100 },
    ],
  }),
];
const db = [
  slice(
    'db-4',
    'db',
    {
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.2.1.50'], conditions: ready, hostname: 'db-0', nodeName: 'n1', zone: 'z1' }],
      ports: [{ name: '', protocol: tcp, port: 5432 }],
    },
    { 'service.kubernetes.io/headless': '' },
  ),
];

test.each([...web, ...db])('the slice $metadata.name is written as Cilium writes it', (slice) => {
  const { metadata, addressType, endpoints, ports } = slice;
  const { name, labels = {} } = metadata;
  const written = encodeSlice(
    { namespace: 'shop', name, labels, addressType, endpoints: endpoints ?? [], ports: ports ?? [] },
    east,
  );
  const theirs = recorded.get(`cilium/state/endpointslices/v1/east/shop/${name}`);
  // The same bytes can be compressed in several ways.
  expect(zstdDecompressSync(written).toString('latin1')).toBe(zstdDecompressSync(theirs!).toString('latin1'));
});

test.each<[string, Partial<Service>, readonly EndpointSlice[]]>([
  [
    'web',
    {
      metadata: { name: 'web', labels: { app: 'web', team: 'a' } },
      spec: {
        ...{ clusterIP: '10.96.1.1', clusterIPs: ['10.96.1.1', 'fd00:96::101'], selector: { app: 'web' } },
        ports: [
          { name: 'http', port: 80 },
          { name: 'grpc', port: 90 },
          { name: 'metrics', port: 9100 },
        ],
      },
    },
    web,
  ],
  [
    'db',
    {
      metadata: { name: 'db', labels: { app: 'db' } },
      spec: { clusterIP: 'None', selector: { app: 'db' }, ports: [{ port: 5432 }] },
    },
    db,
  ],
])('the service %s is written as Cilium writes it', (name, { metadata, spec }, slices) => {
  const service = reconcileGlobalService(
    {
      ...{ apiVersion: 'v1', kind: 'Service', spec: spec! },
      metadata: { ...metadata!, namespace: 'shop', annotations: { 'service.cilium.io/global': 'true' } },
    },
    slices,
    undefined,
  );
  expect(encodeService(service!, east)).toBe(recorded.get(`cilium/state/services/v1/east/shop/${name}`)?.toString());
});
