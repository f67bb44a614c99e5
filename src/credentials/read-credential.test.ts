import { X509Certificate, createPrivateKey } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { OpenSsl } from '../identity/testing/openssl.ts';
import { readCredential } from './read-credential.ts';

const P256 = 'ec -pkeyopt ec_paramgen_curve:P-256';

/** PEM of a self-signed certificate and its key. */
function pairOf(newkey: string): { readonly certificate: string; readonly key: string } {
  const openssl = new OpenSsl();
  openssl.write('empty.cnf', '[req]\ndistinguished_name = dn\n[dn]\n');
  openssl.run(`req -x509 -newkey ${newkey} -noenc -keyout key.pem -out crt.pem -subj /CN=a -config empty.cnf`);
  return { certificate: openssl.read('crt.pem'), key: openssl.read('key.pem') };
}

const entriesOf = (entries: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(entries).map(([name, text]) => [name, Buffer.from(text)]));
const read = (entries: Readonly<Record<string, string>>) => readCredential(entriesOf(entries));
const pairProblem = (certificate: string, key: string): unknown =>
  read({ 'tls.crt': certificate, 'tls.key': key }).pair;

describe('keys', () => {
  test.each([
    ['RSA 2048', 'rsa:2048'],
    ['P-256', P256],
    ['P-384', 'ec -pkeyopt ec_paramgen_curve:P-384'],
    ['P-521', 'ec -pkeyopt ec_paramgen_curve:P-521'],
    ['Ed25519', 'ed25519'],
  ])('%s is served', (_, newkey) => {
    const { certificate, key } = pairOf(newkey);
    const { pair } = read({ 'tls.crt': certificate, 'tls.key': key });
    if ('problem' in pair) return expect.fail(pair.problem);
    const leaf = new X509Certificate(pair.content.certificates);
    expect(leaf.checkPrivateKey(createPrivateKey(pair.content.key))).toBe(true);
    expect(pair.expires).toEqual(leaf.validToDate);
  });

  test.each([
    ['RSA 1024', 'rsa:1024'],
    ['RSA-PSS', 'rsa-pss -pkeyopt rsa_keygen_bits:2048'],
    ['secp256k1', 'ec -pkeyopt ec_paramgen_curve:secp256k1'],
    ['P-224', 'ec -pkeyopt ec_paramgen_curve:P-224'],
    ['Ed448', 'ed448'],
  ])('%s is refused, as Envoy would', (_, newkey) => {
    const { certificate, key } = pairOf(newkey);
    expect(pairProblem(certificate, key)).toEqual({
      problem: 'has a tls.key that is not RSA with at least 2048 bits, P-256, P-384, P-521 or Ed25519',
    });
  });

  test('one with a passphrase is refused', () => {
    const { certificate } = pairOf(P256);
    const openssl = new OpenSsl();
    openssl.run('genpkey -algorithm RSA -aes256 -pass pass:x -out key.pem');
    expect(pairProblem(certificate, openssl.read('key.pem'))).toEqual({
      problem: 'has an encrypted tls.key; store the key without a passphrase',
    });
  });

  test('one of another certificate is refused', () => {
    expect(pairProblem(pairOf(P256).certificate, pairOf(P256).key)).toEqual({
      problem: 'has a tls.key that is not the key of the first certificate in tls.crt',
    });
  });

  test('a broken one is never quoted in its problem', () => {
    const { certificate, key } = pairOf(P256);
    const lines = key.split('\n');
    for (const broken of [lines.slice(2).join('\n'), key.replace(/\n./, '\n!'), lines[1]!, `${key}${key}`]) {
      const problem = JSON.stringify(pairProblem(certificate, broken));
      expect(problem).toMatch(/^\{"problem":"(must have one private key in PEM in|has a) tls\.key/);
      expect(problem).not.toContain(lines[1]!.slice(0, 8));
    }
  });
});

describe('certificates', () => {
  test('a chain is served whole, without what surrounds it', () => {
    const [own, other] = [pairOf(P256), pairOf(P256)];
    const chain = own.certificate + other.certificate;
    const { pair } = read({ 'tls.crt': `Bag Attributes\n${own.key}${chain}`, 'tls.key': own.key });
    expect(pair).toMatchObject({ content: { certificates: chain } });
  });

  test('one that is not valid is named', () => {
    const { certificate, key } = pairOf(P256);
    const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
    expect(pairProblem(certificate + broken, key)).toEqual({
      problem: 'has certificate 2 in tls.crt that is not valid X.509',
    });
    expect(pairProblem('no PEM', key)).toEqual({ problem: 'has no certificate in PEM in tls.crt' });
  });

  test('there are at most a thousand', () => {
    const { certificate, key } = pairOf(P256);
    expect(pairProblem(certificate.repeat(1_001), key)).toEqual({
      problem: 'has 1001 certificates in tls.crt; at most 1000 are read',
    });
  });
});

describe('layouts', () => {
  const [own, other] = [() => pairOf(P256), () => pairOf(P256)];

  test("Istio's comes before that of Kubernetes, if both of its entries are there", () => {
    const [a, b] = [own(), other()];
    const kubernetes = { 'tls.crt': b.certificate, 'tls.key': b.key, 'ca.crt': b.certificate };
    const both = read({ ...kubernetes, cert: a.certificate, key: a.key, cacert: a.certificate });
    expect(both).toMatchObject({
      pair: { content: { certificates: a.certificate } },
      roots: { content: { certificates: a.certificate } },
    });
    const half = read({ ...kubernetes, cert: a.certificate, cacert: '' });
    expect(half).toMatchObject({
      pair: { content: { certificates: b.certificate } },
      roots: { content: { certificates: b.certificate } },
    });
  });

  test('what is not there is told by its entries', () => {
    expect(read({ unrelated: 'x' })).toEqual({
      pair: { problem: 'has neither tls.crt with tls.key nor cert with key', isAbsent: true },
      roots: { problem: 'has neither ca.crt nor cacert', isAbsent: true },
    });
  });
});

test('revocation lists come with the authorities, and broken ones are refused with them', () => {
  const openssl = new OpenSsl();
  openssl.cacerts(P256);
  openssl.write('index.txt', '');
  const section = ['[ca]', 'default_ca = a', '[a]', 'database = index.txt', 'default_md = sha256', ''];
  openssl.write('ca.cnf', section.join('\n'));
  openssl.run('ca -gencrl -config ca.cnf -keyfile root.key -cert root.pem -crldays 30 -out crl.pem');
  const [root, crl] = [openssl.read('root.pem'), openssl.read('crl.pem')];
  expect(read({ 'ca.crt': root, 'ca.crl': crl }).roots).toMatchObject({
    content: { certificates: root, revoked: crl },
  });
  expect(read({ cacert: root, crl }).roots).toMatchObject({ content: { revoked: crl } });
  expect(read({ 'ca.crt': root }).roots).toMatchObject({ content: { revoked: '' } });
  expect(read({ 'ca.crt': root, 'ca.crl': 'x' }).roots).toEqual({
    problem: 'has no certificate revocation list in PEM in ca.crl',
  });
  const broken = crl.replace(/CRL-----\n.{40}/, `CRL-----\n${'A'.repeat(40)}`);
  expect(read({ 'ca.crt': root, 'ca.crl': broken }).roots).toEqual({
    problem: 'has a certificate revocation list in ca.crl that is not valid X.509',
  });
});

test('a long revocation list is served', () => {
  const openssl = new OpenSsl();
  openssl.cacerts(P256);
  const revoked = Array.from(
    { length: 10_000 },
    (_, i) => `R\t490101000000Z\t260101000000Z\t${(0x1000 + i).toString(16).toUpperCase()}\tunknown\t/CN=a`,
  );
  openssl.write('index.txt', `${revoked.join('\n')}\n`);
  openssl.write('ca.cnf', '[ca]\ndefault_ca = a\n[a]\ndatabase = index.txt\ndefault_md = sha256\n');
  openssl.run('ca -gencrl -config ca.cnf -keyfile root.key -cert root.pem -crldays 30 -out crl.pem');
  const crl = openssl.read('crl.pem');
  expect(read({ 'ca.crt': openssl.read('root.pem'), 'ca.crl': crl }).roots).toMatchObject({
    content: { revoked: crl },
  });
});
