import { X509Certificate } from 'node:crypto';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { SkippingClock } from '../../../test/features/skipping-clock.ts';
import { Authority } from '../../identity/authority.ts';
import { readRequest } from '../../identity/certificate-request.ts';
import { selfSigned } from '../../identity/self-signed.ts';
import { readMaterial } from '../../identity/signing-material.ts';
import { createAgentLog } from '../log.ts';
import { newKey } from './key.ts';
import type { Certificate } from './verdict.ts';
import { WorkloadCertificate } from './workload-certificate.ts';

const IDENTITY = 'spiffe://cluster.local/ns/shop/sa/reviews';
const HOUR = 3_600_000;

let authority: Authority;
let roots: string;
beforeAll(async () => {
  const entries = await selfSigned('cluster.local', new Date());
  const read = readMaterial(entries, new Date());
  if ('problem' in read) throw new Error(read.problem);
  authority = new Authority(read.material);
  roots = read.material.root;
});

/** A day's certificate, as the control plane signs it. */
async function signed(csr: string, date: Date, identity = IDENTITY, seconds = 24 * 3600): Promise<readonly string[]> {
  const read = await readRequest(csr, IDENTITY);
  if ('problem' in read) throw new Error(read.problem);
  const answer = await authority.sign(read.request, identity, seconds, date);
  if ('problem' in answer) throw new Error(answer.problem);
  return answer.chain;
}

function start({ random = 0.5, sign = signed }: { random?: number; sign?: typeof signed } = {}) {
  const clock = new SkippingClock();
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const lines: string[] = [];
  const saved: Certificate[] = [];
  let requests = 0;
  const certificate = new WorkloadCertificate({
    identity: IDENTITY,
    sign: (csr) => {
      requests++;
      return sign(csr, clock.date());
    },
    save: (each) => void saved.push(each),
    renewAfter: 0.5,
    clock,
    random: () => random,
    log: createAgentLog({ level: 'info', format: 'text' }, (line) => void lines.push(line)),
    signal: end.signal,
  });
  return { clock, certificate, lines, saved, requests: () => requests };
}

const serialOf = ({ current }: WorkloadCertificate): string => new X509Certificate(current!.chain).serialNumber;

test('a certificate is renewed at half of its life, and the old one is good until then', async () => {
  const { clock, certificate, saved, requests } = start();
  void certificate.keep();
  await certificate.first();
  const first = serialOf(certificate);
  for (let hour = 0; hour < 11; hour++) clock.skip(HOUR);
  await expect.poll(() => requests()).toBe(1);
  clock.skip(HOUR);
  await expect.poll(() => saved.length).toBe(2);
  expect(serialOf(certificate)).not.toBe(first);
  expect(certificate.problem).toBe(undefined);
});

test.each([
  ['short ones', (csr: string, date: Date) => signed(csr, date, IDENTITY, 20)],
  ['with a clock that is ahead', (csr: string, date: Date) => signed(csr, new Date(date.getTime() - 13 * HOUR))],
])('the life of a certificate begins when it is received: %s', async (_, sign) => {
  const { clock, certificate, saved, requests } = start({ sign });
  void certificate.keep();
  await certificate.first();
  clock.skip(4_000);
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(requests()).toBe(1);
  clock.skip(6 * HOUR);
  await expect.poll(() => saved.length).toBe(2);
});

test('workloads that started together renew at different times', async () => {
  const [early, late] = [start({ random: 0 }), start({ random: 0.99 })];
  for (const each of [early, late]) {
    void each.certificate.keep();
    await each.certificate.first();
    for (let minutes = 0; minutes < 11 * 60 + 50; minutes += 10) each.clock.skip(600_000);
  }
  await expect.poll(() => early.requests()).toBe(2);
  expect(late.requests()).toBe(1);
});

