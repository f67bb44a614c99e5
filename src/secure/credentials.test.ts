import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { selfSigned } from '../identity/self-signed.ts';
import { readMaterial } from '../identity/signing-material.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { Credentials } from './credentials.ts';

/** A wall clock that is set, while the other one goes on. */
class SetClock extends FakeClock {
  set = 0;

  override date(): Date {
    return new Date(super.date().getTime() + this.set);
  }
}

const HOUR = 3_600_000;

test.each([
  ['forward, as after a machine stood still', 30 * HOUR],
  ['back', -2 * HOUR],
])('the certificate of the secure port is good within a minute of a clock that jumps %s', async (_, jump) => {
  const [clock, stopping] = [new SetClock(), new AbortController()];
  const presented: X509Certificate[] = [];
  const credentials = new Credentials({
    ...{ clusterId: 'Kubernetes', aliases: {}, own: undefined, others: { issuerOf: () => undefined } },
    ...{ trustDomainOf: () => 'cluster.local', names: ['fairlead.mesh.svc'] },
    ...{
      clock,
      signal: stopping.signal,
      allow: async () => undefined,
      log: { warn: () => undefined },
      audit: () => undefined,
    },
    present: ({ certificate }) => void presented.push(new X509Certificate(certificate)),
  });
  const read = readMaterial(await selfSigned('cluster.local', new Date(Date.UTC(2029, 0, 1))), clock.date());
  if ('problem' in read) throw new Error(read.problem);
  await credentials.use(read.material);
  await clock.advance(HOUR);
  expect(presented).toHaveLength(1);
  clock.set = jump;
  await clock.advance(60_000);
  await expect.poll(() => presented.length).toBe(2);
  const { validFromDate, validToDate } = presented[1]!;
  expect(validFromDate.getTime()).toBeLessThanOrEqual(clock.date().getTime());
  expect(validToDate.getTime()).toBeGreaterThan(clock.date().getTime());
  stopping.abort();
  expect(clock.pending).toBe(0);
});

test('while the wall clock is beyond the end of the authority, that is logged once, and again if it comes back', async () => {
  const [clock, stopping] = [new SetClock(), new AbortController()];
  const problems: unknown[] = [];
  const looks: number[] = [];
  const credentials = new Credentials({
    ...{ clusterId: 'Kubernetes', aliases: {}, own: undefined, others: { issuerOf: () => undefined } },
    ...{ trustDomainOf: () => 'cluster.local', names: ['fairlead.mesh.svc'] },
    ...{ clock, signal: stopping.signal, allow: async () => undefined, audit: () => undefined },
    log: { warn: (_, fields) => void problems.push(fields) },
    present: () => void looks.push(clock.now()),
  });
  const read = readMaterial(await selfSigned('cluster.local', new Date(Date.UTC(2029, 0, 1))), clock.date());
  if ('problem' in read) throw new Error(read.problem);
  await credentials.use(read.material);
  const expired = { problem: expect.stringMatching(/^certificates of the CA expired/) as string };
  for (const times of [1, 2]) {
    clock.set = 50 * 365 * 24 * HOUR;
    for (let minute = 0; minute < 5; minute++) {
      await clock.advance(60_000);
      await expect.poll(() => problems.length).toBe(times);
    }
    expect(problems).toEqual(Array.from({ length: times }, () => expired));
    clock.set = 0;
    await clock.advance(60_000);
    await expect.poll(() => looks.length).toBe(times + 1);
  }
  stopping.abort();
});
