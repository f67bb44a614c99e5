import { expect, test } from 'vitest';
import type { Namespace, Service, ServiceSpec } from '../../api/core.ts';
import type { ObjectMeta } from '../../api/object.ts';
import { reconcileService, trafficDistribution } from './service.ts';

const context = { source: 'c1', domainSuffix: 'cluster.local', trustDomain: 'td', defaultExportTo: ['*'] };

function reconcile(spec: ServiceSpec, metadata: Partial<ObjectMeta> = {}, namespace?: Namespace) {
  const object: Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'a', namespace: 'shop', ...metadata },
    spec: { clusterIP: '10.0.0.1', ...spec },
  };
  return reconcileService(object, { ...context, namespace });
}

test('a Service claims its host', () => {
  const metadata = { creationTimestamp: '2026-01-01T00:00:00Z', uid: 'u' };
  const ports = [{ name: 'http', port: 80, targetPort: 'web' }];
  expect(reconcile({ ports, selector: { app: 'a' } }, metadata)).toEqual({
    host: 'a.shop.svc.cluster.local',
    namespace: 'shop',
    name: 'a',
    createdAt: '2026-01-01T00:00:00Z',
    registry: 'Kubernetes',
    resolution: 'ClientSideLB',
    ports: [{ name: 'http', number: 80, protocol: 'HTTP', targetPort: 'web' }],
    addresses: ['10.0.0.1'],
    autoAddresses: [],
    exportTo: ['*'],
    meshExternal: false,
    persistentSession: false,
    translatesPorts: true,
    selector: { app: 'a' },
    endpoints: [],
    subjectAltNames: [],
    nodeLocal: false,
    aliases: [],
    raceConnect: false,
    origins: [expect.objectContaining({ source: 'c1', kind: 'Service', namespace: 'shop', name: 'a', uid: 'u' })],
  });
});

test.each([
  ['an address', { clusterIP: '10.0.0.1' }, 'ClientSideLB', ['10.0.0.1']],
  [
    'addresses of two families',
    { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', 'fd00::1'] },
    'ClientSideLB',
    ['10.0.0.1', 'fd00::1'],
  ],
  ['none yet', { clusterIP: '' }, 'ClientSideLB', ['0.0.0.0']],
  ['none, being headless', { clusterIP: 'None', clusterIPs: ['None'] }, 'Passthrough', ['0.0.0.0']],
  [
    'none, being headless before all',
    { clusterIP: 'None', type: 'ExternalName', externalName: 'b.com' },
    'Passthrough',
    ['0.0.0.0'],
  ],
  ['none, being another name', { clusterIP: '', type: 'ExternalName', externalName: 'b.com' }, 'Alias', ['0.0.0.0']],
  ['none, being another name that is missing', { clusterIP: '', type: 'ExternalName' }, 'ClientSideLB', ['0.0.0.0']],
] as const)('a Service has %s', (_, spec, resolution, addresses) => {
  expect(reconcile(spec)).toMatchObject({ resolution, addresses });
});

test('an ExternalName is outside of the mesh', () => {
  expect(reconcile({ type: 'ExternalName', externalName: 'b.com' })).toMatchObject({
    externalName: 'b.com',
    meshExternal: true,
  });
});

test('a number serves two transports at once; of two ports of one transport it is the first', () => {
  const ports = [
    { name: 'http', port: 80 },
    { name: 'quic', port: 80, protocol: 'UDP' as const },
    { name: 'tcp', port: 80 },
  ];
  expect(reconcile({ ports }).ports.map(({ name, protocol }) => [name, protocol])).toEqual([
    ['http', 'HTTP'],
    ['quic', 'UDP'],
  ]);
});

test('of the names in an annotation, the first thousand count', () => {
  const many = Array.from({ length: 2_000 }, (_, i) => `n${i}`).join(', ');
  const annotations = {
    'networking.istio.io/exportTo': many,
    'alpha.istio.io/canonical-serviceaccounts': many,
  };
  const { exportTo, subjectAltNames } = reconcile({}, { annotations });
  expect([exportTo.length, exportTo.includes('n1000'), subjectAltNames.length]).toEqual([1_000, false, 1_000]);
});

test('an empty selector selects nothing', () => {
  expect(reconcile({ selector: {} })).not.toHaveProperty('selector');
});

test('annotations say to whom it is exported', () => {
  const exportTo = (value: string) =>
    reconcile({}, { annotations: { 'networking.istio.io/exportTo': value } }).exportTo;
  expect(exportTo(' ., other ,')).toEqual(['other', 'shop']);
  expect(exportTo('')).toEqual(['*']);
});

test('annotations name the identities behind it', () => {
  const annotations = {
    'alpha.istio.io/canonical-serviceaccounts': 'spiffe://other/x, y',
    'alpha.istio.io/kubernetes-serviceaccounts': 'a,b',
  };
  expect(reconcile({}, { annotations }).subjectAltNames).toEqual([
    'spiffe://other/x',
    'y',
    'spiffe://td/ns/shop/sa/a',
    'spiffe://td/ns/shop/sa/b',
  ]);
});

test.each([
  [{ 'istio.io/persistent-session': 'cookie' }, true, true],
  [{ 'istio.io/persistent-session-header': 'x' }, true, true],
  [{ 'istio.io/persistent-session': '' }, false, true],
  [{ 'experimental.istio.io/disable-gateway-port-translation': '' }, false, false],
  [{ anything: 'else' }, false, true],
])('labels %j mean what they mean, and are not kept', (labels, persistentSession, translatesPorts) => {
  const service = reconcile({}, { labels });
  expect(service).toMatchObject({ persistentSession, translatesPorts });
  expect(service).toEqual({ ...reconcile({}), persistentSession, translatesPorts });
});

test('near endpoints are preferred by the spec, else by the annotation, else by that of the namespace', () => {
  const annotated = (value: string) => ({ annotations: { 'networking.istio.io/traffic-distribution': value } });
  const namespace: Namespace = {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'shop', ...annotated('PreferClose') },
  };
  const near = (spec: ServiceSpec, own: Partial<ObjectMeta>) => reconcile(spec, own, namespace).trafficDistribution;
  expect(near({ trafficDistribution: 'PreferSameNode' }, annotated('PreferClose'))).toBe('same-node');
  expect(near({}, annotated('PreferSameNode'))).toBe('same-node');
  expect(near({}, {})).toBe('same-zone');
  expect(near({}, annotated('Any'))).toBeUndefined();
});

test.each([
  ['PreferClose', 'same-zone'],
  ['prefersamezone', 'same-zone'],
  ['PREFERSAMENODE', 'same-node'],
  ['Nearest', undefined],
  [undefined, undefined],
])('trafficDistribution %s is %s', (text, expected) => {
  expect(trafficDistribution(text)).toBe(expected);
});

test('internalTrafficPolicy Local keeps traffic on the node', () => {
  expect(reconcile({ internalTrafficPolicy: 'Local' }).nodeLocal).toBe(true);
  expect(reconcile({ internalTrafficPolicy: 'Cluster' }).nodeLocal).toBe(false);
});
