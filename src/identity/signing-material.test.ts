import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { isAgeing, readMaterial } from './signing-material.ts';
import { OpenSsl } from './testing/openssl.ts';

const P256 = 'ec -pkeyopt ec_paramgen_curve:P-256';
const DAY = 24 * 60 * 60 * 1000;
const MINUTE = 60 * 1000;

function problemOf(entries: Record<string, string>, now = new Date()): string {
  const read = readMaterial(entries, now);
  return 'problem' in read ? read.problem : 'none';
}

function subjects(pems: readonly string[]): string[] {
  return pems.map((pem) => new X509Certificate(pem).subject.replaceAll('\n', ', '));
}

function read(entries: Record<string, string>, now = new Date()) {
  const result = readMaterial(entries, now);
  if ('problem' in result) throw new Error(result.problem);
  return result.material;
}

const ROOT = 'O=Shop, CN=root';
const CA = 'O=Shop, CN=ca';

describe('signing material is read', () => {
  type Layout = (cacerts: Record<string, string>, openssl: OpenSsl) => Record<string, string>;
  test.each<[string, Layout]>([
    ['from Secret cacerts', (all) => all],
    ['with a CRL beside it', (all) => ({ ...all, 'ca-crl.pem': 'x' })],
    ['without a chain, if the root issued the CA', (all) => ({ ...all, 'cert-chain.pem': '' })],
    ['with text between certificates', (all) => ({ ...all, 'cert-chain.pem': `x\n${all['cert-chain.pem']}y` })],
    [
      'from a TLS Secret',
      (all) => ({ 'tls.crt': all['ca-cert.pem']!, 'tls.key': all['ca-key.pem']!, 'ca.crt': all['root-cert.pem']! }),
    ],
    [
      "from a TLS Secret before Istio's entries",
      (all) => ({
        'ca-cert.pem': 'x',
        'tls.crt': all['cert-chain.pem']!,
        'tls.key': all['ca-key.pem']!,
        'ca.crt': all['root-cert.pem']!,
      }),
    ],
    ['with an empty tls.crt', (all) => ({ ...all, 'tls.crt': '' })],
    [
      'with a key of its own format',
      (all, openssl) => {
        openssl.run('pkey -in ca.key -traditional -out traditional.key');
        const key = openssl.read('traditional.key');
        expect(key).toMatch(/BEGIN (RSA|EC) PRIVATE KEY/);
        return { ...all, 'ca-key.pem': key };
      },
    ],
    [
      'with EC parameters before the key',
      (all) => ({
        ...all,
        'ca-key.pem':
          '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n' + all['ca-key.pem'],
      }),
    ],
  ])('%s', (_, layout) => {
    for (const key of ['rsa:2048', P256]) {
      const openssl = new OpenSsl();
      const material = read(layout(openssl.cacerts(key), openssl));
      expect(subjects([material.certificate])).toEqual([CA]);
      expect(subjects(material.intermediates)).toEqual([CA]);
      expect(subjects(material.roots)).toEqual([ROOT]);
      expect(new X509Certificate(material.certificate).checkPrivateKey(material.key)).toBe(true);
    }
  });

  test('with a self-signed certificate, which is its own root', () => {
    const openssl = new OpenSsl();
    openssl.cacerts(P256);
    const entries = { 'ca-cert.pem': openssl.read('root.pem'), 'ca-key.pem': openssl.read('root.key') };
    for (const roots of ['', entries['ca-cert.pem']]) {
      const material = read({ ...entries, 'root-cert.pem': roots, 'cert-chain.pem': '', 'key.pem': '' });
      expect(material.intermediates).toEqual([]);
      expect(subjects(material.roots)).toEqual([ROOT]);
    }
  });

  test('with all roots of the bundle, in their order', () => {
    const entries = new OpenSsl().cacerts(P256);
    const other = new OpenSsl();
    other.cacerts(P256);
    other.run('req -x509 -key root.key -out old.pem -days 1 -subj /CN=old -config empty.cnf');
    const roots = other.read('old.pem') + entries['root-cert.pem'];
    const twoDaysOn = new Date(Date.now() + 2 * DAY);
    expect(subjects(read({ ...entries, 'root-cert.pem': roots }, twoDaysOn).roots)).toEqual(['CN=old', ROOT]);
  });

  test('with the chain in order, whatever the order of the file', () => {
    const { openssl, entries } = threeLevels();
    const chain = openssl.read('root.pem') + openssl.read('ca.pem') + openssl.read('sub.pem');
    for (const text of [chain, openssl.read('ca.pem')]) {
      const material = read({ ...entries, 'cert-chain.pem': text });
      expect(subjects(material.intermediates)).toEqual(['CN=sub', CA]);
    }
  });
});

