import { expect, test } from 'vitest';
import type { ObjectMeta } from '../../api/object.ts';
import { reconcileServiceEntry } from './service-entry.ts';

const http = { name: 'http', number: 80, protocol: 'HTTP' };

function reconcile(spec: object, metadata: Partial<ObjectMeta> = {}, status?: object) {
  return reconcileServiceEntry(
    {
      apiVersion: 'networking.istio.io/v1',
      kind: 'ServiceEntry',
      metadata: { name: 'e', namespace: 'shop', ...metadata },
      spec: { hosts: ['a.example.com'], ports: [http], ...spec },
      ...(status && { status }),
    },
    { source: 's', trustDomain: 'td', defaultExportTo: ['*'], rootNamespace: 'istio-system' },
  );
}

function serviceOf(...args: Parameters<typeof reconcile>) {
  const { services, problems } = reconcile(...args);
  expect(problems).toEqual([]);
  expect(services).toHaveLength(1);
  return services[0]!;
}

test('a ServiceEntry claims its hosts', () => {
  const spec = { hosts: ['a.example.com', 'b.example.com', 'a.example.com'], subjectAltNames: ['x'] };
  const { services, problems } = reconcile(spec, { creationTimestamp: '2026-01-01T00:00:00Z' });
  expect(problems).toEqual([]);
  expect(services.map(({ host }) => host)).toEqual(['a.example.com', 'b.example.com']);
  expect(services[0]).toEqual({
    host: 'a.example.com',
    namespace: 'shop',
    name: 'a.example.com',
    createdAt: '2026-01-01T00:00:00Z',
    registry: 'External',
    resolution: 'Passthrough',
    ports: [{ name: 'http', number: 80, protocol: 'HTTP' }],
    addresses: ['0.0.0.0'],
    autoAddresses: [],
    exportTo: ['*'],
    meshExternal: true,
    persistentSession: false,
    translatesPorts: true,
    endpoints: [],
    subjectAltNames: ['x'],
    nodeLocal: false,
    aliases: [],
    raceConnect: false,
    hostsOfEntry: 2,
    origins: [expect.objectContaining({ source: 's', kind: 'ServiceEntry', name: 'e' })],
  });
});

test.each(['127.0.0.1', '127.9.9.9', '0.0.0.0', '::1', '::', '::ffff:127.0.0.1', 'unix:///var/run/a.sock'])(
  'an endpoint at %s that is the proxy of its client is told to be for clients of its own namespace',
  (address) => {
    const endpoint = { address, ...(!address.startsWith('unix:') && { ports: { http: 15_000 } }) };
    const told = (spec: object, metadata = {}) =>
      reconcile({ resolution: 'STATIC', endpoints: [{ address: '10.0.0.1' }, endpoint], ...spec }, metadata).problems;
    expect(told({})).toMatchObject([{ field: 'spec.endpoints[1].address', reason: 'Ineffective' }]);
    expect(told({ exportTo: ['.'] })).toEqual([]);
    expect(told({}, { namespace: 'istio-system' })).toEqual([]);
  },
);

test.each(['localhost', 'a.localhost', 'LOCALHOST.'])('so is the name %s', (address) => {
  const told = (port: number) =>
    reconcile({ resolution: 'DNS', endpoints: [{ address, ports: { http: port } }] }).problems;
  expect(told(15_099)).toMatchObject([{ field: 'spec.endpoints[0].address', reason: 'Ineffective' }]);
  expect(told(8_080)).toEqual([]);
});

test.each([
  [undefined, 'Passthrough'],
  ['NONE', 'Passthrough'],
  ['STATIC', 'ClientSideLB'],
  ['DNS', 'DNSLB'],
  ['DNS_ROUND_ROBIN', 'DNSRoundRobinLB'],
])('resolution %s', (resolution, expected) => {
  expect(serviceOf({ resolution }).resolution).toBe(expected);
});

test('resolution DYNAMIC_DNS is for wildcards', () => {
  const ports = [{ name: 'tls', number: 443, protocol: 'TLS' }];
  expect(serviceOf({ hosts: ['*.example.com'], ports, resolution: 'DYNAMIC_DNS' }).resolution).toBe('DynamicDNS');
});

test('a CIDR of one address is that address', () => {
  expect(serviceOf({ addresses: ['10.0.0.1/32', '10.1.0.0/16', 'fd00::1/128'] }).addresses).toEqual([
    '10.0.0.1',
    '10.1.0.0/16',
    'fd00::1',
  ]);
});

