import { expect, test } from 'vitest';
import { endpointOf } from '../../envoy/testing/clusters.ts';
import { summarize } from './endpoint-summary.ts';

const nothing = { addresses: false, dns: false };

test('identities are distinct and sorted; endpoints without one have none', () => {
  const endpoints = ['b', 'a', '', 'b'].map((identity, i) => endpointOf(`10.0.0.${i}`, { identity }));
  expect(summarize(endpoints, nothing).identities).toEqual(['a', 'b']);
});

test('one endpoint without mutual TLS is enough for plaintext, and so is none', () => {
  const mtls = endpointOf('10.0.0.1', { tlsMode: 'istio' });
  expect(summarize([mtls], nothing)).toMatchObject({ plaintext: false });
  expect(summarize([mtls, endpointOf('10.0.0.2')], nothing)).toMatchObject({ plaintext: true });
  expect(summarize([], nothing)).toMatchObject({ plaintext: true });
});

test('addresses come in order, once, and only where they are needed', () => {
  const endpoints = ['10.0.0.2', '10.0.0.1', '10.0.0.2'].map((address) => endpointOf(address));
  expect(summarize(endpoints, nothing).addresses).toEqual([]);
  expect(summarize(endpoints, { ...nothing, addresses: true }).addresses).toEqual(['10.0.0.1', '10.0.0.2']);
});

test('the endpoints of a service that Envoy looks up are part of it, and of no other', () => {
  const endpoints = [endpointOf('a.example.com')];
  expect(summarize(endpoints, nothing).dnsEndpoints).toEqual([]);
  expect(summarize(endpoints, { ...nothing, dns: true }).dnsEndpoints).toEqual(endpoints);
});

test('it stays equal while endpoints of the same kind come and go', () => {
  const one = (address: string) => endpointOf(address, { identity: 'a', tlsMode: 'istio' });
  expect(summarize([one('10.0.0.1')], nothing)).toEqual(summarize([one('10.0.0.2'), one('10.0.0.3')], nothing));
});
