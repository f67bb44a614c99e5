import { X509Certificate, createPrivateKey } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { Authority, type Unsigned } from './authority.ts';
import { type CertificateRequest, readRequest } from './certificate-request.ts';
import { type SigningMaterial, readMaterial } from './signing-material.ts';
import { OpenSsl } from './testing/openssl.ts';

const identity = 'spiffe://cluster.local/ns/shop/sa/cart';
const P256 = 'ec -pkeyopt ec_paramgen_curve:P-256';
const now = new Date();
const DAY = 24 * 60 * 60;

function materialOf(entries: Readonly<Record<string, string>>): SigningMaterial {
  const read = readMaterial(entries, now);
  if ('problem' in read) throw new Error(read.problem);
  return read.material;
}

async function requestOf(openssl: OpenSsl, key = P256): Promise<CertificateRequest> {
  const read = await readRequest(openssl.request(key, [`subjectAltName=URI:${identity}`]), identity);
  if ('problem' in read) throw new Error(read.problem);
  return read.request;
}

function chainOf<T extends object>(signed: T): Exclude<T, Unsigned> {
  if ('problem' in signed) throw new Error(String(signed.problem));
  return signed as Exclude<T, Unsigned>;
}

/** Time in the whole seconds of certificates. */
function after(seconds: number): Date {
  return new Date((Math.floor(now.getTime() / 1000) + seconds) * 1000);
}

test('a request that names no lifetime gets the one of the authority', async () => {
  const openssl = new OpenSsl();
  const material = materialOf(openssl.cacerts(P256));
  const request = await requestOf(openssl);
  const expiry = async (authority: Authority, seconds: number): Promise<Date> =>
    new X509Certificate(chainOf(await authority.sign(request, identity, seconds, now)).chain[0]!).validToDate;
  expect(await expiry(new Authority(material), 0)).toEqual(after(DAY));
  const longer = new Authority(material, 3 * DAY * 1000);
  expect(await expiry(longer, 0)).toEqual(after(3 * DAY));
  expect(await expiry(longer, DAY)).toEqual(after(DAY));
});

describe.each<[string, string, RegExp]>([
  ['RSA', 'rsa:2048', /Signature Algorithm: sha256WithRSAEncryption/],
  ['P-256', P256, /Signature Algorithm: ecdsa-with-SHA256/],
  ['P-384', 'ec -pkeyopt ec_paramgen_curve:P-384', /Signature Algorithm: ecdsa-with-SHA384/],
  ['P-521', 'ec -pkeyopt ec_paramgen_curve:P-521', /Signature Algorithm: ecdsa-with-SHA512/],
])('a CA with %s', (_, caKey, algorithm) => {
  test.each([
    ['an RSA', 'rsa:2048'],
    ['an EC', P256],
  ])('signs a certificate for %s key that openssl verifies', async (_, key) => {
    const openssl = new OpenSsl();
    const authority = new Authority(materialOf(openssl.cacerts(caKey)));
    const { chain } = chainOf(await authority.sign(await requestOf(openssl, key), identity, 3600, now));
    expect(chain).toHaveLength(3);
    openssl.write('leaf.pem', chain[0]!);
    openssl.write('intermediate.pem', chain[1]!);
    openssl.write('roots.pem', chain[2]!);
    const verify = 'verify -x509_strict -CAfile roots.pem -untrusted intermediate.pem';
    for (const purpose of ['sslserver', 'sslclient'])
      expect(openssl.run(`${verify} -purpose ${purpose} leaf.pem`)).toBe('leaf.pem: OK\n');
    expect(() => openssl.run('verify -CAfile roots.pem leaf.pem')).toThrow('unable to get local issuer');

    const text = openssl.run('x509 -in leaf.pem -noout -text');
    expect(text).toMatch(algorithm);
    expect(text).toMatch(/Version: 3/);
    expect(text).toMatch(/Issuer: O = Shop, CN = ca\n/);
    expect(text).toMatch(/Subject: *\n/);
    expect(text).toContain(`X509v3 Subject Alternative Name: critical\n                URI:${identity}\n`);
    expect(text).toMatch(/X509v3 Key Usage: critical\n\s+Digital Signature, Key Encipherment\n/);
    expect(text).toMatch(/Extended Key Usage: *\n\s+TLS Web Server Authentication, TLS Web Client Authentication\n/);
    expect(text).toMatch(/X509v3 Basic Constraints: critical\n\s+CA:FALSE\n/);
    const keyIdOfCa = /Subject Key Identifier: *\n\s+(\S+)/.exec(openssl.run('x509 -in ca.pem -noout -text'))![1]!;
    expect(text).toMatch(new RegExp(`Authority Key Identifier: *\\n\\s+(keyid:)?${keyIdOfCa}\\n`));
    expect(text).toMatch(/Subject Key Identifier: *\n\s+([0-9A-F]{2}:){19}[0-9A-F]{2}\n/);
    expect(new X509Certificate(chain[0]!).checkPrivateKey(createPrivateKey(openssl.read('request.key')))).toBe(true);
  });
});

