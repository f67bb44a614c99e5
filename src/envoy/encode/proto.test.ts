import { expect, test } from 'vitest';
import { any, createProtos, typeOfUrl } from './proto.ts';
import { types } from './proto-types.ts';
import { duration } from '../duration.ts';
import { struct } from './wrappers.ts';

const protos = createProtos();

const cluster = {
  name: 'outbound|80||reviews.default.svc.cluster.local',
  type: 'EDS',
  connectTimeout: { seconds: 10, nanos: 500_000_000 },
  lbPolicy: 'LEAST_REQUEST',
  perConnectionBufferLimitBytes: { value: 32768 },
  circuitBreakers: { thresholds: [{ priority: 'HIGH', maxRetries: { value: 4294967295 } }] },
  metadata: { filterMetadata: { istio: struct({ host: 'reviews', ports: [80, null, true], nested: { a: 1.5 } }) } },
  typedExtensionProtocolOptions: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': any(types.httpProtocolOptions, {
      explicitHttpConfig: { http2ProtocolOptions: { maxConcurrentStreams: { value: 100 } } },
    }),
  },
} as const;

test('a message survives encoding and decoding', () => {
  const bytes = protos.encode(types.cluster, cluster);
  const decoded = protos.decode(types.cluster, bytes);
  expect(decoded).toMatchObject({ name: cluster.name, type: 'EDS', lbPolicy: 'LEAST_REQUEST' });
  expect(protos.encode(types.cluster, decoded)).toEqual(bytes);
});

test('protobuf JSON is canonical, expands Any, and reads back to the same bytes', () => {
  const bytes = protos.encode(types.cluster, cluster);
  const json = protos.toJson(types.cluster, bytes);
  expect(json).toMatchObject({
    type: 'EDS',
    connectTimeout: '10.500s',
    perConnectionBufferLimitBytes: 32768,
    metadata: { filterMetadata: { istio: { host: 'reviews', ports: [80, null, true], nested: { a: 1.5 } } } },
    typedExtensionProtocolOptions: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
        explicitHttpConfig: { http2ProtocolOptions: { maxConcurrentStreams: 100 } },
      },
    },
  });
  expect(protos.encode(types.cluster, protos.fromJson(types.cluster, json))).toEqual(bytes);
});

test('JSON may spell fields as in the .proto file', () => {
  expect(protos.fromJson(types.cluster, { connect_timeout: '1s' })).toEqual({ connectTimeout: { seconds: '1' } });
});

test.each([
  ['an unknown field', types.cluster, { nmae: 'x' }],
  [
    'an unknown field inside an Any',
    types.listener,
    { filterChains: [{ filters: [{ typedConfig: { '@type': `t/${types.tcpProxy}`, x: 1 } }] }] },
  ],
  ['an unknown enum name', types.cluster, { type: 'EDSS' }],
  ['an unknown type', types.cluster, { transportSocket: { typedConfig: { '@type': 'type.googleapis.com/nope' } } }],
])('JSON with %s is refused', (_, type, json) => {
  expect(() => protos.fromJson(type, json)).toThrow();
});

test('the order in which a map was filled does not change the bytes', () => {
  const load = (...names: string[]) => ({
    fields: Object.fromEntries(names.map((name) => [name, { boolValue: true }])),
  });
  const encode = (...names: string[]) => protos.encode('google.protobuf.Struct', load(...names));
  expect(encode('b', 'a', 'c')).toEqual(encode('c', 'b', 'a'));
  expect(protos.toJson('google.protobuf.Struct', encode('b', '__proto__'))).toHaveProperty('b');
  expect(encode('__proto__')).toHaveLength(17);
});

test('encoded bytes have memory of their own', () => {
  const bytes = protos.encode(types.cluster, { name: 'x' });
  expect(bytes.buffer.byteLength).toBe(bytes.byteLength);
});

test('members that are undefined or have their default are not written', () => {
  const bytes = protos.encode(types.cluster, { name: '', altStatName: undefined, type: 'STATIC', healthChecks: [] });
  expect(protos.toJson(types.cluster, bytes)).toEqual({ type: 'STATIC' });
  expect(protos.encode('google.protobuf.Duration', { seconds: '0', nanos: 0 })).toHaveLength(0);
});

test.each([
  ['a member that the type does not have', { nmae: 'x' }, 'envoy.config.cluster.v3.Cluster has no member "nmae"'],
  ['an enum name that does not exist', { type: 'EDSS' }, 'Cluster.type'],
  ['a number for a string', { name: 5 }, 'Cluster.name'],
  ['a number for a message', { connectTimeout: 5 }, 'Cluster.connectTimeout'],
  ['one value for a list', { healthChecks: {} }, 'Cluster.healthChecks'],
  ['a negative number where there is no sign', { perConnectionBufferLimitBytes: { value: -1 } }, 'UInt32Value.value'],
  ['a hole in a list', { healthChecks: [undefined] }, 'Cluster.healthChecks'],
  ['two members of a oneof', { type: 'EDS', clusterType: { name: 'x' } }, 'more than one member of the oneof'],
])('%s is not encoded', (_, message, expected) => {
  expect(() => protos.encode(types.cluster as string, message)).toThrow(expected);
});

test('64-bit numbers keep every digit', () => {
  const bytes = protos.encode('google.protobuf.UInt64Value', { value: '18446744073709551615' });
  expect(protos.decode('google.protobuf.UInt64Value', bytes)).toEqual({ value: '18446744073709551615' });
});

test('every type that is used by name exists', () => {
  for (const type of Object.values(types)) expect(protos.has(type), type).toBe(true);
  expect(protos.has('envoy.config.cluster.v3.Nope')).toBe(false);
  expect(protos.has('envoy.config.cluster.v3')).toBe(false);
  expect(typeOfUrl(any(types.router, {}).typeUrl ?? '')).toBe(types.router);
});

test('a duration of milliseconds has seconds and nanoseconds of one sign', () => {
  expect(duration(1500)).toEqual({ seconds: 1, nanos: 500_000_000 });
  expect(duration(-1500)).toEqual({ seconds: -1, nanos: -500_000_000 });
});