test('a target port may be told, and is not kept when it is none', () => {
  const ports = [
    { ...http, targetPort: 8080 },
    { name: 'x', number: 81, targetPort: 0 },
  ];
  expect(serviceOf({ ports }).ports).toEqual([
    { name: 'http', number: 80, protocol: 'HTTP', targetPort: 8080 },
    { name: 'x', number: 81, protocol: 'Unsupported' },
  ]);
});

test('endpoints with an account have an identity, and mutual TLS unless labels say otherwise', () => {
  const endpoints = [
    { address: '10.0.0.1', serviceAccount: 'a', ports: { http: 8080 }, weight: 2, locality: 'r/z', network: 'n' },
    { address: '10.0.0.2', serviceAccount: 'a', labels: { 'security.istio.io/tlsMode': 'disabled' } },
    { address: '10.0.0.3', labels: { 'istio-locality': 'r.z' } },
  ];
  const service = serviceOf({ resolution: 'STATIC', location: 'MESH_INTERNAL', endpoints });
  expect(service.meshExternal).toBe(false);
  expect(service.endpoints).toMatchObject([
    { address: '10.0.0.1', identity: 'spiffe://td/ns/shop/sa/a', tlsMode: 'istio', ports: { http: 8080 }, weight: 2 },
    { address: '10.0.0.2', identity: 'spiffe://td/ns/shop/sa/a', tlsMode: 'disabled' },
    { address: '10.0.0.3', identity: '', tlsMode: 'disabled', locality: 'r/z' },
  ]);
});

test('endpoints count once for each address, as in Istio', () => {
  const endpoints = [{ address: '10.0.0.1' }];
  const service = serviceOf({ resolution: 'STATIC', addresses: ['240.0.0.1', '240.0.0.2'], endpoints });
  expect(service.endpoints.map(({ address }) => address)).toEqual(['10.0.0.1', '10.0.0.1']);
});

test('a selector stands for endpoints', () => {
  expect(serviceOf({ resolution: 'STATIC', workloadSelector: { labels: { app: 'a' } } }).selector).toEqual({
    app: 'a',
  });
  expect(serviceOf({})).not.toHaveProperty('selector');
});

test('allocated addresses are those of the host, where it has none of its own', () => {
  const status = {
    addresses: [
      { value: '240.240.0.1', host: 'a.example.com' },
      { value: '240.240.0.2', host: 'b.example.com' },
      { value: 'nonsense', host: 'a.example.com' },
    ],
  };
  const allocated = (spec: object, labels: Record<string, string> = {}) =>
    serviceOf(spec, { labels }, status).autoAddresses;
  expect(allocated({ resolution: 'DNS' })).toEqual(['240.240.0.1']);
  expect(allocated({ resolution: 'DNS', addresses: ['10.0.0.1'] })).toEqual([]);
  expect(allocated({ resolution: 'NONE' })).toEqual([]);
  expect(allocated({ resolution: 'DNS' }, { 'networking.istio.io/enable-autoallocate-ip': 'false' })).toEqual([]);
});

test('annotations and labels', () => {
  const metadata = {
    labels: { 'istio.io/persistent-session': 'cookie' },
    annotations: {
      'istio.io/connect-strategy': 'RACE_FIRST_TCP_CONNECT',
      'networking.istio.io/traffic-distribution': 'PreferClose',
    },
  };
  expect(serviceOf({ exportTo: ['.', 'other'] }, metadata)).toMatchObject({
    exportTo: ['other', 'shop'],
    persistentSession: true,
    raceConnect: true,
    trafficDistribution: 'same-zone',
  });
});

const tcp = { name: 'tcp', number: 9000, protocol: 'TCP' };
const endpoint = (more: object) => ({ resolution: 'STATIC', endpoints: [{ address: '10.0.0.1', ...more }] });