describe('a certificate', () => {
  const seconds = (pem: string): [Date, Date] => {
    const { validFromDate, validToDate } = new X509Certificate(pem);
    return [validFromDate, validToDate];
  };

  test('has a serial number of its own, which is positive and has 128 random bits', async () => {
    const openssl = new OpenSsl();
    const authority = new Authority(materialOf(openssl.cacerts(P256)));
    const request = await requestOf(openssl);
    const serials = new Set<string>();
    for (let i = 0; i < 50; i++) {
      const { chain } = chainOf(await authority.sign(request, identity, 0, now));
      serials.add(new X509Certificate(chain[0]!).serialNumber);
    }
    expect(serials.size).toBe(50);
    for (const serial of serials) expect(serial).toMatch(/^01[0-9A-F]{32}$/);
    const random = [...serials].map((serial) => BigInt(`0x${serial.slice(2)}`));
    expect(random.reduce((all, bits) => all | bits, 0n)).toBe(2n ** 128n - 1n);
    expect(random.reduce((all, bits) => all & bits, 2n ** 128n - 1n)).toBe(0n);
  });

  test.each([
    ['60 s', 60, after(60)],
    ['24 hours if nothing is asked', 0, after(DAY)],
    ['24 hours if less than nothing is asked', -5, after(DAY)],
    ['until the CA expires, if more is asked', 89 * DAY, undefined],
    ['until the CA expires, at most 90 days', 90 * DAY, undefined],
  ])('is valid from 2 minutes ago, for %s', async (_, ttl, end) => {
    const openssl = new OpenSsl();
    const material = materialOf(openssl.cacerts(P256));
    const { chain } = chainOf(await new Authority(material).sign(await requestOf(openssl), identity, ttl, now));
    const [, endOfCa] = seconds(openssl.read('ca.pem'));
    expect(seconds(chain[0]!)).toEqual([after(-120), end ?? endOfCa]);
  });

  test('ends with the intermediate or the root that ends first', async () => {
    const openssl = new OpenSsl();
    const entries = openssl.cacerts(P256);
    openssl.run('x509 -req -in ca.csr -CA root.pem -CAkey root.key -days 40 -extfile ca.ext -out ca.pem');
    const material = materialOf({ ...entries, 'ca-cert.pem': openssl.read('ca.pem') });
    const { chain } = chainOf(await new Authority(material).sign(await requestOf(openssl), identity, 90 * DAY, now));
    expect(seconds(chain[0]!)[1]).toEqual(seconds(openssl.read('root.pem'))[1]);
  });

  test('is refused for more than 90 days', async () => {
    const openssl = new OpenSsl();
    const authority = new Authority(materialOf(openssl.cacerts(P256)));
    const request = await requestOf(openssl);
    for (const ttl of [90 * DAY + 1, Number.MAX_SAFE_INTEGER, Infinity])
      expect(await authority.sign(request, identity, ttl, now)).toMatchObject({ reason: 'Lifetime' });
  });

  test('is refused when the CA has expired', async () => {
    const openssl = new OpenSsl();
    const authority = new Authority(materialOf(openssl.cacerts(P256)));
    const signed = await authority.sign(await requestOf(openssl), identity, 60, after(21 * DAY));
    expect(signed).toMatchObject({ reason: 'Expired', problem: expect.stringContaining('CA expired at') as string });
  });

  test('comes with all roots in the last text, and without an intermediate if the CA is a root', async () => {
    const openssl = new OpenSsl();
    openssl.cacerts(P256);
    const other = new OpenSsl().cacerts(P256)['root-cert.pem']!;
    const own = openssl.read('root.pem');
    const material = materialOf({
      'ca-cert.pem': own,
      'ca-key.pem': openssl.read('root.key'),
      'root-cert.pem': other + own,
    });
    const { chain } = chainOf(await new Authority(material).sign(await requestOf(openssl), identity, 60, now));
    expect(chain.slice(1)).toEqual([other + own]);
    expect(chain.every((pem) => pem.endsWith('-----END CERTIFICATE-----\n'))).toBe(true);
  });

  test('names its issuer byte by byte as the CA names itself', async () => {
    const openssl = new OpenSsl();
    openssl.write(
      't61.cnf',
      '[req]\ndistinguished_name = dn\nprompt = no\nstring_mask = pkix\nutf8 = yes\n[dn]\nO = Ä shop\n+OU = a\nCN = x\nemailAddress = a@b\n',
    );
    openssl.run(
      `req -x509 -newkey ${P256} -noenc -keyout t61.key -out t61.pem -config t61.cnf -addext basicConstraints=critical,CA:true`,
    );
    const material = materialOf({ 'ca-cert.pem': openssl.read('t61.pem'), 'ca-key.pem': openssl.read('t61.key') });
    const { chain } = chainOf(await new Authority(material).sign(await requestOf(openssl), identity, 60, now));
    openssl.write('leaf.pem', chain[0]!);
    expect(openssl.run('verify -CAfile t61.pem leaf.pem')).toContain('OK');
    const name = (file: string, of: string) =>
      openssl.run(`x509 -in ${file} -noout -${of} -nameopt dump_all,dump_der,oid,sep_multiline`).replace(/^\w+=/, '');
    expect(name('leaf.pem', 'issuer')).toBe(name('t61.pem', 'subject'));
  });
});

test('the control plane gets a P-256 key and a certificate for its DNS names', async () => {
  const openssl = new OpenSsl();
  const authority = new Authority(materialOf(openssl.cacerts('rsa:2048')));
  const { chain, key } = chainOf(await authority.signServer(['istiod.istio-system.svc', 'istiod'], 365 * DAY, now));
  openssl.write('leaf.pem', chain[0]!);
  openssl.write('intermediate.pem', chain[1]!);
  const verify = 'verify -x509_strict -purpose sslserver -CAfile root.pem -untrusted intermediate.pem -verify_hostname';
  expect(openssl.run(`${verify} istiod.istio-system.svc leaf.pem`)).toContain('OK');
  expect(() => openssl.run(`${verify} other.istio-system.svc leaf.pem`)).toThrow('hostname mismatch');
  const certificate = new X509Certificate(chain[0]!);
  expect(certificate.checkPrivateKey(createPrivateKey(key))).toBe(true);
  expect(certificate.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' });
  expect(certificate.validToDate).toEqual(new X509Certificate(openssl.read('ca.pem')).validToDate);
});
