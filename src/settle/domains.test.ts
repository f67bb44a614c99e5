import { expect, test } from 'vitest';
import type { MeshService } from '../model/service.ts';
import { type Traits, anyTraits } from '../model/traits.ts';
import { domainsOf, stemOf } from './domains.ts';

const service = (settings: Partial<MeshService> = {}): MeshService =>
  ({
    host: 'a.shop.svc.cluster.local',
    registry: 'Kubernetes',
    resolution: 'ClientSideLB',
    addresses: ['10.96.1.1'],
    autoAddresses: [],
    aliases: [],
    ...settings,
  }) as unknown as MeshService;

function domains(
  of: MeshService | string,
  {
    namespace = 'shop',
    port = 80,
    listenerPort,
    ...traits
  }: Partial<Traits> & { namespace?: string; port?: number; listenerPort?: number } = {},
) {
  const client = { namespace, domainSuffix: 'cluster.local', traits: { ...anyTraits, ...traits } };
  const listener = listenerPort === undefined ? {} : { listenerPort };
  return typeof of === 'string'
    ? domainsOf({ client, host: of, port, ...listener })
    : domainsOf({ client, host: of.host, service: of, port, ...listener });
}

const external = (settings: Partial<MeshService> = {}) =>
  service({ host: 'x.example.com', registry: 'External', addresses: ['0.0.0.0'], ...settings });

test('a Kubernetes Service has its short forms, the bare name only in its own namespace', () => {
  expect(domains(service())).toEqual([
    'a.shop.svc.cluster.local',
    'a.shop.svc.cluster.local.',
    'a',
    'a.shop.svc',
    'a.shop',
    '10.96.1.1',
  ]);
  expect(domains(service(), { namespace: 'other' })).toEqual([
    'a.shop.svc.cluster.local',
    'a.shop.svc.cluster.local.',
    'a.shop',
    'a.shop.svc',
    '10.96.1.1',
  ]);
});

test('no short form is for proxies in another domain', () => {
  expect(domains(service(), { shortNames: false })).toEqual([
    'a.shop.svc.cluster.local',
    'a.shop.svc.cluster.local.',
    '10.96.1.1',
  ]);
});

test('the short form of a wildcard is not every host', () => {
  expect(domains(external({ host: '*.shop.svc.cluster.local' }))).toEqual([
    '*.shop.svc.cluster.local',
    '*.shop.svc.cluster.local.',
    '*.shop',
    '*.shop.svc',
  ]);
});

test('other hosts have no short forms', () => {
  expect(domains(external())).toEqual(['x.example.com', 'x.example.com.']);
  expect(domains(external({ host: '*.example.com' }))).toEqual(['*.example.com', '*.example.com.']);
  expect(domains(service({ host: 'svc.cluster.local' }))).toEqual([
    'svc.cluster.local',
    'svc.cluster.local.',
    '10.96.1.1',
  ]);
});

test('a host of a VirtualService alone is served as written', () => {
  expect(domains('outside.example.com')).toEqual(['outside.example.com']);
  expect(domains('2001:db8::1')).toEqual(['[2001:db8::1]']);
});

test('aliases are served with all their forms', () => {
  expect(
    domains(
      external({ aliases: [{ host: 'b.shop.svc.cluster.local', exportTo: ['*'], namespace: 'shop', origins: [] }] }),
    ),
  ).toEqual([
    'x.example.com',
    'x.example.com.',
    'b.shop.svc.cluster.local',
    'b.shop.svc.cluster.local.',
    'b',
    'b.shop.svc',
    'b.shop',
  ]);
});

test('the pods of a headless Service are served too', () => {
  expect(domains(service({ resolution: 'Passthrough', addresses: ['0.0.0.0'] }), { namespace: 'other' })).toEqual([
    'a.shop.svc.cluster.local',
    'a.shop.svc.cluster.local.',
    'a.shop',
    'a.shop.svc',
    '*.a.shop.svc.cluster.local',
    '*.a.shop.svc.cluster.local.',
    '*.a.shop',
    '*.a.shop.svc',
  ]);
  expect(domains(external({ resolution: 'Passthrough' }))).toEqual(['x.example.com', 'x.example.com.']);
});

test.each([
  ['v4', '10.96.1.1'],
  ['dual', '10.96.1.1'],
  ['v6', '[fd00::1]'],
] as const)('of a Service with two addresses a %s proxy takes one', (ipFamily, address) => {
  expect(domains(service({ addresses: ['10.96.1.1', 'fd00::1'] }), { ipFamily }).slice(5)).toEqual([address]);
});

test('a ServiceEntry has all its addresses', () => {
  expect(domains(external({ addresses: ['192.0.2.1', '192.0.2.0/24', '2001:db8::1'] })).slice(2)).toEqual([
    '192.0.2.1',
    '192.0.2.0/24',
    '[2001:db8::1]',
  ]);
});

test('automatic addresses are for proxies that capture DNS', () => {
  const entry = external({ autoAddresses: ['240.240.7.7', '2001:2::707'] });
  expect(domains(entry).slice(2)).toEqual([]);
  expect(domains(entry, { dnsCapture: true }).slice(2)).toEqual(['240.240.7.7']);
  expect(domains(entry, { dnsCapture: true, ipFamily: 'v6' }).slice(2)).toEqual(['[2001:2::707]']);
});

test('a listener for all ports tells ports apart, and no port is port 80', () => {
  const entry = external({ addresses: ['192.0.2.1'] });
  expect(domains(entry, { listenerPort: 0 })).toEqual([
    'x.example.com',
    'x.example.com:80',
    'x.example.com.',
    'x.example.com.:80',
    '192.0.2.1',
    '192.0.2.1:80',
  ]);
  expect(domains(entry, { listenerPort: 0, port: 8000 })).toEqual([
    'x.example.com:8000',
    'x.example.com.:8000',
    '192.0.2.1:8000',
  ]);
  expect(domains('y.example.com', { listenerPort: 0 })).toEqual(['y.example.com', 'y.example.com:80']);
  expect(domains('y.example.com', { listenerPort: 0, port: 8000 })).toEqual([]);
});

test('no domain stands there twice, whatever its case', () => {
  const aliases = ['A.shop.svc.cluster.local', 'a.shop.svc.cluster.local'].map((host) => ({
    host,
    exportTo: ['*'],
    namespace: 'shop',
    origins: [],
  }));
  expect(domains(service({ aliases }))).toEqual(domains(service()));
});

test('all forms of a host have one stem, with and without port', () => {
  const headless = service({ resolution: 'Passthrough', addresses: ['0.0.0.0'] });
  const stems = (of: MeshService, listenerPort?: number) =>
    new Set(domains(of, { namespace: 'other', ...(listenerPort === undefined ? {} : { listenerPort }) }).map(stemOf));
  expect(stems(headless)).toEqual(new Set(['a.shop']));
  expect(stems(headless, 0)).toEqual(new Set(['a.shop']));
  expect(stems(external({ addresses: ['192.0.2.1', '2001:db8::1'] }), 0)).toEqual(
    new Set(['x.example.com', '192.0.2.1', '[2001:db8::1]']),
  );
  expect(['a.svcs.b', 'svc.a', 'a.svc.b.svc', '*-a.b'].map(stemOf)).toEqual(['a.svcs.b', 'svc.a', 'a', '*-a.b']);
});

test('no two hosts have a short form in common', () => {
  for (const host of ['a.shop.svc.svc.cluster.local', 'a.shop.svc.c.svc.cluster.local'])
    expect(domains(external({ host }))).toEqual([host, `${host}.`]);
});
