import { describe, expect, test } from 'vitest';
import { LONGEST_JSON } from './member.ts';
import { decodeService, encodeService, type RemoteService } from './service-value.ts';

const east = { name: 'east', id: 3, limit: 255 } as const;
const SUFFIX = 'shop/cart';

const minimal = { cluster: 'east', clusterID: 3, namespace: 'shop', name: 'cart' };

function decode(value: unknown, suffix = SUFFIX): ReturnType<typeof decodeService> {
  return decodeService(suffix, Buffer.from(JSON.stringify(value)), east);
}

const taken = (value: unknown): RemoteService => {
  const found = decode(value);
  if ('wrong' in found) throw new Error(found.wrong);
  return found.value;
};

describe('a service', () => {
  test('is read as Cilium writes it', () => {
    const written = {
      ...minimal,
      frontends: { '10.1.0.9': { http: { Protocol: 'TCP', Port: 80 } } },
      backends: {
        '10.9.0.2': { http: { Protocol: 'TCP', Port: 8080 }, dns: { Protocol: 'UDP', Port: 53 } },
        '10.9.0.1': { dns: { Protocol: 'UDP', Port: 53 }, http: { Protocol: 'TCP', Port: 8080 } },
        'fd00::1': { http: { Protocol: 'TCP', Port: 8080 } },
      },
      hostnames: { '10.9.0.1': 'cart-0' },
      zones: { '10.9.0.2': { zone: 'a1', forZones: [{ name: 'a1' }] }, 'fd00::1': null },
      labels: { app: 'cart' },
      selector: { app: 'cart' },
      includeExternal: true,
      shared: true,
    };
    const http = { name: 'http', port: 8080, protocol: 'TCP' };
    const dns = { name: 'dns', port: 53, protocol: 'UDP' };
    const service = taken(written);
    expect(service).toEqual({
      namespace: 'shop',
      name: 'cart',
      labels: { app: 'cart' },
      shared: true,
      frontends: [{ address: '10.1.0.9', ports: [{ name: 'http', port: 80, protocol: 'TCP' }] }],
      backends: [
        { address: '10.9.0.1', ports: [dns, http], hostname: 'cart-0' },
        { address: '10.9.0.2', ports: [dns, http], zone: 'a1' },
        { address: 'fd00::1', ports: [http] },
      ],
    });
    expect(service.backends[0]?.ports).toBe(service.backends[1]?.ports);
  });

  test('needs little', () => {
    expect(taken({ ...minimal, frontends: null })).toEqual({
      ...{ namespace: 'shop', name: 'cart', labels: {}, shared: false, frontends: [], backends: [] },
    });
  });

  test('may have one port without a name', () => {
    const service = taken({ ...minimal, backends: { '10.9.0.1': { '': { Protocol: 'TCP', Port: 80 } } } });
    expect(service.backends[0]?.ports).toEqual([{ name: '', port: 80, protocol: 'TCP' }]);
  });

  test('has an address once, however it is written', () => {
    const ports = { http: { Protocol: 'TCP', Port: 80 } };
    const service = taken({ ...minimal, backends: { 'fd00:0::1': ports, 'FD00::1': {}, 'fd00::0:1': {} } });
    expect(service.backends).toEqual([{ address: 'fd00::1', ports: [{ name: 'http', port: 80, protocol: 'TCP' }] }]);
  });

  test('cannot reach what objects inherit', () => {
    const text = JSON.stringify({ ...minimal, labels: { x: '1' } }).replace('"x"', '"__proto__"');
    const found = decodeService(SUFFIX, Buffer.from(text), east);
    expect('value' in found && Object.keys(found.value.labels)).toEqual(['__proto__']);
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
  });
});

