import { expect, test } from 'vitest';
import { endpointOf } from '../../envoy/testing/clusters.ts';
import { summarize } from './endpoint-summary.ts';

const addresses = (most: number) => ({ most, cluster: 'own' });
const nothing = { addresses: addresses(0), dns: false };

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
  expect(summarize(endpoints, { ...nothing, addresses: addresses(2) })).toMatchObject({
    addresses: ['10.0.0.1', '10.0.0.2'],
  });
});

test('of too many addresses, those of the own cluster come first, and the rest are counted', () => {
  const endpoints = ['10.0.0.1', '10.0.0.2', '10.0.0.9', '10.0.0.8'].map((address, i) =>
    endpointOf(address, { cluster: i < 2 ? 'other' : 'own' }),
  );
  const { addresses: kept, ignoredAddresses } = summarize(endpoints, { ...nothing, addresses: addresses(3) });
  expect(kept).toEqual(['10.0.0.1', '10.0.0.8', '10.0.0.9']);
  expect(ignoredAddresses).toBe(1);
  expect(summarize(endpoints, { ...nothing, addresses: addresses(4) })).not.toHaveProperty('ignoredAddresses');
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
