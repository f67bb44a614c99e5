import { expect, test } from 'vitest';
import { port, serviceOf } from '../../envoy/testing/listeners.ts';
import type { Endpoint, Workload } from '../../model/endpoint.ts';
import type { MeshService, InlineEndpoint } from '../../model/service.ts';
import { entryEndpoints, selectedEntries } from './endpoints.ts';

const http = { ...port(80, 'HTTP', 'http'), targetPort: 8080 };

function entryOf(service: Partial<MeshService>): MeshService {
  return serviceOf('a', [http], { registry: 'External', host: 'a.example.com', addresses: ['0.0.0.0'], ...service });
}

function inlineOf(address: string, endpoint: Partial<InlineEndpoint> = {}): InlineEndpoint {
  return {
    address,
    servicePorts: [http],
    ports: {},
    labels: {},
    locality: '',
    network: '',
    identity: '',
    tlsMode: 'disabled',
    ...endpoint,
  };
}

function workloadOf(kind: Workload['kind'], address: string, workload: Partial<Workload> = {}): Workload {
  return {
    kind,
    cluster: 'c1',
    namespace: 'shop',
    name: address,
    addresses: [address],
    labels: { app: 'a' },
    identity: '',
    tlsMode: 'disabled',
    locality: '',
    network: '',
    nodeName: '',
    workload: 'a',
    ports: {},
    ready: true,
    ...workload,
  };
}

const brief = (endpoints: readonly Endpoint[]): string[] =>
  endpoints.map(({ addresses, port: number, portName }) => `${portName} ${addresses.join(' ')} ${number}`);

test('endpoints that are written into it serve every port', () => {
  const tls = port(443, 'TLS', 'tls');
  const endpoints = [
    inlineOf('10.0.0.1', {
      servicePorts: [http, tls],
      labels: { v: '1' },
      locality: 'r/z',
      network: 'n',
      weight: 3,
      identity: 'i',
      tlsMode: 'istio',
    }),
    inlineOf('10.0.0.2', { servicePorts: [http, tls], ports: { http: 9090 } }),
  ];
  const found = entryEndpoints(entryOf({ ports: [http, tls], endpoints }), 'c1', []);
  expect(brief(found)).toEqual(['http 10.0.0.1 8080', 'tls 10.0.0.1 443', 'http 10.0.0.2 9090', 'tls 10.0.0.2 443']);
  expect(found[0]).toEqual({
    addresses: ['10.0.0.1'],
    port: 8080,
    portName: 'http',
    servicePort: 80,
    labels: {
      v: '1',
      'topology.kubernetes.io/region': 'r',
      'topology.kubernetes.io/zone': 'z',
      'topology.istio.io/cluster': 'c1',
      'topology.istio.io/network': 'n',
    },
    locality: 'r/z',
    network: 'n',
    cluster: 'c1',
    identity: 'i',
    tlsMode: 'istio',
    weight: 3,
    workload: '',
    namespace: 'shop',
    nodeName: '',
  });
});

test('they serve the ports of their own ServiceEntry, where several claim the host', () => {
  const endpoints = [inlineOf('10.0.0.1'), inlineOf('10.0.0.2', { servicePorts: [port(81, 'HTTP', 'other')] })];
  const found = entryEndpoints(entryOf({ ports: [http, port(81, 'HTTP', 'other')], endpoints }), 'c1', []);
  expect(brief(found)).toEqual(['http 10.0.0.1 8080', 'other 10.0.0.2 81']);
});

test('a unix socket has a path and no port', () => {
  const entry = entryOf({ endpoints: [inlineOf('unix:///run/a.sock')] });
  expect(brief(entryEndpoints(entry, 'c1', []))).toEqual(['http /run/a.sock 0']);
});

test('round robin over one name takes the first endpoint of each port', () => {
  const endpoints = [
    inlineOf('a.com'),
    inlineOf('b.com'),
    inlineOf('c.com', { servicePorts: [port(443, 'HTTP', 'http')] }),
  ];
  expect(brief(entryEndpoints(entryOf({ resolution: 'DNSRoundRobinLB', endpoints }), 'c1', []))).toEqual([
    'http a.com 8080',
    'http c.com 443',
  ]);
});

const workloads = [
  workloadOf('Pod', '10.0.0.1', { addresses: ['10.0.0.1', 'fd00::1'], ports: { http: 1 } }),
  workloadOf('Pod', '10.0.0.2', { ready: false }),
  workloadOf('Pod', '10.0.0.3', { labels: { app: 'b' } }),
  workloadOf('WorkloadEntry', '10.0.0.4', { ports: { http: 9090 }, weight: 2 }),
  workloadOf('WorkloadEntry', 'vm.example.com'),
  workloadOf('WorkloadEntry', 'unix:///run/vm.sock'),
];

test('a selector picks ready Pods and WorkloadEntries; only these have ports of their own', () => {
  const found = entryEndpoints(entryOf({ selector: { app: 'a' } }), 'c1', workloads);
  expect(brief(found)).toEqual(['http 10.0.0.1 8080', 'http 10.0.0.4 9090']);
  expect(found.map(({ health, weight }) => [health, weight])).toEqual([
    ['Healthy', undefined],
    [undefined, 2],
  ]);
});

test('where names are resolved, it picks those with names too', () => {
  const found = entryEndpoints(entryOf({ selector: { app: 'a' }, resolution: 'DNSLB' }), 'c1', workloads);
  expect(brief(found)).toContain('http vm.example.com 8080');
});

test('a selector that picks nothing gives nothing', () => {
  expect(entryEndpoints(entryOf({ selector: { app: 'x' }, resolution: 'DNSLB' }), 'c1', workloads)).toEqual([]);
});

test('a Service picks WorkloadEntries beside its slices', () => {
  const select = (targetPort: number | string | undefined, service: Partial<MeshService> = {}) => {
    const { targetPort: _, ...plain } = http;
    const ports = [targetPort === undefined ? plain : { ...plain, targetPort }];
    return brief(selectedEntries(serviceOf('a', ports, { selector: { app: 'a' }, ...service }), workloads));
  };
  expect(select(8080)).toEqual(['http 10.0.0.4 9090']);
  expect(select('http')).toEqual(['http 10.0.0.4 9090']);
  expect(select('web')).toEqual(['http 10.0.0.4 80']);
  expect(select(undefined)).toEqual(['http 10.0.0.4 9090']);
  expect(select(8080, { registry: 'External' })).toEqual([]);
});

test('a Service without a selector picks nothing', () => {
  expect(selectedEntries(serviceOf('a', [http]), workloads)).toEqual([]);
});
