import { expect, test } from 'vitest';
import type { Json } from '../../api/json.ts';
import { type KindName, kinds } from '../../api/kinds.ts';
import { checked } from './checked.ts';
import { Interner } from './interner.ts';
import { shapeOf } from './trim.ts';

function trim(name: KindName, raw: Json): unknown {
  const kind = kinds.find((each) => each.name === name)!;
  return checked(kind, shapeOf(kind, new Interner())).trim(raw);
}

const service = (metadata: Json, spec: Json = {}): Json => ({ metadata: { namespace: 'shop', ...metadata }, spec });

const slice = (address: string, addressType = 'IPv4'): Json => ({
  metadata: { name: 'a', namespace: 'shop' },
  addressType,
  endpoints: [{ addresses: ['10.0.0.1', '2001:db8::1', address] }],
});

test('any text is the endpoint of a slice that is not read', () => {
  expect(trim('EndpointSlice', slice('a.example.com', 'FQDN'))).toMatchObject({ addressType: 'FQDN' });
  expect(trim('EndpointSlice', slice('10.0.0.2'))).toMatchObject({ addressType: 'IPv4' });
});

test('what an API server stores is taken, without nulls', () => {
  expect(trim('Service', service({ name: 'a', labels: null }, { ports: [{ name: null, port: 80 }] }))).toEqual({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'a', namespace: 'shop' },
    spec: { ports: [{ port: 80 }] },
  });
});

test.each<[string, KindName, Json]>([
  ['a name with a slash', 'Service', service({ name: 'a/b' })],
  ['a wildcard', 'Service', service({ name: '*' })],
  ['dots', 'Service', service({ name: 'a.other.svc' })],
  ['an empty name', 'Service', service({ name: '' })],
  ['no namespace', 'Service', service({ name: 'a', namespace: '' })],
  ['a namespace with a slash', 'Pod', { metadata: { name: 'a', namespace: 'a/b' } }],
  ['a namespace where there is none', 'Node', { metadata: { name: 'a', namespace: 'shop' } }],
  ['a label that is too long', 'Service', service({ name: 'a', labels: { x: 'y'.repeat(64) } })],
  ['a uid that is a number', 'Service', service({ name: 'a', uid: 7 })],
  ['a port that is a string', 'Service', service({ name: 'a' }, { ports: [{ port: '80' }] })],
  ['a selector that is a list', 'Service', service({ name: 'a' }, { selector: ['a'] })],
  [
    'an owner without a name',
    'Pod',
    { metadata: { name: 'a', namespace: 'shop', ownerReferences: [{ kind: 'ReplicaSet', controller: true }] } },
  ],
  [
    'a mesh config that takes long to read',
    'ConfigMap',
    { metadata: { name: 'istio', namespace: 'shop' }, data: { mesh: 'x'.repeat(70_000) } },
  ],
  [
    'more than etcd takes',
    'ConfigMap',
    { metadata: { name: 'istio', namespace: 'shop' }, data: { mesh: 'x'.repeat(1_600_000) } },
  ],
  ...[
    '127.0.0.1',
    '0.0.0.0',
    '169.254.169.254',
    '224.0.0.1',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    'fe80::1',
    'localhost',
    '',
  ].map((address): [string, KindName, Json] => [
    `the endpoint ${JSON.stringify(address)}`,
    'EndpointSlice',
    slice(address),
  ]),
  [
    'something nested without end',
    'WorkloadEntry',
    {
      metadata: { name: 'a', namespace: 'shop' },
      spec: JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`) as Json,
    },
  ],
])('%s is refused', (_, kind, raw) => {
  expect(() => trim(kind, raw)).toThrow();
});

test('what becomes much counts for much', () => {
  const sizeOf = (name: KindName, raw: Json): number => {
    const kind = kinds.find((each) => each.name === name)!;
    const shape = checked(kind, shapeOf(kind, new Interner()));
    return shape.size!(shape.trim(raw));
  };
  const ports = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `p${i}`, port: i + 1 }));
  const addresses = ['10.0.0.1', '10.0.0.2'];
  const withPorts = (count: number): Json => ({
    metadata: { name: 'a', namespace: 'shop' },
    addressType: 'IPv4',
    ports: ports(count),
    endpoints: [{ addresses }, { addresses }],
  });
  expect(sizeOf('EndpointSlice', withPorts(0))).toBeLessThan(1_000);
  expect(sizeOf('EndpointSlice', withPorts(10))).toBeGreaterThan(40 * 1_024);
  expect(sizeOf('Service', service({ name: 'a' }, { ports: ports(10) }))).toBeGreaterThan(80 * 1_024);
  expect(sizeOf('Pod', { metadata: { name: 'a', namespace: 'shop' } })).toBeLessThan(1_000);
});
