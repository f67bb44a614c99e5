import { describe, expect, test } from 'vitest';
import { reconcileMeshConfig } from '../../reconcilers/mesh-config/mesh-config.ts';
import { fixedClusters, httpOptionsOf, jsonOf, settingsOf } from '../testing/clusters.ts';
import { traitsOf } from '../testing/listeners.ts';

test('a proxy with addresses of both families binds inbound connections to one of each', () => {
  const [, , inbound] = fixedClusters({
    traits: traitsOf({ ipFamily: 'dual' }),
    settings: settingsOf(),
    outboundPolicy: 'ALLOW_ANY',
  });
  expect(inbound?.upstreamBindConfig).toEqual({
    sourceAddress: { address: '127.0.0.6', portValue: 0 },
    extraSourceAddresses: [{ address: { address: '::6', portValue: 0 } }],
  });
});

describe('the cluster for hosts that nobody knows', () => {
  const clusterWith = (tls?: object) => {
    const mesh = { outboundTrafficPolicy: { mode: 'ALLOW_ANY_DYNAMIC_DNS', ...(tls && { tls }) } };
    const { config } = reconcileMeshConfig(JSON.stringify(mesh));
    const fixed = fixedClusters({
      traits: traitsOf({}),
      settings: config.clusters,
      outboundPolicy: config.listeners.outboundTrafficPolicy,
    });
    return jsonOf(fixed.find(({ name }) => name === 'AllowAnyDynamicDNSCluster')!);
  };
  const insecure = { clusterType: { typedConfig: { allowInsecureClusterOptions: true } } };

  test('sends plaintext, unless the mesh config wants TLS that binds the certificate to the host', () => {
    const plain = clusterWith();
    expect(plain).toMatchObject(insecure);
    expect(plain).not.toHaveProperty('transportSocket');
    expect(clusterWith({ mode: 'DISABLE' })).toEqual(plain);
    const verifying = clusterWith({ mode: 'SIMPLE' });
    expect(verifying).toHaveProperty('transportSocket');
    expect(verifying).not.toMatchObject(insecure);
    expect(httpOptionsOf(verifying)).toMatchObject({
      upstreamHttpProtocolOptions: { autoSni: true, autoSanValidation: true },
    });
    expect(clusterWith({ mode: 'SIMPLE', insecureSkipVerify: true })).toMatchObject(insecure);
  });

  test('reaches nobody while it would need a Secret, which the mesh config cannot name', () => {
    expect(JSON.stringify(clusterWith({ mode: 'SIMPLE', credentialName: 'a' }))).toContain('"withheld"');
  });
});
