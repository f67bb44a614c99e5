import { expect, test } from 'vitest';
import { leavesOf } from '../../ads/store/resource.ts';
import { bytesOf } from '../../ads/wire/bytes-of.ts';
import { type Amend, Encoder } from './encoder.ts';
import type { Any, Filter, HttpConnectionManager, Listener } from '../gen/types.gen.ts';
import { httpConnectionManager } from '../listener/http-connection-manager.ts';
import { clientSecret, fileSecret, rootFile, workloadSecret } from '../tls/secrets.ts';
import { any, constantAny, createProtos } from './proto.ts';
import { types } from './proto-types.ts';
import { defaultSettings, traitsOf } from '../testing/listeners.ts';

const protos = createProtos();

const manager = (filters = {}) =>
  httpConnectionManager({
    direction: 'outbound',
    traits: traitsOf({}),
    settings: defaultSettings,
    statPrefix: 'x',
    routes: '80',
    filters,
  });

const listenerOf = (filter: Filter): Listener => ({ name: 'l', filterChains: [{ filters: [filter] }] });

/** Names of the HTTP filters of the only connection manager. */
function filtersIn(bytes: Uint8Array): string[] {
  const { filterChains = [] } = protos.decode(types.listener, bytes);
  const config = filterChains[0]!.filters![0]!.typedConfig!;
  return (protos.unpack(types.httpConnectionManager, config).httpFilters ?? []).map(({ name = '' }) => name);
}

test.each([
  ['that is held', any(types.tcpProxy, { statPrefix: 'x' })],
  ['that never changes', constantAny(types.tcpProxy, { statPrefix: 'x' })],
])('a message %s is encoded with what it is in, as its bytes would be', (_, typedConfig) => {
  const value = protos.encode(types.tcpProxy, { statPrefix: 'x' });
  const encode = (config: Any) => protos.encode(types.listener, listenerOf({ typedConfig: config }));
  const expected = encode({ ...typedConfig, value });
  for (let i = 0; i < 2; i++) expect(encode(typedConfig)).toEqual(expected);
});

test('a message that its type cannot hold is refused wherever it is', () => {
  const typedConfig = any(types.tcpProxy as string, { statPrefix: 1 });
  expect(() => protos.encode(types.listener, listenerOf({ typedConfig }))).toThrow(/statPrefix/);
});

test.each([
  ['late if it needs a Secret', clientSecret('kubernetes://public'), true],
  ['late if it needs a file from the agent', fileSecret(rootFile('/ca.pem')), true],
  [
    "not late with the workload's own certificate, which every proxy has from its start",
    workloadSecret('default'),
    undefined,
  ],
])('a cluster is %s', (_, secret, late) => {
  const context = { commonTlsContext: { tlsCertificateSdsSecretConfigs: [secret] } };
  const transportSocket = { name: 'tls', typedConfig: any(types.upstreamTls, context) };
  for (const cluster of [{ transportSocket }, { transportSocketMatches: [{ name: 'tls', transportSocket }] }]) {
    const { body } = new Encoder(protos).cluster({ name: 'c', ...cluster });
    expect([...leavesOf(body)].map((leaf) => leaf.late)).toEqual([late]);
  }
});

test('a finished listener can be changed down to its filters before it is encoded', () => {
  const withoutFaults: Amend = (type, message) => {
    if (type !== types.listener) return message;
    const { filterChains = [], ...others } = message as Listener;
    const changed: Listener = {
      ...others,
      filterChains: filterChains.map((chain) => ({
        ...chain,
        filters: (chain.filters ?? []).map((filter) => {
          const config = filter.typedConfig?.value as HttpConnectionManager;
          const httpFilters = (config.httpFilters ?? []).filter(({ name }) => name !== 'envoy.filters.http.fault');
          return { ...filter, typedConfig: any(types.httpConnectionManager, { ...config, httpFilters }) };
        }),
      })),
    };
    return changed as typeof message;
  };
  const bodyOf = (encoder: Encoder) => bytesOf(encoder.listener(listenerOf(manager()), []).body);
  const before = filtersIn(bodyOf(new Encoder(protos)));
  expect(before).toContain('envoy.filters.http.fault');
  expect(filtersIn(bodyOf(new Encoder(protos, { amend: withoutFaults })))).toEqual(
    before.filter((name) => name !== 'envoy.filters.http.fault'),
  );
});

test('HTTP filters stand in the order of their phases, whoever adds them', () => {
  const own = (name: string) => [{ name }];
  const finished = listenerOf(manager({ destination: own('d'), authorization: own('a') }));
  expect(filtersIn(protos.encode(types.listener, finished))).toEqual([
    'a',
    'envoy.filters.http.grpc_stats',
    'envoy.filters.http.fault',
    'envoy.filters.http.cors',
    'd',
    'envoy.filters.http.router',
  ]);
});

test('virtual hosts and the routes that they share can be changed, each by itself', () => {
  const named: Amend = (type, message) =>
    type === types.virtualHost || type === types.routeEntry ? { ...message, name: 'changed' } : message;
  const encoder = new Encoder(protos, { amend: named });
  const shared = [encoder.routes([{ name: 'r' }])];
  const [alone] = encoder.virtualHostsOf(encoder.virtualHost({ name: 'v', domains: ['a'] }));
  const [sharing] = encoder.virtualHostsOf(
    encoder.virtualHost({ name: 'v', domains: ['a'] }, { routes: shared, clusters: [] }),
  );
  expect(alone).toEqual({ name: 'changed', domains: ['a'] });
  expect(sharing).toEqual({ name: 'changed', domains: ['a'], routes: [{ name: 'changed' }] });
});

test('domains are taken from a finished virtual host, which is not changed again', () => {
  const longer: Amend = (type, message) =>
    type === types.virtualHost ? { ...message, name: `${(message as { name: string }).name}!` } : message;
  const encoder = new Encoder(protos, { amend: longer });
  const part = encoder.virtualHost({ name: 'v', domains: ['a', 'b'] });
  const left = encoder.withDomains(part, (domain) => domain !== 'a');
  expect(encoder.virtualHostsOf(left!)).toEqual([{ name: 'v!', domains: ['b'] }]);
  expect(encoder.withDomains(part, () => false)).toBeUndefined();
});
