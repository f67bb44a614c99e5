import { beforeEach, expect, test } from 'vitest';
import { OpenSsl } from '../identity/testing/openssl.ts';
import type { Credential } from '../model/credential.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { CredentialStore } from './credential-store.ts';

const KEY = 'Secret/edge/site';
const DAY = 24 * 3_600_000;

let clock: FakeClock;
let end: AbortController;
let written: (Credential | undefined)[];
let store: CredentialStore;

beforeEach(() => {
  [clock, end, written] = [new FakeClock(), new AbortController(), []];
  store = new CredentialStore({
    write: (key, credential) => {
      expect(key).toBe(KEY);
      written.push(credential);
    },
    clock,
    signal: end.signal,
  });
});

/** A Secret whose certificate is valid for this many days of the clock. */
function secret(days: number): Record<string, Buffer> {
  const openssl = new OpenSsl();
  openssl.write('empty.cnf', '[req]\ndistinguished_name = dn\n[dn]\n');
  const text = (date: Date): string => date.toISOString().replace(/[-T:]|\.\d+/g, '');
  const until = new Date(clock.date().getTime() + days * DAY);
  const from = new Date(Math.min(until.getTime(), clock.date().getTime()) - DAY);
  openssl.run('genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem');
  openssl.run('req -new -key key.pem -out a.csr -subj /CN=a -config empty.cnf');
  openssl.write(
    'ca.cnf',
    '[ca]\ndefault_ca = a\n[a]\ndatabase = index\nserial = serial\nnew_certs_dir = .\npolicy = p\n[p]\nCN = supplied\n',
  );
  openssl.write('index', '');
  openssl.write('serial', '01');
  openssl.run(
    `ca -batch -selfsign -md sha256 -config ca.cnf -keyfile key.pem -in a.csr -out crt.pem -notext -startdate ${text(from)} -enddate ${text(until)}`,
  );
  return { 'tls.crt': Buffer.from(openssl.read('crt.pem')), 'tls.key': Buffer.from(openssl.read('key.pem')) };
}

const certificateOf = (entries: Record<string, Buffer>): unknown => ({
  certificates: entries['tls.crt']!.toString(),
});

test('what was good stays in use when the Secret is broken, removed or cannot be read, and is told what is wrong', () => {
  const [good, renewed] = [secret(10), secret(20)];
  store.found(KEY, good);
  expect(written.at(-1)).toEqual({
    exists: true,
    pair: { content: expect.objectContaining(certificateOf(good)) as unknown },
    roots: { problem: 'has neither ca.crt nor cacert' },
  });
  store.found(KEY, { ...good, 'tls.key': Buffer.from('x') });
  const content: unknown = expect.objectContaining(certificateOf(good));
  expect(written.at(-1)).toMatchObject({
    exists: true,
    pair: { content, problem: 'must have one private key in PEM in tls.key' },
  });
  store.found(KEY, undefined);
  expect(written.at(-1)).toMatchObject({ exists: true, pair: { content, problem: 'does not exist' } });
  store.failed(KEY, 'cannot be read');
  expect(written.at(-1)).toMatchObject({ exists: true, pair: { content, problem: 'cannot be read' } });
  store.found(KEY, renewed);
  expect(written.at(-1)).toMatchObject({ pair: { content: certificateOf(renewed) } });
  expect(written.at(-1)?.pair).not.toHaveProperty('problem');
});

test('one that never was there does not exist', () => {
  store.found(KEY, undefined);
  expect(written).toEqual([
    { exists: false, pair: { problem: 'does not exist' }, roots: { problem: 'does not exist' } },
  ]);
  expect(store.has(KEY)).toBe(true);
});

test('the same again is not written', () => {
  const entries = secret(10);
  store.found(KEY, entries);
  store.found(KEY, { ...entries });
  expect(written).toHaveLength(1);
});

test('nothing is kept of what nobody needs any more', () => {
  const entries = secret(10);
  store.found(KEY, entries);
  store.forget(KEY);
  store.forget(KEY);
  expect(written.slice(1)).toEqual([undefined]);
  store.found(KEY, undefined);
  expect(written.at(-1)).toMatchObject({ exists: false });
});

test('a certificate that has expired, or does so while it is served, is served and told', async () => {
  const expired = secret(-1);
  store.found(KEY, expired);
  expect(written.at(-1)?.pair).toMatchObject({
    content: certificateOf(expired),
    problem: expect.stringMatching(/^has a certificate that expired at 20\d\d-/) as unknown,
  });
  store.found(KEY, secret(2));
  expect(written.at(-1)?.pair).not.toHaveProperty('problem');
  await clock.advance(2 * DAY + 3_600_000);
  expect(written.at(-1)?.pair).toHaveProperty('problem', expect.stringContaining('expired'));
});

test('it waits for nothing after the end', async () => {
  end.abort();
  await clock.settle();
  expect(clock.pending).toBe(0);
});
