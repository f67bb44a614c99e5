import { expect, test } from 'vitest';
import { port, serviceOf } from '../../envoy/testing/listeners.ts';
import type { MeshService } from '../../model/service.ts';
import { joiningOf, joins, mergeClaims } from './host-claims.ts';

const http = (number: number) => port(number, 'HTTP', `http-${number}`);

const claim = (name: string, more: Partial<MeshService> = {}): MeshService =>
  serviceOf('a.example.com', [http(80)], {
    registry: 'External',
    host: 'a.example.com',
    origins: [{ source: 's', group: 'networking.istio.io', kind: 'ServiceEntry', namespace: 'shop', name }],
    ...more,
  });

const endpoint = (address: string) => ({
  address,
  servicePorts: [],
  ports: {},
  labels: {},
  locality: '',
  network: '',
  identity: '',
  tlsMode: 'disabled' as const,
});

test('a single claim is the service', () => {
  const only = claim('a');
  expect(mergeClaims([only])).toBe(only);
});

test('claims of ServiceEntries with one resolution are served together', () => {
  const merged = mergeClaims([
    claim('a', {
      ports: [http(80), http(443)],
      addresses: ['0.0.0.0'],
      endpoints: [endpoint('10.0.0.1')],
      subjectAltNames: ['x'],
    }),
    claim('b', {
      ports: [port(80, 'TCP', 'other'), http(90)],
      addresses: ['240.0.0.1'],
      endpoints: [endpoint('10.0.0.2')],
      subjectAltNames: ['y', 'x'],
    }),
  ]);
  // The winner keeps a port that both have; a placeholder gives way to an address.
  expect(merged.ports).toEqual([http(80), http(443), http(90)]);
  expect(merged.addresses).toEqual(['240.0.0.1']);
  expect(merged.endpoints.map(({ address }) => address)).toEqual(['10.0.0.1', '10.0.0.2']);
  expect(merged.subjectAltNames).toEqual(['x', 'y']);
  expect(merged.origins.map(({ name }) => name)).toEqual(['a', 'b']);
});

test.each([
  ['another resolution', { resolution: 'DNSLB' as const }],
  ['a Service', { registry: 'Kubernetes' as const }],
])('a claim of %s loses', (_, more) => {
  const winner = claim('a', { ports: [http(80)] });
  const loser = claim('b', { ports: [http(81)], ...more });
  expect(joins(winner, loser)).toBe(false);
  expect(mergeClaims([winner, loser])).toEqual(winner);
  expect(joins(loser, winner)).toBe(false);
});

test('claims join as long as their endpoints have room together', () => {
  const [one] = claim('a').ports;
  const large = (name: string, count: number): MeshService =>
    claim(name, {
      endpoints: Array.from({ length: count }, () => ({ ...endpoint('10.0.0.1'), servicePorts: [one!] })),
    });
  const claims = [large('a', 30_000), large('b', 10_001), large('c', 10_000), large('d', 1)];
  expect(mergeClaims(claims).endpoints).toHaveLength(40_000);
  expect(joiningOf(claims)).toEqual([claims[2]]);
});
