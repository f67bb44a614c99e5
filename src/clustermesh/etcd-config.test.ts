import { expect, test } from 'vitest';
import { readEtcdConfig } from './etcd-config.ts';

test('a file of Cilium’s chart is taken', () => {
  const text = `
endpoints:
- https://east.mesh.cilium.io:2379
trusted-ca-file: /var/lib/cilium/clustermesh/common-etcd-client-ca.crt
key-file: /var/lib/cilium/clustermesh/common-etcd-client.key
cert-file: /var/lib/cilium/clustermesh/common-etcd-client.crt
cilium-host-aliases:
- hostname: east.mesh.cilium.io
  ips: [172.18.255.1, "fd00::1"]
dial-timeout: 5s
`;
  expect(readEtcdConfig(text)).toEqual({
    access: {
      endpoints: ['https://east.mesh.cilium.io:2379'],
      caFile: '/var/lib/cilium/clustermesh/common-etcd-client-ca.crt',
      certificate: {
        certFile: '/var/lib/cilium/clustermesh/common-etcd-client.crt',
        keyFile: '/var/lib/cilium/clustermesh/common-etcd-client.key',
      },
      hostAliases: { 'east.mesh.cilium.io': ['172.18.255.1', 'fd00::1'] },
    },
  });
});

test.each<[string, object, object]>([
  ['no TLS', { endpoints: ['http://127.0.0.1:2379'], 'insecure-transport': true }, {}],
  ['no TLS, as the URL says', { endpoints: ['http://127.0.0.1:2379'] }, {}],
  ['the older name of a field', { 'ca-file': '/ca' }, { caFile: '/ca' }],
  ['both names', { 'ca-file': '/old', 'trusted-ca-file': '/new' }, { caFile: '/new' }],
  ['no verification', { 'insecure-skip-tls-verify': true }, { skipsVerification: true }],
  ['empty fields', { 'cert-file': '', 'key-file': null, 'cilium-host-aliases': null }, {}],
  ['several members', { endpoints: ['https://a:1', 'https://[fd00::1]:2'] }, {}],
])('%s can be wanted', (_, config, access) => {
  const endpoints = ['https://east:2379'];
  expect(readEtcdConfig(JSON.stringify({ endpoints, ...config }))).toEqual({
    access: { endpoints, ...('endpoints' in config && { endpoints: config.endpoints }), ...access },
  });
});

const alias = (value: unknown): object => ({ 'cilium-host-aliases': value });

test.each<[object | string, string, string]>([
  ['endpoints: [', '', 'is not valid YAML: see line 1'],
  ['endpoints:\n- &a [*a]', '', 'is not valid YAML: see line 2'],
  ['"endpoints:"', '', 'is not the configuration of an etcd client; give it endpoints'],
  [{ endpoints: [] }, 'endpoints', 'is empty; give the URL of an etcd'],
  [{ endpoints: null }, 'endpoints', 'is empty; give the URL of an etcd'],
  [{ endpoints: 'https://east' }, 'endpoints', 'is not a list'],
  [{ endpoints: [7] }, 'endpoints[0]', 'must be a string; put it in quotes'],
  [{ endpoints: ['east:2379'] }, 'endpoints[0]', 'is not a URL that begins with https:// or http://'],
  [{ endpoints: ['root:p@east:2379'] }, 'endpoints[0]', 'is not a URL that begins with https:// or http://'],
  [{ endpoints: ['unix:///etcd'] }, 'endpoints[0]', 'is not a URL that begins with https:// or http://'],
  [{ endpoints: ['https://a:p@east'] }, 'endpoints[0]', 'has more than host and port; remove the rest'],
  [{ endpoints: ['https://east/etcd'] }, 'endpoints[0]', 'has more than host and port; remove the rest'],
  [{ endpoints: new Array(65).fill('https://a') }, 'endpoints', 'has 65 entries; at most 64 are read'],
  [
    { 'insecure-transport': true },
    'endpoints[0]',
    'begins with https://, but insecure-transport is true; change one of them',
  ],
  [{ 'insecure-transport': 'yes' }, 'insecure-transport', 'must be true or false'],
  [{ 'trusted-ca-file': 1 }, 'trusted-ca-file', 'must be a string; put it in quotes'],
  [{ 'cert-file': '/c' }, 'key-file', 'is not set, but cert-file is'],
  [{ 'key-file': '/k' }, 'cert-file', 'is not set, but key-file is'],
  [alias({}), 'cilium-host-aliases', 'is not a list'],
  [alias(['east']), 'cilium-host-aliases[0]', 'is not an object with hostname and ips'],
  [alias([{ ips: ['10.0.0.1'] }]), 'cilium-host-aliases[0].hostname', 'is not set'],
  [alias([{ hostname: 'a' }]), 'cilium-host-aliases[0].ips', 'is empty; give the addresses of the host'],
  [alias([{ hostname: 'a', ips: ['b'] }]), 'cilium-host-aliases[0].ips[0]', 'is not an IP address'],
  [
    alias([
      { hostname: 'a', ips: ['10.0.0.1'] },
      { hostname: 'a', ips: ['10.0.0.2'] },
    ]),
    'cilium-host-aliases[1].hostname',
    '"a" is there twice; remove one',
  ],
])('%j is refused', (config, field, message) => {
  const text = typeof config === 'string' ? config : JSON.stringify({ endpoints: ['https://east'], ...config });
  expect(readEtcdConfig(text)).toEqual({ refused: { field, message } });
});