/** A CA below the CA of `cacerts`. */
function threeLevels(caExtensions?: string) {
  const openssl = new OpenSsl();
  const all = openssl.cacerts(P256, caExtensions === undefined ? {} : { caExtensions });
  openssl.run(`req -new -newkey ${P256} -noenc -keyout sub.key -out sub.csr -subj /CN=sub -config empty.cnf`);
  openssl.write('sub.ext', 'basicConstraints=critical,CA:true\n');
  openssl.run('x509 -req -in sub.csr -CA ca.pem -CAkey ca.key -days 10 -extfile sub.ext -out sub.pem');
  const entries = { ...all, 'ca-cert.pem': openssl.read('sub.pem'), 'ca-key.pem': openssl.read('sub.key') };
  return { openssl, entries };
}

describe('signing material is refused', () => {
  type Change = (all: Record<string, string>, openssl: OpenSsl) => Record<string, string>;
  const pem = (label: string, base64: string) => `-----BEGIN ${label}-----\n${base64}\n-----END ${label}-----\n`;
  test.each<[string, Change, string]>([
    ['if it is empty', () => ({}), 'ca-cert.pem is missing'],
    ['without a key', () => ({ 'ca-key.pem': '' }), 'ca-key.pem is missing'],
    ['without roots', () => ({ 'root-cert.pem': '' }), 'root-cert.pem is missing'],
    ['without a key in a TLS Secret', (all) => ({ 'tls.crt': all['ca-cert.pem']! }), 'tls.key is missing'],
    [
      'with a certificate that is not PEM',
      () => ({ 'ca-cert.pem': 'x' }),
      'ca-cert.pem contains no certificate in PEM',
    ],
    [
      'with a chain that is cut off',
      (all) => ({ 'cert-chain.pem': all['cert-chain.pem']!.slice(0, -40) }),
      'cert-chain.pem contains no certificate in PEM',
    ],
    [
      'with a root that is not a certificate',
      () => ({ 'root-cert.pem': pem('CERTIFICATE', 'AAAA') }),
      'root-cert.pem: not a valid X.509 certificate',
    ],
    [
      'with a second root that is not one',
      (all) => ({ 'root-cert.pem': all['root-cert.pem'] + pem('CERTIFICATE', 'AAAA') }),
      'root-cert.pem, certificate 2: not a valid X.509 certificate',
    ],
    [
      'with a key that is not PEM',
      () => ({ 'ca-key.pem': 'secret' }),
      'ca-key.pem must contain one private key in PEM',
    ],
    [
      'with two keys',
      (all) => ({ 'ca-key.pem': all['ca-key.pem']! + all['ca-key.pem']! }),
      'ca-key.pem must contain one private key in PEM',
    ],
    [
      'with a public key',
      (_, openssl) => ({ 'ca-key.pem': openssl.run('pkey -in ca.key -pubout') }),
      'ca-key.pem must contain one private key in PEM',
    ],
    [
      'with a broken key',
      () => ({ 'ca-key.pem': pem('PRIVATE KEY', 'AAAA') }),
      'ca-key.pem is not a valid private key',
    ],
    [
      'with an encrypted key',
      (_, openssl) => ({ 'ca-key.pem': openssl.run('pkcs8 -topk8 -in ca.key -passout pass:x') }),
      'ca-key.pem is encrypted; store the key without a passphrase',
    ],
    [
      'with a traditional key that is encrypted',
      (_, openssl) => ({ 'ca-key.pem': openssl.run('ec -in ca.key -aes128 -passout pass:x') }),
      'ca-key.pem is encrypted; store the key without a passphrase',
    ],
    [
      'with the key of another certificate',
      (_, openssl) => ({ 'ca-key.pem': openssl.read('root.key') }),
      'ca-key.pem is not the key of the certificate in ca-cert.pem',
    ],
    [
      'with Ed25519',
      (_, openssl) => ({ 'ca-key.pem': openssl.run('genpkey -algorithm ed25519') }),
      'ca-key.pem must be RSA with at least 2048 bits, P-256, P-384 or P-521',
    ],
    [
      'with RSA 1024',
      (_, openssl) => ({ 'ca-key.pem': openssl.run('genrsa 1024') }),
      'ca-key.pem must be RSA with at least 2048 bits, P-256, P-384 or P-521',
    ],
    [
      'with the root of another',
      () => ({ 'root-cert.pem': new OpenSsl().cacerts(P256)['root-cert.pem']! }),
      'ca-cert.pem is not issued by a root in root-cert.pem; add the certificates between them to cert-chain.pem',
    ],
  ])('%s', (_, change, expected) => {
    const openssl = new OpenSsl();
    const all = openssl.cacerts(P256);
    const changed = change(all, openssl);
    const problem = problemOf(Object.keys(changed).length === 0 ? {} : { ...all, ...changed });
    expect(problem).toBe(expected);
  });

  test('without the certificate between CA and root', () => {
    const { entries } = threeLevels();
    expect(problemOf({ ...entries, 'cert-chain.pem': '' })).toContain('is not issued by a root');
  });

  test.each([
    ['that is not a CA', 'basicConstraints=critical,CA:false', 'is not a CA certificate'],
    ['without constraints', 'nsComment=x', 'is not a CA certificate'],
  ])('with a certificate %s', (_, caExtensions, expected) => {
    const problem = problemOf(new OpenSsl().cacerts(P256, { caExtensions }));
    expect(problem).toContain(`ca-cert.pem ("O=Shop, CN=ca") ${expected}`);
  });

  test('with a CA that may not sign certificates', () => {
    const openssl = new OpenSsl();
    const all = openssl.cacerts(P256);
    openssl.write('crl.ext', 'basicConstraints=critical,CA:true\nkeyUsage=cRLSign\n');
    openssl.run('x509 -req -in ca.csr -CA root.pem -CAkey root.key -extfile crl.ext -out crl.pem');
    expect(problemOf({ ...all, 'ca-cert.pem': openssl.read('crl.pem') })).toContain('key usage for signing');
  });

  test('with more CAs than the one above allows', () => {
    const { entries } = threeLevels('basicConstraints=critical,CA:true,pathlen:0');
    expect(problemOf(entries)).toContain('cert-chain.pem, certificate 1 ("O=Shop, CN=ca") allows fewer than the 1 CA');
  });

  test.each([
    ['ca-cert.pem ("O=Shop, CN=ca") is not valid before', -10 * MINUTE],
    ['none', -4 * MINUTE],
    ['none', 20 * DAY + 4 * MINUTE],
    ['ca-cert.pem ("O=Shop, CN=ca") expired at', 20 * DAY + 10 * MINUTE],
    ['ca-cert.pem ("O=Shop, CN=ca") expired at', 40 * DAY],
  ])('or not, when it is not valid now: %s', (expected, after) => {
    expect(problemOf(new OpenSsl().cacerts(P256), new Date(Date.now() + after))).toContain(expected);
  });

  test('if only a certificate above has expired', () => {
    const { entries } = threeLevels();
    const { openssl, entries: short } = threeLevels();
    openssl.run('x509 -req -in ca.csr -CA root.pem -CAkey root.key -days 1 -extfile ca.ext -out short.pem');
    const now = new Date(Date.now() + 2 * DAY);
    expect(problemOf(entries, now)).toBe('none');
    const problem = problemOf({ ...short, 'cert-chain.pem': openssl.read('short.pem') }, now);
    expect(problem).toContain('cert-chain.pem ("O=Shop, CN=ca") expired at');
  });

  test('and the problem never quotes the key', () => {
    const all = new OpenSsl().cacerts(P256);
    const words = all['ca-key.pem']!.split('\n').filter((line) => line !== '' && !line.startsWith('-----'));
    for (const [from, to] of [
      ['PRIVATE', 'SECRET'],
      [words[0]!, words[0]!.slice(4)],
      [words[0]!, `MIGH${words[0]!.slice(4, -4)}AAAA`],
    ]) {
      const problem = problemOf({ ...all, 'ca-key.pem': all['ca-key.pem']!.replaceAll(from!, to!) });
      expect(problem).toMatch(/^ca-key.pem (is not |must contain)/);
      for (const word of words)
        for (let i = 0; i + 8 < word.length; i++) expect(problem).not.toContain(word.slice(i, i + 8));
    }
  });
});

test('material ages in the last fifth of the life of the certificate that expires first', () => {
  const material = read(new OpenSsl().cacerts(P256));
  const made = new X509Certificate(material.certificate).validFromDate.getTime();
  expect(material.expires).toEqual(new Date(made + 20 * DAY));
  expect(isAgeing(material, new Date(made + 16 * DAY - 1000))).toBe(false);
  expect(isAgeing(material, new Date(made + 16 * DAY + 1000))).toBe(true);
});