test('while the control plane is away, the certificate stays, and each reason is said once', async () => {
  let away = false;
  const { clock, certificate, lines, requests } = start({
    sign: (csr, date) => (away ? Promise.reject(new Error('connection refused')) : signed(csr, date)),
  });
  void certificate.keep();
  await certificate.first();
  const first = serialOf(certificate);
  away = true;
  clock.skip(13 * HOUR);
  await expect.poll(() => requests()).toBeGreaterThan(1);
  for (let minute = 0; minute < 60; minute++) {
    clock.skip(60_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(lines.filter((line) => line.includes('connection refused'))).toHaveLength(1);
  expect([certificate.problem, serialOf(certificate)]).toEqual([undefined, first]);
  away = false;
  clock.skip(300_000);
  await expect.poll(() => serialOf(certificate)).not.toBe(first);
});

test('a certificate for somebody else, or for another time, is not used, and the reason says what to do', async () => {
  const other = start({ sign: (csr, date) => signed(csr, date, 'spiffe://other.example/ns/shop/sa/reviews') });
  void other.certificate.keep();
  await expect
    .poll(() => other.certificate.problem)
    .toBe(
      `the certificate is for URI:spiffe://other.example/ns/shop/sa/reviews instead of ${IDENTITY}; check the trust domain`,
    );
  // The clock of this machine is behind by an hour.
  const behind = start({ sign: (csr, date) => signed(csr, new Date(date.getTime() + HOUR)) });
  void behind.certificate.keep();
  await expect
    .poll(() => behind.certificate.problem)
    .toMatch(/^the certificate is good from .* but the clock of this machine says/);
});

test('a saved certificate is used while it is good', async () => {
  const { certificate, saved } = start();
  void certificate.keep();
  await certificate.first();
  const again = start();
  again.certificate.resume(saved[0]!);
  expect(serialOf(again.certificate)).toBe(serialOf(certificate));
  const late = start();
  late.clock.skip(25 * HOUR);
  late.certificate.resume(saved[0]!);
  expect(late.certificate.current).toBe(undefined);
  const broken = start();
  broken.certificate.resume({ chain: 'x', key: 'y', roots: 'z' });
  expect(broken.certificate.current).toBe(undefined);
  const { key } = await newKey(IDENTITY);
  broken.certificate.resume({ ...saved[0]!, key });
  expect(broken.certificate.current).toBe(undefined);
});

test.each([
  ['roots', 'the root certificates cannot be read'],
  ['chain', 'the certificate chain cannot be read'],
  ['key', 'the certificate is for another key'],
] as const)(
  'of a saved certificate whose %s are cut off nothing is used, and a new one is requested',
  async (part, reason) => {
    const first = start();
    void first.certificate.keep();
    await first.certificate.first();
    const [saved] = first.saved;
    for (const length of [0, 1, 40, saved![part].length - 30]) {
      const again = start();
      again.certificate.resume({ ...saved!, [part]: saved![part].slice(0, length) });
      expect(again.certificate.current).toBe(undefined);
      expect(again.lines.join()).toContain(reason);
      void again.certificate.keep();
      await again.certificate.first();
      expect(again.requests()).toBe(1);
      // The roots of the mesh come from the control plane meanwhile.
      await again.certificate.trust([roots]);
      expect(again.certificate.roots).toBe(roots);
    }
  },
);

test('what cannot be read of an answer is not used, and requested again', async () => {
  const answers = [
    (chain: readonly string[]) => chain.with(-1, 'nothing'),
    (chain: readonly string[]) => chain.with(0, chain[0]!.slice(0, 100)),
  ];
  for (const spoil of answers) {
    let spoilt = true;
    const { certificate, clock, requests } = start({
      sign: async (csr, date) => (spoilt ? spoil(await signed(csr, date)) : signed(csr, date)),
    });
    void certificate.keep();
    await expect.poll(() => certificate.problem).toMatch(/cannot be read$/);
    expect(certificate.roots).toBe('');
    spoilt = false;
    clock.skip(1_000);
    await certificate.first();
    expect(requests()).toBe(2);
  }
});

test('a trust bundle that cannot be read is rejected, and the one before stays', async () => {
  const { certificate, requests } = start();
  void certificate.keep();
  await certificate.first();
  const { 'root-cert.pem': another } = await selfSigned('cluster.local', new Date());
  await certificate.trust([roots, another]);
  const before = certificate.roots;
  for (const broken of [another.slice(0, 200), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'])
    await expect(certificate.trust([roots, broken])).rejects.toThrow('the trust bundle is not used');
  expect([certificate.roots, requests()]).toEqual([before, 2]);
});

test('roots that come into force beside the old one are trusted at once, and a certificate is requested that has them', async () => {
  const { certificate, requests } = start();
  void certificate.keep();
  await certificate.first();
  await certificate.trust([roots]);
  expect(requests()).toBe(1);
  const { 'root-cert.pem': another } = await selfSigned('cluster.local', new Date());
  await certificate.trust([roots, another]);
  expect(requests()).toBe(2);
  expect(certificate.roots.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
});

test('new roots are not acknowledged before there is a certificate from after them', async () => {
  let away = false;
  const { clock, certificate, requests } = start({
    sign: (csr, date) => (away ? Promise.reject(new Error('unavailable')) : signed(csr, date)),
  });
  void certificate.keep();
  await certificate.first();
  away = true;
  const { 'root-cert.pem': another } = await selfSigned('cluster.local', new Date());
  let acknowledged = 0;
  // The control plane says it again on the next stream.
  for (let stream = 0; stream < 2; stream++) void certificate.trust([roots, another]).then(() => acknowledged++);
  await expect.poll(() => requests()).toBe(2);
  expect(certificate.roots.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
  expect(acknowledged).toBe(0);
  away = false;
  clock.skip(10_000);
  await expect.poll(() => acknowledged).toBe(2);
  expect(requests()).toBe(3);
});
