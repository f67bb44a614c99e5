import { describe, expect, test } from 'vitest';
import { decodeIdentity } from './identity-value.ts';
import { decodeIp } from './ip-value.ts';
import { decodeNode } from './node-value.ts';

const east = { name: 'east', id: 3, limit: 255 } as const;

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

describe('a node', () => {
  const node = {
    Name: 'n1.east',
    Cluster: 'east',
    IPAddresses: [
      { Type: 'InternalIP', IP: '172.18.0.2' },
      { Type: 'CiliumInternalIP', IP: 'FD00:10::E2D6' },
    ],
    IPv4AllocCIDR: { IP: '10.244.0.0', Mask: '////AA==' },
    IPv4SecondaryAllocCIDRs: null,
    IPv6AllocCIDR: { IP: 'fd00:10:244::', Mask: '//////////8AAAAAAAAAAA==' },
    IPv6SecondaryAllocCIDRs: [{ IP: 'fd00:11::', Mask: '//8AAAAAAAAAAAAAAAAAAA==' }],
    IPv4HealthIP: '10.244.0.134',
    IPv4IngressIP: '',
    ClusterID: 3,
    Source: 'custom-resource',
    EncryptionKey: 0,
    Labels: { 'kubernetes.io/hostname': 'n1' },
    Annotations: null,
  };
  const decode = (change: object): unknown => decodeNode('n1.east', json({ ...node, ...change }), east);

  test('is read as Cilium writes it', () => {
    expect(decode({})).toEqual({
      value: {
        name: 'n1.east',
        addresses: [
          { type: 'InternalIP', address: '172.18.0.2' },
          { type: 'CiliumInternalIP', address: 'fd00:10::e2d6' },
        ],
        labels: { 'kubernetes.io/hostname': 'n1' },
      },
    });
  });

  test.each<[object, string]>([
    [{ Name: 'n2' }, 'says that it is "n2", but its key ends with "n1.east"'],
    [{ Cluster: 'west' }, 'names cluster "west", but belongs to east'],
    [{ ClusterID: 0 }, 'names cluster id 0, but east has id 3'],
    [{ IPAddresses: [{ Type: 'InternalIP', IP: 'x' }] }, 'IPAddresses[0].IP is not an IP address'],
  ])('with %j is refused', (change, wrong) => {
    expect(decode(change)).toEqual({ wrong });
  });
});

describe('an identity', () => {
  const value = 'k8s:app=baz;k8s:io.cilium.k8s.policy.cluster=east;k8s:io.kubernetes.pod.namespace=bar;';
  const decode = (suffix: string, text = value): unknown => decodeIdentity(suffix, Buffer.from(text), east);

  test('is what its labels say', () => {
    expect(decode('200000')).toEqual({
      value: {
        id: 200_000,
        labels: {
          'k8s:app': 'baz',
          'k8s:io.cilium.k8s.policy.cluster': 'east',
          'k8s:io.kubernetes.pod.namespace': 'bar',
        },
      },
    });
  });

  test.each<[string, string, string]>([
    ['131072', value, '"131072" is not an identity of cluster east, which has 196608 to 262143'],
    ['0x30000', value, '"0x30000" is not an identity of cluster east, which has 196608 to 262143'],
    ['', value, '"" is not an identity of cluster east, which has 196608 to 262143'],
    ['200000', '', 'does not end with a semicolon'],
    ['200000', 'k8s:app=baz', 'does not end with a semicolon'],
    ['200000', 'k8s:app;', '"k8s:app" is not a label'],
    ['200000', 'k8s:app=baz;', 'names cluster "", but belongs to east'],
    ['200000', value.replace('east', 'west'), 'names cluster "west", but belongs to east'],
    ['200000', 'a=b;'.repeat(2_000), 'has more than 1000 labels'],
  ])('%j with %j is refused', (suffix, text, wrong) => {
    expect(decode(suffix, text)).toEqual({ wrong });
  });
});

describe('an address', () => {
  const pod = {
    IP: '10.244.2.74',
    Mask: null,
    HostIP: '172.18.0.2',
    ID: 199_475,
    Key: 5,
    Metadata: '',
    K8sNamespace: 'bar',
    K8sPodName: 'web-1',
    K8sServiceAccount: 'default',
    NamedPorts: [{ Name: 'http', Port: 8080, Protocol: 'TCP' }],
  };
  const decode = (suffix: string, change: object = {}): unknown => decodeIp(suffix, json({ ...pod, ...change }), east);

  test('is that of a Pod', () => {
    expect(decode('10.244.2.74')).toEqual({
      value: {
        range: { address: '10.244.2.74', length: 32 },
        ...{ identity: 199_475, namespace: 'bar', pod: 'web-1', serviceAccount: 'default' },
        host: '172.18.0.2',
      },
    });
  });

  test('may be a range that is nobody’s Pod', () => {
    const change = { IP: 'fd00:1::', Mask: '//////////8AAAAAAAAAAA==', ID: 6, K8sPodName: undefined };
    expect(decode('fd00:1::/64', change)).toMatchObject({
      value: { range: { address: 'fd00:1::', length: 64 }, identity: 6, pod: '' },
    });
  });

  test.each<[string, object, string]>([
    ['10.244.2.75', {}, 'says that it is 10.244.2.74/32, but its key ends with "10.244.2.75"'],
    ['10.244.2.74/24', {}, 'says that it is 10.244.2.74/32, but its key ends with "10.244.2.74/24"'],
    ['x', { IP: 'x' }, 'IP is not an IP address'],
    ['10.0.0.0/8', { IP: '10.0.0.0', Mask: '/wD/AA==' }, 'Mask is not the mask of such an address'],
    ['fd00::/32', { IP: 'fd00::', Mask: '////AA==' }, 'Mask is not the mask of such an address'],
    ['10.244.2.74', { ID: 70_000 }, 'ID 70000 is not an identity of cluster east, which has 196608 to 262143'],
    ['10.244.2.74', { ID: 2 ** 24 }, 'ID is not a whole number from 0 to 16777215'],
    ['10.244.2.74', { K8sNamespace: {} }, 'K8sNamespace must be a string'],
  ])('%s with %j is refused', (suffix, change, wrong) => {
    expect(decode(suffix, change)).toEqual({ wrong });
  });
});
