import { zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { encodeSlice } from './slice-encoding.ts';
import { decodeSlice, type RemoteSlice } from './slice-value.ts';

const east = { name: 'east', id: 3, limit: 255 } as const;
const SUFFIX = 'shop/cart-x7';

const slice: RemoteSlice = {
  namespace: 'shop',
  name: 'cart-x7',
  labels: { 'kubernetes.io/service-name': 'cart' },
  addressType: 'IPv4',
  endpoints: [
    {
      addresses: ['10.9.0.1'],
      conditions: { ready: true, serving: true, terminating: false },
      hostname: 'cart-0',
      nodeName: 'n1',
      zone: 'a1',
    },
    { addresses: ['10.9.0.2'], conditions: { ready: false, serving: false, terminating: false } },
    { addresses: ['10.9.0.3'] },
  ],
  ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
};

const decode = (
  change: Partial<RemoteSlice>,
  of: { name: string; id: number } = east,
): ReturnType<typeof decodeSlice> => decodeSlice(SUFFIX, encodeSlice({ ...slice, ...change }, of), east);

describe('a slice', () => {
  test('is read as it was written, with endpoints that are not ready', () => {
    expect(decode({})).toEqual({ value: slice });
  });

  test('has IPv6 addresses in one form', () => {
    expect(decode({ addressType: 'IPv6', endpoints: [{ addresses: ['FD00:0::1'] }] })).toEqual({
      value: { ...slice, addressType: 'IPv6', endpoints: [{ addresses: ['fd00::1'] }] },
    });
  });

  test('may have ports without a name', () => {
    const ports = [{ name: '', port: 8080, protocol: 'TCP' }] as const;
    expect(decode({ ports })).toEqual({ value: { ...slice, ports } });
  });
});

const endpoints = (...addresses: readonly string[]): Partial<RemoteSlice> => ({ endpoints: [{ addresses }] });
const times = <T>(count: number, value: T): T[] => new Array<T>(count).fill(value);

test.each<[string, Partial<RemoteSlice>, string]>([
  ['a namespace with a slash', { namespace: 'sh/op' }, 'namespace "sh/op" is not a namespace'],
  ['a name with a slash', { name: 'x/y' }, 'name "x/y" is not a name'],
  [
    'another name than its key',
    { name: 'cart-x8' },
    'says that it is "shop/cart-x8", but its key ends with "shop/cart-x7"',
  ],
  ['names as addresses', { addressType: 'FQDN' as 'IPv4' }, 'addressType "FQDN" is neither IPv4 nor IPv6'],
  ['the other family', endpoints('fd00::1'), 'endpoints[0] "fd00::1" is not IPv4'],
  ['the other family in IPv6', { addressType: 'IPv6' }, 'endpoints[0] "10.9.0.1" is not IPv6'],
  ['an address with a zone', endpoints('10.9.0.1', 'fe80::1%e'), 'endpoints[0] "fe80::1%e" is not an IP address'],
  [
    'loopback',
    endpoints('127.0.0.1'),
    'endpoints[0] "127.0.0.1" is a loopback, link-local, multicast, unspecified or IPv4-mapped address, which other clusters cannot reach',
  ],
  [
    'a host name with a dot',
    { endpoints: [{ addresses: [], hostname: 'a.b' }] },
    'endpoints[0] hostname "a.b" is not a host name',
  ],
  ['a zone with a slash', { endpoints: [{ addresses: [], zone: 'a/b' }] }, 'endpoints[0] zone "a/b" is not a zone'],
  ['port 0', { ports: [{ name: 'a', port: 0, protocol: 'TCP' }] }, 'ports[0] port 0 is not from 1 to 65535'],
  ['port -1', { ports: [{ name: 'a', port: -1, protocol: 'TCP' }] }, 'ports[0] port -1 is not from 1 to 65535'],
  [
    'a protocol of its own',
    { ports: [{ name: 'a', port: 1, protocol: 'X' as 'TCP' }] },
    'ports[0] has protocol "X", which a Service cannot have',
  ],
  [
    'a port with a bad name',
    { ports: [{ name: 'A', port: 1, protocol: 'TCP' }] },
    'ports[0] name "A" is not the name of a port',
  ],
  ['very many endpoints', { endpoints: times(1_001, { addresses: ['10.9.0.1'] }) }, 'has more than 1000 endpoints'],
  ['very many addresses', endpoints(...times(101, '10.9.0.1')), 'has more than 100 addresses of one endpoint'],
  ['very many ports', { ports: times(1_001, { name: 'a', port: 1, protocol: 'TCP' }) }, 'has more than 1000 ports'],
])('%s is refused', (_, change, wrong) => {
  expect(decode(change)).toEqual({ wrong });
});

test('a slice of another cluster, or of another id, is refused', () => {
  expect(decode({}, { name: 'west', id: 3 })).toEqual({ wrong: 'names cluster "west", but belongs to east' });
  expect(decode({}, { name: 'east', id: 4 })).toEqual({
    wrong: 'names cluster id 4, but east has id 3',
  });
});

const bytes = (...values: readonly number[]): Buffer => Buffer.from(values);
const whole = encodeSlice(slice, east);

test.each<[string, Uint8Array, string]>([
  ['nothing', bytes(), 'is not compressed with zstd'],
  ['JSON', Buffer.from('{}'), 'is not compressed with zstd'],
  ['half of it', whole.subarray(0, whole.length >> 1), 'is not compressed with zstd'],
  ['32 MiB in a kilobyte', zstdCompressSync(Buffer.alloc(32 << 20)), 'has more than 16777216 bytes when decompressed'],
  ['a window of 128 MiB', bytes(0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3, 1, 0, 0), 'is not compressed with zstd'],
  ['text', zstdCompressSync(Buffer.from('hello, world')), 'is not a protobuf message'],
  ['a field that goes on after the end', zstdCompressSync(bytes(0x0a, 0x7f)), 'is not a protobuf message'],
  ['groups in groups', zstdCompressSync(Buffer.alloc(1 << 20, 0x7b)), 'is not a protobuf message'],
  // Field 15, as number 0, again and again.
  ['millions of fields', zstdCompressSync(Buffer.alloc(16 << 20, bytes(0x78, 0))), 'has more than 200000 fields'],
  ['an empty message', zstdCompressSync(bytes()), 'namespace "" is not a namespace'],
  ['very many bytes', Buffer.alloc(2 << 20), 'has more than 1572864 bytes'],
])('%s is refused', (_, value, wrong) => {
  expect(decodeSlice(SUFFIX, value, east)).toEqual({ wrong });
});

test('a field of the wrong type is skipped like one that is not known', () => {
  // `name` as a number, then as a text: as protobuf has it, fields of other types are other fields.
  const message = Buffer.concat([bytes(0x20, 1), Buffer.from([0x22, 2]), Buffer.from('ab')]);
  expect(decodeSlice(SUFFIX, zstdCompressSync(message), east)).toEqual({ wrong: 'namespace "" is not a namespace' });
});
