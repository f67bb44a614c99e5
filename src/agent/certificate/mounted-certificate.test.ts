import { X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { createCa } from '../../../test/peers/mesh-ca.ts';
import { createAgentLog } from '../log.ts';
import { MountedCertificate } from './mounted-certificate.ts';
import { NAMES } from './files.ts';
import type { Certificate } from './verdict.ts';

let [one, two, other] = [] as Certificate[];
beforeAll(async () => {
  const [ca, another] = [await createCa('cluster.local'), await createCa('other.example')];
  const made = async (from: typeof ca): Promise<Certificate> => {
    const { certificate, key, roots } = await from.certify('shop', 'reviews');
    return { chain: certificate, key, roots };
  };
  [one, two, other] = [await made(ca), await made(ca), await made(another)];
});

/** A directory as Kubernetes mounts a Secret: all of its files change at once. */
function start() {
  const [directory, end] = [mkdtempSync(join(tmpdir(), 'fl-mounted-')), new AbortController()];
  onTestFinished(() => {
    end.abort();
    rmSync(directory, { recursive: true, force: true });
  });
  for (const name of Object.values(NAMES)) symlinkSync(`..data/${name}`, join(directory, name));
  let version = 0;
  const mount = (texts: Partial<Certificate>): void => {
    const data = `..${version++}`;
    mkdirSync(join(directory, data));
    for (const part of ['chain', 'key', 'roots'] as const)
      if (texts[part] !== undefined) writeFileSync(join(directory, data, NAMES[part]), texts[part]);
    symlinkSync(data, join(directory, `${data}.link`));
    renameSync(join(directory, `${data}.link`), join(directory, '..data'));
  };
  const [lines, saved]: [string[], Certificate[]] = [[], []];
  const open = () =>
    new MountedCertificate({
      directory,
      trusted: [],
      save: (each) => void saved.push(each),
      log: createAgentLog({ level: 'warn', format: 'json' }, (line) => void lines.push(line)),
      signal: end.signal,
    });
  return { mount, open, lines, saved, directory };
}

const serialOf = (of: Certificate | undefined): string => new X509Certificate(of!.chain).serialNumber;

test('a certificate that is mounted is used, and again after each change', async () => {
  const { mount, open, saved } = start();
  mount(one!);
  const certificate = open();
  await certificate.first();
  expect(serialOf(certificate.current)).toBe(serialOf(one));
  expect(certificate.roots.trim()).toBe(one!.roots.trim());
  let changes = 0;
  certificate.onChange(() => changes++);
  mount(two!);
  await certificate.look();
  expect(serialOf(certificate.current)).toBe(serialOf(two));
  expect([changes, saved.length]).toEqual([1, 2]);
  // It is the same.
  mount(two!);
  await certificate.look();
  expect(changes).toBe(1);
});

test('files that do not belong together leave the last good ones in use, and that is said once', async () => {
  const { mount, open, lines, directory } = start();
  mount(one!);
  const certificate = open();
  await certificate.first();
  for (const [texts, reason] of [
    [{ ...two!, key: one!.key }, 'the certificate is for another key'],
    [{ ...two!, chain: 'half' }, 'the certificate chain cannot be read'],
    [{ ...two!, roots: 'half' }, 'the root certificates cannot be read'],
    [{ chain: two!.chain, key: two!.key }, `there is no ${directory}/root-cert.pem`],
  ] as const) {
    lines.length = 0;
    mount(texts);
    await certificate.look();
    await certificate.look();
    expect(serialOf(certificate.current)).toBe(serialOf(one));
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { msg: 'The mounted certificate is not used; the last one stays', reason },
    ]);
    mount(one!);
    await certificate.look();
  }
});

test('a certificate that is mounted later is waited for, and until then the reason says which file is missing', async () => {
  const { mount, open, directory } = start();
  const certificate = open();
  await certificate.look();
  expect(certificate.problem).toBe(`there is no ${directory}/cert-chain.pem`);
  const first = certificate.first();
  mount(one!);
  await certificate.look();
  await first;
  expect(certificate.problem).toBe(undefined);
});

test('roots of the control plane are trusted besides those that are mounted, if they can be read', async () => {
  const { mount, open } = start();
  mount(one!);
  const certificate = open();
  await certificate.first();
  await certificate.trust([other!.roots]);
  expect(certificate.roots).toContain(other!.roots.trim());
  expect(certificate.roots).toContain(one!.roots.trim());
  await expect(certificate.trust(['half'])).rejects.toThrow('the trust bundle is not used');
  expect(certificate.roots).toContain(other!.roots.trim());
});
