import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { requestCertificate } from './certificate/certificate-client.ts';
import { NAMES } from './certificate/files.ts';
import { certificateAuthority, controlPlane } from './control-plane.ts';
import { readSettings } from './settings/settings.ts';
import { dial } from './xds/dial.ts';

/** A Pod that has a token and roots. */
function podOf(proxyConfig: object) {
  const root = mkdtempSync(join(tmpdir(), 'fl-dial-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const [directory, name, text] of [
    ['var/run/secrets/tokens', 'istio-token', 'secret'],
    ['var/run/secrets/istio', 'root-cert.pem', 'roots'],
  ] as const) {
    mkdirSync(join(root, directory), { recursive: true });
    writeFileSync(join(root, directory, name), text);
  }
  return readSettings(
    { type: 'sidecar', domain: '', root, meshConfigFile: 'none' },
    {
      env: { PROXY_CONFIG: JSON.stringify(proxyConfig) },
      readFile: () => undefined,
      isSocket: () => false,
      addresses: () => [],
    },
  );
}

const NONE = { controlPlaneAuthPolicy: 'NONE' };

test('the token goes over TLS, and never without it, whatever the port', () => {
  const sent = (address: string, proxyConfig: object = {}) => {
    const { client, metadata } = dial(controlPlane(podOf(proxyConfig), address));
    client.close();
    return metadata.get('authorization');
  };
  expect(sent('istiod.example:15012')).toEqual(['Bearer secret']);
  expect(sent('istiod.example:443')).toEqual(['Bearer secret']);
  for (const [address, config] of [
    ['istiod.example:15010', {}],
    ['127.0.0.1:15010', {}],
    ['istiod.example:15012', NONE],
    ['istiod.example:443', NONE],
  ] as const)
    expect(sent(address, config), `${address} ${JSON.stringify(config)}`).toEqual([]);
});

test('no certificate is requested without TLS, and the reason says what to do', async () => {
  const { signal } = new AbortController();
  const authority = certificateAuthority(podOf({ discoveryAddress: 'istiod.example:15010' }));
  await expect(requestCertificate(authority, 'csr', 60, { signal })).rejects.toThrow(
    'set CA_ADDR to the address with port 15012',
  );
  // Only the control plane is without TLS here.
  const { tls } = certificateAuthority(podOf({ discoveryAddress: 'istiod.example:15012', ...NONE }));
  expect(tls).toBeDefined();
});

test('a mounted certificate proves who the workload is where there is no token', () => {
  const settings = podOf({});
  const mountedCertificates = join(settings.root, 'etc/certs');
  mkdirSync(mountedCertificates, { recursive: true });
  for (const name of Object.values(NAMES)) writeFileSync(join(mountedCertificates, name), name);
  const pod = { ...settings, paths: { ...settings.paths, mountedCertificates } };
  const proof = () => controlPlane(pod, 'istiod.example:15012').tls?.certificate();
  // Another authority may have signed it, which the control plane does not know.
  expect(proof()).toBe(undefined);
  rmSync(settings.paths.token);
  expect(proof()).toMatchObject({ chain: `${NAMES.chain}\n`, key: `${NAMES.key}\n` });
});