const backends = (address: string, ports: unknown = {}): object => ({ ...minimal, backends: { [address]: ports } });
const many = (count: number, of: (i: number) => readonly [string, unknown]): object =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => of(i)));
const address = (i: number): string => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`;

test.each<[string, unknown, string]>([
  ['a list', [], 'is not an object'],
  ['a number', 3, 'is not an object'],
  ['nothing', {}, 'namespace "" is not a namespace'],
  ['a namespace with a slash', { ...minimal, namespace: 'sh/op' }, 'namespace "sh/op" is not a namespace'],
  ['a name that is a number', { ...minimal, name: 7 }, 'name must be a string'],
  [
    'another name than its key',
    { ...minimal, name: 'card' },
    'says that it is "shop/card", but its key ends with "shop/cart"',
  ],
  ['another cluster', { ...minimal, cluster: 'west' }, 'names cluster "west", but belongs to east'],
  ['another id', { ...minimal, clusterID: 4 }, 'clusterID is not 3, the id of cluster east'],
  ['an id as text', { ...minimal, clusterID: '3' }, 'clusterID is not a whole number from 0 to 4294967295'],
  ['shared as text', { ...minimal, shared: 'true' }, 'shared must be true or false'],
  ['a label that is a number', { ...minimal, labels: { app: 1 } }, 'labels["app"] must be a string'],
  ['half of a character', { ...minimal, labels: { app: '\ud800' } }, 'labels["app"] is not valid Unicode'],
  ['backends in a list', { ...minimal, backends: ['10.9.0.1'] }, 'backends is not an object'],
  ['a name as address', backends('cart.shop'), 'backends "cart.shop" is not an IP address'],
  ['an address with a zone', backends('fe80::1%eth0'), 'backends "fe80::1%eth0" is not an IP address'],
  ['a range', backends('10.0.0.0/8'), 'backends "10.0.0.0/8" is not an IP address'],
  [
    'loopback',
    backends('127.0.0.2'),
    'backends "127.0.0.2" is a loopback, link-local, multicast, unspecified or IPv4-mapped address, which other clusters cannot reach',
  ],
  [
    'loopback in IPv6',
    backends('::1'),
    'backends "::1" is a loopback, link-local, multicast, unspecified or IPv4-mapped address, which other clusters cannot reach',
  ],
  [
    'loopback in both',
    backends('::ffff:127.0.0.1'),
    'backends "::ffff:127.0.0.1" is a loopback, link-local, multicast, unspecified or IPv4-mapped address, which other clusters cannot reach',
  ],
  [
    'any address',
    backends('0.0.0.0'),
    'backends "0.0.0.0" is a loopback, link-local, multicast, unspecified or IPv4-mapped address, which other clusters cannot reach',
  ],
  [
    'a link’s address',
    backends('169.254.169.254'),
    'backends "169.254.169.254" is a loopback, link-local, multicast, unspecified or IPv4-mapped address, which other clusters cannot reach',
  ],
  [
    'multicast',
    backends('FF02::1'),
    'backends "FF02::1" is a loopback, link-local, multicast, unspecified or IPv4-mapped address, which other clusters cannot reach',
  ],
  [
    'a frontend without a valid address',
    { ...minimal, frontends: { None: {} } },
    'frontends "None" is not an IP address',
  ],
  [
    'port 0',
    backends('10.9.0.1', { http: { Protocol: 'TCP', Port: 0 } }),
    'backends["10.9.0.1"]["http"].Port is not a whole number from 1 to 65535',
  ],
  [
    'a port as text',
    backends('10.9.0.1', { http: { Protocol: 'TCP', Port: '80' } }),
    'backends["10.9.0.1"]["http"].Port is not a whole number from 1 to 65535',
  ],
  [
    'a protocol of its own',
    backends('10.9.0.1', { http: { Protocol: 'ICMP', Port: 80 } }),
    'backends["10.9.0.1"]["http"] has protocol "ICMP", which a Service cannot have',
  ],
  [
    'a port with a bad name',
    backends('10.9.0.1', { 'a b': { Protocol: 'TCP', Port: 80 } }),
    'backends["10.9.0.1"]["a b"] has a name that a port cannot have',
  ],
  [
    'a host name with a dot',
    { ...backends('10.9.0.1'), hostnames: { '10.9.0.1': 'cart.0' } },
    'hostnames["10.9.0.1"] "cart.0" is not a host name',
  ],
  [
    'a zone with a slash',
    { ...backends('10.9.0.1'), zones: { '10.9.0.1': { zone: 'a/b' } } },
    'zones["10.9.0.1"].zone "a/b" is not a zone',
  ],
  [
    'very many backends',
    { ...minimal, backends: many(10_001, (i) => [address(i), {}]) },
    'backends has 10001 entries; at most 10000 are read',
  ],
  [
    'very many ports',
    backends(
      '10.9.0.1',
      many(1_001, (i) => [`p${i}`, { Port: 80 }]),
    ),
    'backends["10.9.0.1"] has 1001 entries; at most 1000 are read',
  ],
  [
    'many backends with many ports',
    { ...minimal, backends: many(401, (i) => [address(i), many(100, (j) => [`p${j}`, { Port: 1 }])]) },
    'backends has more than 40000 pairs of address and port',
  ],
  ['very much', { ...minimal, labels: { a: 'a'.repeat(LONGEST_JSON) } }, `has more than ${LONGEST_JSON} bytes`],
])('%s is refused', (_, value, wrong) => {
  expect(decode(value)).toEqual({ wrong });
});

test('deep nesting is read like anything else that is wrong', () => {
  const text = `{"cluster":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
  expect(decodeService(SUFFIX, Buffer.from(text), east)).toEqual({ wrong: 'namespace "" is not a namespace' });
});

