import 'reflect-metadata';
import { createPublicKey } from 'node:crypto';
import { CertificationRequest } from '@peculiar/asn1-csr';
import { AsnConvert } from '@peculiar/asn1-schema';
import { SubjectPublicKeyInfo } from '@peculiar/asn1-x509';
import * as x509 from '@peculiar/x509';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { readRequest } from './certificate-request.ts';
import { writePem } from './pem.ts';
import { OpenSsl } from './testing/openssl.ts';

const identity = 'spiffe://cluster.local/ns/shop/sa/cart';
const P256 = 'ec -pkeyopt ec_paramgen_curve:P-256';
const own = `subjectAltName=critical,URI:${identity}`;
const names = (...all: string[]): string[] => [`subjectAltName=${all.join(',')}`];

async function problemOf(pem: string): Promise<string> {
  const read = await readRequest(pem, identity);
  return 'problem' in read ? read.problem : 'none';
}

describe('a CSR is accepted', () => {
  test.each<[string, string, string[], string?]>([
    ['with an RSA key', 'rsa:2048', [own]],
    ['with an RSA key of 3072 bits', 'rsa:3072', [own]],
    ['with a P-256 key', P256, [own]],
    ['with a P-384 key', 'ec -pkeyopt ec_paramgen_curve:P-384', [own], ' -sha384'],
    ['without extensions', P256, []],
    ['without SANs', P256, ['keyUsage=digitalSignature']],
    ['with CA false', P256, [own, 'basicConstraints=CA:false']],
    ['with extensions that are ignored', P256, [own, 'keyUsage=keyCertSign', 'extendedKeyUsage=codeSigning']],
    ['with another hash', P256, [own], ' -sha512'],
  ])('%s, and only its key is taken', async (_, key, config, options) => {
    const openssl = new OpenSsl();
    const read = await readRequest(openssl.request(key, config, options), identity);
    const expected = createPublicKey(openssl.read('request.key')).export({ type: 'spki', format: 'der' });
    expect(read).toEqual({ request: { publicKey: expected } });
  });
});

