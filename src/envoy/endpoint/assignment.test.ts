import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Endpoint } from '../../model/endpoint.ts';
import type { MtlsUse } from '../../model/policy-resolution.ts';
import { settleAssignment } from '../../settle/assignment.ts';
import { buildAssignment, emptyAssignment } from './assignment.ts';
import { encodeEndpoints, workloadOf } from './assignment-endpoint.ts';
import type { ClusterLoadAssignment, LbEndpoint } from '../gen/types.gen.ts';
import { types } from '../encode/proto-types.ts';
import { endpointOf } from '../testing/clusters.ts';
import { port, protos, serviceOf } from '../testing/listeners.ts';
import { struct } from '../encode/wrappers.ts';
import { runs } from '../../testing/runs.ts';

function bytesOf(endpoints: readonly Endpoint[], mtls: MtlsUse = 'auto'): Uint8Array {
  const settled = settleAssignment({
    clusterName: 'c',
    endpoints: encodeEndpoints(endpoints),
    subsetLabels: {},
    policy: {},
    service: serviceOf('a', [port(80, 'HTTP')]),
    settings: {},
    mtls,
  });
  return buildAssignment(settled).bytes;
}

const decode = (bytes: Uint8Array) => protos.decode(types.endpoint, bytes);
const addressOf = ({ endpoint }: LbEndpoint) =>
  endpoint?.address?.socketAddress?.address ?? endpoint?.address?.pipe?.path ?? '';

/** The addresses that are sent. */
function addresses(endpoints: readonly Endpoint[]): string[] {
  return (decode(bytesOf(endpoints)).endpoints ?? []).flatMap((group) => (group.lbEndpoints ?? []).map(addressOf));
}

describe('the bytes', () => {
  /** The same by Envoy's types: what the encoder for everything else would write. */
  function message(endpoint: Endpoint, mtls: boolean): LbEndpoint {
    const [first = '', ...others] = endpoint.addresses;
    const address = (text: string) =>
      endpoint.port === 0 ? { pipe: { path: text } } : { socketAddress: { address: text, portValue: endpoint.port } };
    const marked = mtls && endpoint.tlsMode === 'istio';
    return {
      endpoint: {
        address: address(first),
        additionalAddresses: others.map((other) => ({ address: address(other) })),
      },
      healthStatus: { Healthy: 1, UnHealthy: 2, Draining: 3, Terminating: 2 }[endpoint.health ?? 'Healthy'],
      metadata: {
        filterMetadata: {
          ...(marked ? { 'envoy.transport_socket_match': struct({ tlsMode: 'istio' }) } : {}),
          istio: struct({ workload: workloadOf(endpoint) }),
        },
      },
      loadBalancingWeight: { value: endpoint.weight ?? 1 },
    };
  }

  const endpoints = fc.record({
    addresses: fc.uniqueArray(fc.ipV4(), { minLength: 1, maxLength: 3 }),
    port: fc.integer({ min: 1, max: 65_535 }),
    health: fc.constantFrom('Healthy' as const, 'UnHealthy' as const),
    labels: fc.dictionary(fc.constantFrom('app', 'version', 'x'), fc.string({ unit: 'grapheme', maxLength: 200 })),
    tlsMode: fc.constantFrom('istio' as const, 'disabled' as const),
    weight: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
    workload: fc.string({ unit: 'grapheme', maxLength: 300 }),
  });

  test('are those of the encoder that knows the types', () => {
    fc.assert(
      fc.property(fc.array(endpoints, { minLength: 1, maxLength: 4 }), fc.boolean(), (drawn, mtls) => {
        const all = drawn.map((given) => endpointOf('', given));
        const weight = all.reduce((sum, endpoint) => sum + (endpoint.weight ?? 1), 0);
        const expected: ClusterLoadAssignment = {
          clusterName: 'c',
          endpoints: [
            {
              locality: {},
              lbEndpoints: all.map((endpoint) => message(endpoint, mtls)),
              loadBalancingWeight: { value: Math.min(weight, 2 ** 32 - 1) },
            },
          ],
        };
        const bytes = bytesOf(all, mtls ? 'auto' : 'never');
        expect(Buffer.compare(bytes, protos.encode(types.endpoint, expected))).toBe(0);
      }),
      { numRuns: runs(200) },
    );
  });

  test('of an assignment without endpoints are its name alone', () => {
    const expected = protos.encode(types.endpoint, { clusterName: 'outbound|80||ä' });
    expect(Buffer.compare(emptyAssignment('outbound|80||ä'), expected)).toBe(0);
    expect(Buffer.compare(bytesOf([]), protos.encode(types.endpoint, { clusterName: 'c' }))).toBe(0);
  });

  test('of a locality have its endpoints, then gateways with the mark for mutual TLS; priorities may be left late', () => {
    const [near] = encodeEndpoints([endpointOf('10.0.0.1')]);
    const gateway = { ...endpointOf('1.1.1.1', { tlsMode: 'istio', port: 15_443 }), weight: 3 };
    const places = { region: 'r', zone: 'z', subzone: 's', weight: 4, priority: 1 };
    const { bytes } = buildAssignment({
      clusterName: 'c',
      localities: [{ ...places, endpoints: [near!.plain], gateways: [gateway] }],
      untilTheLastOne: true,
      ready: true,
    });
    const expected: ClusterLoadAssignment = {
      clusterName: 'c',
      endpoints: [
        {
          locality: { region: 'r', zone: 'z', subZone: 's' },
          lbEndpoints: [message(endpointOf('10.0.0.1'), false), message(gateway, true)],
          loadBalancingWeight: { value: 4 },
          priority: 1,
        },
      ],
      policy: { overprovisioningFactor: { value: 100_000 } },
    };
    expect(Buffer.compare(bytes, protos.encode(types.endpoint, expected))).toBe(0);
  });

  test('of a unix socket have its path', () => {
    expect(addresses([endpointOf('/tmp/s', { port: 0 })])).toEqual(['/tmp/s']);
  });
});

test('endpoints that are not ready are sent as such', () => {
  const bytes = bytesOf([endpointOf('10.0.0.1', { health: 'UnHealthy' })]);
  expect(decode(bytes).endpoints?.[0]?.lbEndpoints?.[0]?.healthStatus).toBe('UNHEALTHY');
});

test('what telemetry reads prefers canonical names', () => {
  const workload = (labels: Record<string, string>) => workloadOf(endpointOf('', { labels }));
  expect(workload({})).toBe('a;shop;a;;Kubernetes');
  expect(workload({ app: 'b', version: 'latest' })).toBe('a;shop;b;;Kubernetes');
  expect(workload({ app: 'b', 'app.kubernetes.io/name': 'c', version: 'v1' })).toBe('a;shop;c;v1;Kubernetes');
  expect(
    workload({ 'service.istio.io/canonical-name': 'd', 'service.istio.io/canonical-revision': 'r', version: 'v1' }),
  ).toBe('a;shop;d;r;Kubernetes');
});
