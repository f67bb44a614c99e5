import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { workloadSecrets } from './workload-secrets.ts';

function start(roots = '') {
  const [directory, end] = [mkdtempSync(join(tmpdir(), 'fl-secrets-')), new AbortController()];
  onTestFinished(() => {
    end.abort();
    rmSync(directory, { recursive: true, force: true });
  });
  const none = { current: undefined, roots, onChange: () => () => {} };
  return { directory, secrets: workloadSecrets(none, join(directory, 'crl.pem'), end.signal) };
}

test('a path that a DestinationRule names may lead to a pipe, a device or a file without an end', () => {
  const { directory, secrets } = start();
  const [pipe, large] = [join(directory, 'pipe'), join(directory, 'large')];
  execFileSync('mkfifo', [pipe]);
  writeFileSync(large, rootCertificates[0]!);
  truncateSync(large, 2 ** 40);
  for (const path of [pipe, large, '/dev/zero', directory]) {
    expect(secrets.get(`file-root:${path}`)).toBeUndefined();
    expect(secrets.get(`file-cert:${path}~${path}`)).toBeUndefined();
  }
});

test('roots come without what is not a certificate', () => {
  const { directory, secrets } = start();
  const file = join(directory, 'roots.pem');
  writeFileSync(file, `${rootCertificates[0]}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`);
  const secret = Buffer.from(secrets.get(`file-root:${file}`)!).toString('latin1');
  expect(secret.match(/BEGIN CERTIFICATE/g)).toHaveLength(1);
});

test('the roots of the mesh come with its revocation list, if there is one', () => {
  const { directory, secrets } = start(rootCertificates[0]!);
  const rootsOfMesh = (): string => Buffer.from(secrets.get('ROOTCA')!).toString('latin1');
  expect(rootsOfMesh()).not.toContain('X509 CRL');
  writeFileSync(join(directory, 'crl.pem'), '-----BEGIN X509 CRL-----');
  expect(rootsOfMesh()).toContain('BEGIN X509 CRL');
});
