import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { Authority } from './authority.ts';
import { renewed, selfSigned } from './self-signed.ts';
import { type SigningMaterial, readMaterial } from './signing-material.ts';
import { OpenSsl } from './testing/openssl.ts';

const now = new Date();
const YEAR = 365 * 24 * 60 * 60 * 1000;

function read(entries: Readonly<Record<string, string>>, at = now): SigningMaterial {
  const result = readMaterial(entries, at);
  if ('problem' in result) throw new Error(result.problem);
  return result.material;
}

test("a new root has the entries and the form of Istio's own", async () => {
  const entries = await selfSigned('my.domain', now);
  const certificate = entries['ca-cert.pem'];
  expect(entries).toEqual({
    'ca-cert.pem': certificate,
    'ca-key.pem': expect.stringMatching(/^-----BEGIN RSA PRIVATE KEY-----\n/) as string,
    'root-cert.pem': certificate,
    'cert-chain.pem': '',
    'key.pem': '',
  });
  const openssl = new OpenSsl();
  openssl.write('root.pem', certificate);
  const text = openssl.run('x509 -in root.pem -noout -text');
  expect(text).toMatch(/Issuer: O = my\.domain\n/);
  expect(text).toMatch(/Subject: O = my\.domain\n/);
  expect(text).toMatch(/Public-Key: \(2048 bit\)/);
  expect(text).toMatch(/Signature Algorithm: sha256WithRSAEncryption/);
  expect(text).toMatch(/Basic Constraints: critical\n\s+CA:TRUE\n/);
  expect(text).toMatch(/Key Usage: critical\n\s+Certificate Sign, CRL Sign\n/);
  expect(text).not.toContain('Extended Key Usage');
  expect(openssl.run('verify -x509_strict -CAfile root.pem root.pem')).toContain('OK');
  const { validFromDate, validToDate } = new X509Certificate(certificate);
  expect(validToDate.getTime()).toBe(Math.floor((now.getTime() + 10 * YEAR) / 1000) * 1000);
  expect(validFromDate.getTime()).toBe(Math.floor(now.getTime() / 1000) * 1000 - 120_000);
  expect(read(entries)).toMatchObject({ certificate, intermediates: [], roots: [certificate] });
});

test('two new roots have nothing in common', async () => {
  const [a, b] = await Promise.all([selfSigned('td', now), selfSigned('td', now)]);
  expect(a['ca-key.pem']).not.toBe(b['ca-key.pem']);
  expect(new X509Certificate(a['ca-cert.pem']).serialNumber).not.toBe(
    new X509Certificate(b['ca-cert.pem']).serialNumber,
  );
});

test.each<[string, (openssl: OpenSsl) => Promise<Readonly<Record<string, string>>>]>([
  ['of ours', () => selfSigned('cluster.local', now)],
  ['of another program, with another form of key identifier', (openssl) => Promise.resolve(foreign(openssl, 'hash'))],
  ['without a key identifier', (openssl) => Promise.resolve(foreign(openssl, 'none'))],
])('a root %s is renewed with its key, and verifies what the old one signed, and the reverse', async (_, make) => {
  const openssl = new OpenSsl();
  const old = read(await make(openssl));
  const later = new Date(now.getTime() + YEAR);
  const entries = await renewed(old, later);
  const fresh = read(entries, later);
  expect(fresh.expires.getTime()).toBeGreaterThan(later.getTime() + 9.9 * YEAR);
  expect(fresh.key.equals(old.key)).toBe(true);
  expect(new X509Certificate(fresh.certificate).serialNumber).not.toBe(
    new X509Certificate(old.certificate).serialNumber,
  );
  openssl.write('old.pem', old.certificate);
  openssl.write('new.pem', fresh.certificate);
  const at = Math.floor(later.getTime() / 1000);
  for (const [signer, root] of [
    [old, 'new.pem'],
    [fresh, 'old.pem'],
    [fresh, 'new.pem'],
  ] as const) {
    const signed = await new Authority(signer).signServer(['istiod'], 3600, later);
    if ('problem' in signed) throw new Error(signed.problem);
    openssl.write('leaf.pem', signed.chain[0]!);
    expect(openssl.run(`verify -attime ${at} -CAfile ${root} leaf.pem`)).toContain('OK');
  }
});

function foreign(openssl: OpenSsl, identifier: string): Record<string, string> {
  openssl.write('f.cnf', '[req]\ndistinguished_name = dn\n[dn]\n');
  openssl.run(
    `req -x509 -newkey rsa:2048 -noenc -keyout f.key -out f.pem -days 3650 -subj /O=other/OU=é+CN=x -utf8 -config f.cnf -addext basicConstraints=critical,CA:true -addext subjectKeyIdentifier=${identifier} -addext authorityKeyIdentifier=none`,
  );
  return { 'ca-cert.pem': openssl.read('f.pem'), 'ca-key.pem': openssl.read('f.key') };
}