describe('a CSR is refused', () => {
  test.each<[string, string, string[], string, string?]>([
    [
      'for another identity',
      P256,
      names('URI:spiffe://cluster.local/ns/shop/sa/admin'),
      'the name "spiffe://cluster.local/ns/shop/sa/admin"',
    ],
    ['for another identity, too', P256, names(`URI:${identity}`, 'URI:spiffe://x/ns/a/sa/b'), '"spiffe://x/ns/a/sa/b"'],
    ['for its identity twice', P256, names(`URI:${identity}`, `URI:${identity}`), 'other names'],
    ['for a DNS name', P256, names('DNS:example.com'), 'the name "example.com"'],
    ['for its identity as a DNS name', P256, names(`DNS:${identity}`), 'other names'],
    ['for an address', P256, names(`URI:${identity}`, 'IP:10.0.0.1'), 'the name "10.0.0.1"'],
    ['for an email address', P256, names('email:a@example.com'), 'the name "a@example.com"'],
    ['for a name of another kind', P256, names(`URI:${identity}`, 'otherName:1.2.3.4;UTF8:x'), 'other names'],
    ['for a registered id', P256, names('RID:1.2.3.4'), 'other names'],
    ['for no name at all', P256, ['subjectAltName=DER:3000'], 'other names'],
    ['for a CA', P256, [own, 'basicConstraints=critical,CA:true'], 'asks for a CA certificate'],
    ['with RSA 1024', 'rsa:1024', [own], 'RSA key of the CSR has 1024 bits; use 2048 to 8192'],
    ['with a huge exponent', 'rsa:2048 -pkeyopt rsa_keygen_pubexp:4294967297', [own], 'too large an exponent'],
    ['with Ed25519', 'ed25519', [own], 'ed25519 keys are not supported'],
    ['with RSA-PSS', 'rsa-pss -pkeyopt rsa_keygen_bits:2048', [own], 'rsa-pss keys are not supported'],
    ['with P-521', 'ec -pkeyopt ec_paramgen_curve:P-521', [own], 'P-256 or P-384'],
    ['with secp256k1', 'ec -pkeyopt ec_paramgen_curve:secp256k1', [own], 'P-256 or P-384'],
    ['with a curve that has no name', `${P256} -pkeyopt ec_param_enc:explicit`, [own], 'P-256 or P-384'],
    ['that is signed with SHA-1', P256, [own], 'must be signed', ' -sha1'],
    ['that is signed with RSA-PSS', 'rsa:2048', [own], 'must be signed', ' -sigopt rsa_padding_mode:pss'],
  ])('%s', async (_, key, config, expected, options) => {
    const problem = await problemOf(new OpenSsl().request(key, config, options));
    expect(problem).toContain(expected);
    if (expected.includes('name')) expect(problem).toContain(`may only ask for "${identity}"`);
  });

  let pem: string;
  let der: Buffer;
  beforeAll(async () => {
    der = await requestWith([]);
    pem = writePem('CERTIFICATE REQUEST', der);
  });

  test('whose signature is not its own', async () => {
    expect(await problemOf(pem)).toBe('none');
    // The last byte of the subject's text, which is signed.
    const at = der.indexOf('ignored');
    const changed = Buffer.from(der);
    changed.write('I', at);
    expect(await problemOf(writePem('CERTIFICATE REQUEST', changed))).toBe('signature of the CSR is not valid');
  });

  test.each<[string, () => string, string]>([
    ['that is empty', () => '', 'exactly one PEM block'],
    ['that is not PEM', () => der.toString('latin1'), 'exactly one PEM block'],
    ['that is DER in base64 alone', () => der.toString('base64'), 'exactly one PEM block'],
    ['of another type', () => writePem('CERTIFICATE', der), 'exactly one PEM block'],
    ['that is there twice', () => pem + pem, 'exactly one PEM block'],
    ['with a key beside it', () => pem + writePem('PRIVATE KEY', der), 'exactly one PEM block'],
    ['whose PEM is truncated', () => pem.slice(0, pem.length / 2), 'exactly one PEM block'],
    [
      'whose DER is truncated',
      () => writePem('CERTIFICATE REQUEST', der.subarray(0, der.length / 2)),
      'not a valid PKCS#10',
    ],
    ['of random bytes', () => writePem('CERTIFICATE REQUEST', Buffer.alloc(500, 7)), 'not a valid PKCS#10'],
    ['of 1 MB', () => writePem('CERTIFICATE REQUEST', Buffer.alloc(1024 * 1024)), 'longer than 65536 characters'],
    ['followed by 1 MB of text', () => pem + ' '.repeat(1024 * 1024), 'longer than 65536 characters'],
    ['of many lines that begin', () => '-----BEGIN X-----\n'.repeat(3000), 'exactly one PEM block'],
  ])('%s', async (_, text, expected) => {
    expect(await problemOf(text())).toContain(expected);
  });

  test('with a signature that claims to be of another kind of key', async () => {
    const csr = AsnConvert.parse(der, CertificationRequest);
    csr.signatureAlgorithm.algorithm = '1.2.840.113549.1.1.11';
    const text = writePem('CERTIFICATE REQUEST', Buffer.from(AsnConvert.serialize(csr)));
    expect(await problemOf(text)).toContain('must be signed with its own key');
  });

  test('with RSA beyond 8192 bits, before its signature is verified', async () => {
    const csr = AsnConvert.parse(der, CertificationRequest);
    const modulus = { kty: 'RSA', n: Buffer.alloc(1025, 0xff).toString('base64url'), e: 'AQAB' };
    const spki = createPublicKey({ key: modulus, format: 'jwk' }).export({ type: 'spki', format: 'der' });
    csr.certificationRequestInfo.subjectPKInfo = AsnConvert.parse(spki, SubjectPublicKeyInfo);
    delete csr.certificationRequestInfoRaw;
    const text = writePem('CERTIFICATE REQUEST', Buffer.from(AsnConvert.serialize(csr)));
    expect(await problemOf(text)).toBe('RSA key of the CSR has 8200 bits; use 2048 to 8192');
  });

  test.each<[string, () => x509.Extension]>([
    ['1,000 SANs', () => new x509.SubjectAlternativeNameExtension(dnsNames(1000))],
    ['10,000 SANs', () => new x509.SubjectAlternativeNameExtension(dnsNames(10_000))],
    ['1,000 nested sequences', () => new x509.Extension('2.5.29.17', true, nested(1000))],
  ])('with %s, before all of them are parsed', async (_, extension) => {
    const csr = writePem('CERTIFICATE REQUEST', await requestWith([extension()]));
    expect(csr.length).toBeLessThan(64 * 1024);
    expect(await problemOf(csr)).toBe('CSR is not a valid PKCS#10 certificate request');
  });

  test('without anything being thrown, whatever it is', async () => {
    const text = fc.oneof(
      fc.string(),
      fc.uint8Array({ maxLength: 300 }).map((bytes) => writePem('CERTIFICATE REQUEST', bytes)),
      // A few bytes of a good one are changed, removed or added.
      fc
        .array(fc.tuple(fc.nat(der.length), fc.nat(3), fc.uint8Array({ maxLength: 3 })), { minLength: 1, maxLength: 4 })
        .map((edits) => {
          let bytes = der;
          for (const [at, removed, added] of edits)
            bytes = Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + removed)]);
          return writePem('CERTIFICATE REQUEST', bytes);
        }),
      fc.tuple(fc.nat(pem.length), fc.string()).map(([at, added]) => pem.slice(0, at) + added + pem.slice(at)),
    );
    await fc.assert(
      fc.asyncProperty(text, async (csr) => {
        const read = await readRequest(csr, identity);
        if ('problem' in read) expect(read.problem).not.toBe('');
        else expect(createPublicKey({ key: read.request.publicKey, format: 'der', type: 'spki' }).type).toBe('public');
      }),
    );
  });
});

/** DER of a CSR that is signed, with a P-256 key. */
async function requestWith(extensions: x509.Extension[]): Promise<Buffer> {
  const signingAlgorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await crypto.subtle.generateKey(signingAlgorithm, true, ['sign', 'verify']);
  const name = [{ CN: ['ignored'] }];
  const csr = await x509.Pkcs10CertificateRequestGenerator.create({ name, keys, signingAlgorithm, extensions });
  return Buffer.from(csr.rawData);
}

function dnsNames(count: number): x509.JsonGeneralNames {
  return Array.from({ length: count }, () => ({ type: 'dns', value: 'a' }));
}

function nested(depth: number): Buffer {
  let der = Buffer.alloc(0);
  for (let i = 0; i < depth; i++) {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(der.length);
    der = Buffer.concat([Buffer.of(0x30, 0x82), length, der]);
  }
  return der;
}
