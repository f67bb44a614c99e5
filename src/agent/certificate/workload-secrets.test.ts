import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { expect, onTestFinished, test, vi } from 'vitest';
import { WatchedFiles } from './watched-files.ts';
import { workloadSecrets } from './workload-secrets.ts';

function start(roots = '') {
  const [directory, end] = [mkdtempSync(join(tmpdir(), 'fl-secrets-')), new AbortController()];
  onTestFinished(() => {
    end.abort();
    rmSync(directory, { recursive: true, force: true });
  });
  const none = { current: undefined, roots, onChange: () => () => {} };
  const warnings: string[] = [];
  const log = { warn: (message: string) => void warnings.push(message) };
  const secrets = workloadSecrets(none, join(directory, 'crl.pem'), log, end.signal);
  /** The secret as it is now; or why there is none. */
  const get = async (name: string): Promise<string | undefined> => {
    try {
      const watch = secrets.watch(name, () => {});
      await secrets.look();
      const secret = watch.current?.encode();
      watch.close();
      return secret && Buffer.from(secret).toString('latin1');
    } catch (error) {
      return String(error);
    }
  };
  return { directory, secrets, get, warnings };
}

test('a path that a DestinationRule names may lead to a pipe, a device or a file without an end', async () => {
  const { directory, get } = start();
  const [pipe, large] = [join(directory, 'pipe'), join(directory, 'large')];
  execFileSync('mkfifo', [pipe]);
  writeFileSync(large, rootCertificates[0]!);
  truncateSync(large, 2 ** 40);
  const link = (target: string): string => {
    const path = join(directory, target.replaceAll('/', '-'));
    symlinkSync(target, path);
    return path;
  };
  for (const [path, problem] of [
    [pipe, `${pipe} is not read: it is not a plain file`],
    [directory, `${directory} is not read: it is not a plain file`],
    [large, `${large} is not read: it has ${2 ** 40} bytes, and the limit is 4194304`],
    ['/dev/zero', '/dev/zero is not read: it is in /dev'],
    ['/proc/self/pagemap', '/proc/self/pagemap is not read: it is in /proc'],
    ['/etc/..//proc/./self/pagemap', 'is not read: it is /proc/self/pagemap, in /proc'],
    [link('/dev/zero'), 'is not read: it is /dev/zero, in /dev'],
    [link('/proc/self/pagemap'), '/pagemap, in /proc'],
    [link('/sys/kernel/notes'), 'is not read: it is /sys/kernel/notes, in /sys'],
  ] as const) {
    expect(await get(`file-root:${path}`)).toContain(problem);
    expect(await get(`file-cert:${path}~${path}`)).toContain(problem);
  }
  expect(await get(`file-cert:/a~/b~/c`)).toContain('does not name a certificate and its key');
});

test('a file is read and parsed once, however many names and links lead to it', async () => {
  const { directory } = start();
  writeFileSync(join(directory, 'roots.pem'), rootCertificates[0]!);
  symlinkSync('.', join(directory, 'link'));
  const files = new WatchedFiles(AbortSignal.abort());
  const changes = vi.fn();
  const watches = Array.from({ length: 900 }, (_, i) =>
    files.watch(`${directory}/${'link/'.repeat(i % 30)}${'./'.repeat(i)}roots.pem`, changes),
  );
  await files.look();
  const states = new Set(watches.map(({ state }) => state));
  expect([...states]).toMatchObject([{ roots: rootCertificates[0] }]);
  await files.look();
  expect(new Set(watches.map(({ state }) => state))).toEqual(states);
  expect(changes).toHaveBeenCalledTimes(watches.length);
});

test('a mounted Secret is read again when its files change, the certificate together with its key', async () => {
  const { directory, secrets } = start();
  const write = (data: string, texts: readonly string[]): void => {
    mkdirSync(join(directory, data));
    for (const [i, name] of ['tls.crt', 'tls.key'].entries()) writeFileSync(join(directory, data, name), texts[i]!);
    symlinkSync(data, join(directory, `${data}.link`));
    renameSync(join(directory, `${data}.link`), join(directory, '..data'));
  };
  write('..1', ['chain 1', 'key 1']);
  for (const name of ['tls.crt', 'tls.key']) symlinkSync(`..data/${name}`, join(directory, name));
  const seen: (readonly string[] | undefined)[] = [];
  const watch = secrets.watch(`file-cert:${directory}/tls.crt~${directory}/tls.key`, () =>
    seen.push(watch.current?.parts),
  );
  await secrets.look();
  write('..2', ['chain 2', 'key 2']);
  await secrets.look();
  rmSync(join(directory, '..data'));
  await secrets.look();
  const pair = (i: number): string[] => [`chain ${i}\n`, `key ${i}\n`];
  expect(seen).toEqual([pair(1), pair(1), pair(2), pair(2), undefined, undefined]);
});

test('roots come without what is not a certificate', async () => {
  const { directory, get } = start();
  const file = join(directory, 'roots.pem');
  writeFileSync(file, `${rootCertificates[0]}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`);
  expect((await get(`file-root:${file}`))?.match(/BEGIN CERTIFICATE/g)).toHaveLength(1);
});

test('the roots of the mesh come with its revocation list, if there is one', async () => {
  const { directory, get } = start(rootCertificates[0]!);
  const rootsOfMesh = async () => (await get('ROOTCA'))!;
  expect(await rootsOfMesh()).not.toContain('X509 CRL');
  writeFileSync(join(directory, 'crl.pem'), '-----BEGIN X509 CRL-----');
  expect(await rootsOfMesh()).toContain('BEGIN X509 CRL');
});

test('a revocation list that becomes one that is not read stays as it was, and that is said once', async () => {
  const { directory, get, warnings } = start(rootCertificates[0]!);
  const file = join(directory, 'crl.pem');
  expect(await get('ROOTCA')).not.toContain('X509 CRL');
  writeFileSync(file, '-----BEGIN X509 CRL-----');
  expect(await get('ROOTCA')).toContain('BEGIN X509 CRL');
  truncateSync(file, 2 ** 40);
  for (let look = 0; look < 2; look++) expect(await get('ROOTCA')).toContain('BEGIN X509 CRL');
  expect(warnings).toEqual(['The revocation list is not read; the last one stays']);
  rmSync(file);
  expect(await get('ROOTCA')).not.toContain('X509 CRL');
});