describe('what this cluster exports', () => {
  const http = { name: 'http', port: 8080, protocol: 'TCP' } as const;
  const written = encodeService(
    {
      namespace: 'shop',
      name: 'cart',
      labels: { tier: 'back', app: 'cart' },
      selector: { app: 'cart' },
      frontends: [{ address: '10.1.0.9', ports: [{ ...http, port: 80 }] }],
      backends: [
        { address: '10.9.0.2', ports: [http], zone: 'a1' },
        { address: '10.9.0.1', ports: [http], hostname: 'cart-0' },
      ],
    },
    east,
  );

  test('has the structure that Cilium documents', () => {
    expect(JSON.parse(written)).toEqual({
      cluster: 'east',
      namespace: 'shop',
      name: 'cart',
      frontends: { '10.1.0.9': { http: { Protocol: 'TCP', Port: 80 } } },
      backends: {
        '10.9.0.1': { http: { Protocol: 'TCP', Port: 8080 } },
        '10.9.0.2': { http: { Protocol: 'TCP', Port: 8080 } },
      },
      hostnames: { '10.9.0.1': 'cart-0' },
      zones: { '10.9.0.2': { zone: 'a1', forZones: [] } },
      labels: { app: 'cart', tier: 'back' },
      selector: { app: 'cart' },
      includeExternal: true,
      shared: true,
      clusterID: 3,
    });
    expect(written).toMatch(/^\{"cluster":"east","namespace":"shop","name":"cart","frontends":.*"clusterID":3\}$/);
    expect(written.indexOf('10.9.0.1')).toBeLessThan(written.indexOf('10.9.0.2'));
    expect(written.indexOf('"app"')).toBeLessThan(written.indexOf('"tier"'));
  });

  test('leaves out what there is none of, but not the maps that are always there', () => {
    const service = { namespace: 'shop', name: 'cart', labels: {}, selector: {}, frontends: [], backends: [] };
    expect(encodeService(service, east)).toBe(
      '{"cluster":"east","namespace":"shop","name":"cart","frontends":{},"backends":{},' +
        '"labels":{},"selector":{},"includeExternal":true,"shared":true,"clusterID":3}',
    );
  });

  test('is read back', () => {
    expect(decodeService(SUFFIX, Buffer.from(written), east)).toEqual({
      value: {
        namespace: 'shop',
        name: 'cart',
        labels: { tier: 'back', app: 'cart' },
        shared: true,
        frontends: [{ address: '10.1.0.9', ports: [{ ...http, port: 80 }] }],
        backends: [
          { address: '10.9.0.1', ports: [http], hostname: 'cart-0' },
          { address: '10.9.0.2', ports: [http], zone: 'a1' },
        ],
      },
    });
  });
});
