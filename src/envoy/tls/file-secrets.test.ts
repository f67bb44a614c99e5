import { expect, test } from 'vitest';
import type { ServerTls } from '../../model/gateway.ts';
import { fileSecretsOf, pairName } from './file-secrets.ts';

const tls: ServerTls = {
  mode: 'MUTUAL',
  certificates: {
    kind: 'files',
    files: [{ certificate: '/certs/a.crt', key: '/certs/a.key' }],
    roots: '/roots/ca.crt',
  },
  subjectAltNames: [],
  verifyCertificateSpki: [],
  verifyCertificateHash: [],
  caCrl: '',
  insecureSkipVerify: false,
  cipherSuites: [],
  ecdhCurves: [],
  alpnProtocols: [],
};

const plain = { agent: false };

test('a secret has the names of files, and the directory whose changes count', () => {
  expect(fileSecretsOf(tls, plain)).toEqual([
    {
      name: 'file-cert:/certs/a.crt~/certs/a.key',
      tlsCertificate: {
        certificateChain: { filename: '/certs/a.crt' },
        privateKey: { filename: '/certs/a.key' },
        watchedDirectory: { path: '/certs' },
      },
    },
    {
      name: 'file-root:/roots/ca.crt',
      validationContext: { trustedCa: { filename: '/roots/ca.crt' }, watchedDirectory: { path: '/roots' } },
    },
  ]);
});

test('a list of what is revoked is read with the authorities, not with the listener', () => {
  expect(fileSecretsOf({ ...tls, caCrl: '/crl/list' }, plain)[1]).toEqual({
    name: 'file-root:/roots/ca.crt~/crl/list',
    validationContext: { trustedCa: { filename: '/roots/ca.crt' }, crl: { filename: '/crl/list' } },
  });
});

test('an agent brings all files but the list of what is revoked', () => {
  expect(fileSecretsOf(tls, { agent: true })).toEqual([]);
  expect(fileSecretsOf({ ...tls, caCrl: '/crl/list' }, { agent: true })).toMatchObject([
    { name: 'file-root:/roots/ca.crt~/crl/list' },
  ]);
});

test('files of different names never make one secret', () => {
  const names = [pairName('/a~b', '/c'), pairName('/a', 'b~/c'), pairName('/a%7Eb', '/c'), pairName('/a', 'b%7E/c')];
  expect(new Set(names).size).toBe(names.length);
});
