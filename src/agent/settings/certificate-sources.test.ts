import { expect, test } from 'vitest';
import { readSettings } from './settings.ts';

const SPIFFE = '/var/run/secrets/workload-spiffe-credentials';
const SOCKET = '/var/run/secrets/workload-spiffe-uds/socket';
const NAMES = ['cert-chain.pem', 'key.pem', 'root-cert.pem'];

function sources({ files = [], sockets = [], env = {} }: { files?: string[]; sockets?: string[]; env?: object }) {
  const { paths, unused } = readSettings(
    { type: 'sidecar', domain: '', root: '/', meshConfigFile: 'none' },
    {
      env: { ...env },
      readFile: (path) => (files.includes(path) ? 'text' : undefined),
      isSocket: (path) => sockets.includes(path),
      addresses: () => [],
    },
  );
  const { secretSocket, secretProvider: provider, mountedCertificates: mounted } = paths;
  return { secretSocket, provider, mounted, unused };
}

const all = (directory: string): string[] => NAMES.map((name) => `${directory}/${name}`);

test.each([
  ['nothing', {}, undefined],
  ['an empty volume', { files: [] }, undefined],
  ["the workload's credentials", { files: all(SPIFFE) }, SPIFFE],
  ["Istio's directory for certificates", { files: all('/etc/certs') }, '/etc/certs'],
  ['both', { files: [...all(SPIFFE), ...all('/etc/certs')] }, SPIFFE],
  ['what this agent writes itself', { files: all('/etc/certs'), env: { OUTPUT_CERTS: '/etc/certs' } }, undefined],
  ['a certificate that is to come', { env: { FILE_MOUNTED_CERTS: 'true' } }, '/etc/certs'],
])('a mounted certificate replaces that of the control plane: %s', (_, pod, mounted) => {
  expect(sources(pod)).toMatchObject({ mounted, provider: undefined, unused: [] });
});

test('a mounted certificate with files missing is not used, and which ones are missing is said', () => {
  expect(sources({ files: ['/etc/certs/cert-chain.pem'] })).toMatchObject({
    mounted: undefined,
    unused: ['certificate in /etc/certs, which lacks key.pem and root-cert.pem'],
  });
});

test.each([
  ['at its usual place', { sockets: [SOCKET] }, SOCKET],
  [
    'under another name, even before it is there',
    { env: { WORKLOAD_IDENTITY_SOCKET_FILE: 'spire.sock' } },
    'spire.sock',
  ],
  ['under the usual name, before it is there', { env: { WORKLOAD_IDENTITY_SOCKET_FILE: 'socket' } }, undefined],
  ['a file where a socket is expected', { files: [SOCKET] }, undefined],
  ['of no use without Envoy', { sockets: [SOCKET], env: { DISABLE_ENVOY: 'true' } }, undefined],
])('a provider of certificates is found by its socket: %s', (_, pod, provider) => {
  const found = sources(pod);
  if (provider === undefined) expect(found.provider).toBe(undefined);
  else
    expect(found.provider).toMatch(
      new RegExp(`/var/run/secrets/workload-spiffe-uds/.*${provider.split('/').at(-1)!}$`),
    );
  // Where this agent listens, and removes what it finds, no provider is.
  expect(found.secretSocket).toBe('/etc/istio/proxy/SDS');
});
