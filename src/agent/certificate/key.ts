import { generateKeyPair, sign } from 'node:crypto';
import { promisify } from 'node:util';
import { writePem } from '../../identity/pem.ts';

const generate = promisify(generateKeyPair);

/** A private key, and the CSR for its certificate. PEM. */
export interface KeyWithRequest {
  readonly key: string;
  readonly csr: string;
}

/** A new ECDSA key (P-256), which Envoy can use and no TLS library of a workload refuses. */
export async function newKey(identity: string): Promise<KeyWithRequest> {
  const { privateKey, publicKey } = await generate('ec', { namedCurve: 'P-256' });
  const info = sequence(
    integer(0),
    // The subject is empty, as in Istio: the identity is a URI.
    sequence(),
    publicKey.export({ type: 'spki', format: 'der' }),
    // attributes [0]: one, extensionRequest, with one extension: a critical subjectAltName.
    tagged(
      0xa0,
      sequence(EXTENSION_REQUEST, set(sequence(sequence(SUBJECT_ALT_NAME, TRUE, octets(namesOf(identity)))))),
    ),
  );
  const csr = sequence(info, sequence(ECDSA_WITH_SHA256), bits(sign('sha256', info, privateKey)));
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    csr: writePem('CERTIFICATE REQUEST', csr),
  };
}

/** GeneralNames with one uniformResourceIdentifier. */
const namesOf = (uri: string): Buffer => sequence(tagged(0x86, Buffer.from(uri)));

// PKCS#10 (RFC 2986) takes few kinds of DER. A library for all of ASN.1 would take 5 MB in each pod.

function tagged(tag: number, content: Uint8Array): Buffer {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...members: readonly Uint8Array[]): Buffer => tagged(0x30, Buffer.concat(members));
const set = (member: Uint8Array): Buffer => tagged(0x31, member);
const octets = (content: Uint8Array): Buffer => tagged(0x04, content);
/** No bits are left over. */
const bits = (content: Uint8Array): Buffer => tagged(0x03, Buffer.concat([Buffer.from([0]), content]));
const integer = (value: number): Buffer => tagged(0x02, Buffer.from([value]));
const identifier = (hex: string): Buffer => tagged(0x06, Buffer.from(hex, 'hex'));

const TRUE = Buffer.from([0x01, 0x01, 0xff]);
/** 1.2.840.113549.1.9.14 */
const EXTENSION_REQUEST = identifier('2a864886f70d01090e');
/** 2.5.29.17 */
const SUBJECT_ALT_NAME = identifier('551d11');
/** 1.2.840.10045.4.3.2 */
const ECDSA_WITH_SHA256 = identifier('2a8648ce3d040302');