test.each([
  ['no host', { hosts: [] }, 'spec.hosts'],
  ['a host that is none', { hosts: ['a b'] }, 'spec.hosts[0]'],
  ['every host', { hosts: ['*'] }, 'spec.hosts[0]'],
  ['a wildcard that DNS cannot look up', { hosts: ['*.example.com'], resolution: 'DNS' }, 'spec.hosts[0]'],
  [
    'hosts that its protocol cannot tell apart',
    { hosts: ['a.com', 'b.com'], ports: [http, tcp], resolution: 'DNS' },
    'spec.ports[1]',
  ],
  ['an address that is none', { addresses: ['10.0.0.256'] }, 'spec.addresses[0]'],
  ['a prefix that is none', { addresses: ['10.0.0.0/33'] }, 'spec.addresses[0]'],
  ['a CIDR to be looked up', { addresses: ['10.0.0.0/8'], resolution: 'DNS' }, 'spec.addresses[0]'],
  ['a port without a number', { ports: [{ name: 'http' }] }, 'spec.ports[0].number'],
  ['a port that is none', { ports: [{ ...http, number: 70_000 }] }, 'spec.ports[0].number'],
  ['two ports of one number', { ports: [http, { ...tcp, number: 80 }] }, 'spec.ports[1].number'],
  ['two ports of one name', { ports: [http, { ...tcp, name: 'http' }] }, 'spec.ports[1].name'],
  ['an unknown protocol', { ports: [{ ...http, protocol: 'SMTP' }] }, 'spec.ports[0].protocol'],
  ['endpoints that are not resolved', { ...endpoint({}), resolution: 'NONE' }, 'spec.endpoints'],
  ['a name as a static endpoint', endpoint({ address: 'b.com' }), 'spec.endpoints[0].address'],
  ['an endpoint without an address', endpoint({ address: '' }), 'spec.endpoints[0].address'],
  [
    'a port of an endpoint that it does not have',
    endpoint({ ports: { other: 1 } }),
    'spec.endpoints[0].ports["other"]',
  ],
  [
    'endpoints and a selector',
    { ...endpoint({}), workloadSelector: { labels: { app: 'a' } } },
    'spec.workloadSelector',
  ],
  [
    'a selector with a wildcard',
    { resolution: 'STATIC', workloadSelector: { labels: { app: '*' } } },
    'spec.workloadSelector.labels["app"]',
  ],
])('a ServiceEntry with %s is not served', (_, spec, field) => {
  const { services, problems } = reconcile(spec);
  expect(services).toEqual([]);
  expect(problems.map((problem) => problem.field)).toEqual([field]);
  expect(problems[0]).toMatchObject({ reason: 'Invalid', object: { kind: 'ServiceEntry', name: 'e' } });
});

test('more clusters and endpoints than memory holds are refused before they are made', () => {
  const many = (count: number, suffix: string) =>
    Array.from({ length: count }, (_, i) => `10.${i >> 8}.${i & 255}${suffix}`);
  const spec = {
    hosts: ['a.example.com'],
    resolution: 'STATIC',
    addresses: many(5_000, '.1'),
    endpoints: many(5_000, '.2').map((address) => ({ address })),
  };
  const { services, problems } = reconcile(spec);
  expect(services).toEqual([]);
  expect(problems).toMatchObject([
    { field: 'spec.endpoints', reason: 'Invalid', message: expect.stringContaining('25000000') },
  ]);
  expect(reconcile({ ...spec, addresses: [] }).services).toHaveLength(1);
});

test.each([
  ['TCP', {}, undefined, 1],
  ['MONGO', {}, undefined, 1],
  ['TCP', { addresses: ['10.0.0.1'] }, undefined, 0],
  ['TCP', { addresses: ['0.0.0.0'] }, undefined, 1],
  ['TCP', { resolution: 'NONE', addresses: ['0.0.0.0/1', '::/0'] }, undefined, 1],
  ['TCP', { resolution: 'NONE', addresses: ['::/64'] }, undefined, 0],
  ['TCP', {}, { addresses: [{ host: 'a.example.com', value: '240.240.0.1' }] }, 0],
  ['TLS', {}, undefined, 0],
  ['HTTP', {}, undefined, 0],
])(
  'a port of %s with %j and the status %j: remarks that it takes the connections of all addresses: %i',
  (protocol, spec, status, count) => {
    const ports = [{ name: 'db', number: 5432, protocol }];
    const { services, problems } = reconcile({ resolution: 'DNS', ports, ...spec }, {}, status);
    expect(services).toHaveLength(1);
    expect(problems.map(({ field, reason }) => `${reason} ${field}`)).toEqual(
      Array<string>(count).fill('TooBroad spec.addresses'),
    );
  },
);

test.each([
  ['DNS', {}, ['a.example.com']],
  ['DNS_ROUND_ROBIN', {}, ['a.example.com']],
  ['DNS', { endpoints: [{ address: 'b.example.com' }] }, ['b.example.com']],
  ['DNS', { workloadSelector: { labels: { app: 'a' } } }, []],
  ['STATIC', {}, []],
  ['NONE', {}, []],
])('with resolution %s and %j its endpoints are %j', (resolution, more, expected) => {
  expect(serviceOf({ resolution, ...more }).endpoints.map(({ address }) => address)).toEqual(expected);
});
