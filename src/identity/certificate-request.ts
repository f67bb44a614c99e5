import { type KeyObject, createPublicKey, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { AsnConvert } from '@peculiar/asn1-schema';
import { CertificationRequest } from '@peculiar/asn1-csr';
import {
  BasicConstraints,
  Extensions,
  GeneralName,
  SubjectAlternativeName,
  id_ce_basicConstraints,
  id_ce_subjectAltName,
} from '@peculiar/asn1-x509';
import { quote } from '../api/quote.ts';
import { readPem } from './pem.ts';
import { SIGNATURE_ALGORITHMS, publicKeyOf } from './signing-key.ts';

/** What is taken from a CSR: nothing but its key. */
export interface CertificateRequest {
  /** SubjectPublicKeyInfo, DER. */
  readonly publicKey: Buffer<ArrayBuffer>;
}

/** In characters. An agent's CSR has about 1,000. */
const longest = 64 * 1024;

/** Of DER; an agent's CSR has about 40. More take too long on the event loop. */
const parsing = { berOptions: { maxNodes: 256 } };

/** PKCS#9 extensionRequest. */
const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';

const verifyOutsideTheEventLoop = promisify(verify);

/**
 * Reads a PEM PKCS#10 CSR of the workload with this SPIFFE ID. A CSR may ask for nothing but its caller's identity: any
 * other SAN, or a CA, is refused. The subject and other extensions are ignored; nothing of them gets into certificates.
 * Never rejects: a problem is one sentence for the caller.
 */
export async function readRequest(
  pem: string,
  identity: string,
): Promise<{ readonly request: CertificateRequest } | { readonly problem: string }> {
  if (pem.length > longest) return { problem: `CSR is longer than ${longest} characters` };
  const [block, ...others] = readPem(pem) ?? [];
  if (block?.label !== 'CERTIFICATE REQUEST' || others.length > 0)
    return { problem: 'CSR must be exactly one PEM block of type CERTIFICATE REQUEST' };
  try {
    const csr = AsnConvert.parse(block.der, CertificationRequest, parsing);
    const spki = Buffer.from(AsnConvert.serialize(csr.certificationRequestInfo.subjectPKInfo));
    const key = createPublicKey({ key: spki, format: 'der', type: 'spki' });
    const problem = problemOfKey(key) ?? problemOfExtensions(csr, identity) ?? (await problemOfSignature(csr, key));
    return problem === undefined ? { request: { publicKey: publicKeyOf(key) } } : { problem };
  } catch {
    // The parsers' messages are about their insides.
    return { problem: 'CSR is not a valid PKCS#10 certificate request' };
  }
}

/** Length in DER of a key with a named curve and an uncompressed point: the only form that Go reads. */
const LENGTHS: Readonly<Record<string, number>> = { prime256v1: 91, secp384r1: 120 };

/**
 * The keys that Istio's agents make and Envoy serves. Ed25519 is refused: Envoy does not load such a certificate, nor
 * do its peers accept it in a handshake by default. P-521 is: agents do not make it. Envoy's lower limit for RSA is
 * 2048 bits. The upper limits, of which that of the exponent is Go's, bound what the verification of a signature costs.
 */
function problemOfKey(key: KeyObject): string | undefined {
  const { modulusLength = 0, publicExponent = 0n, namedCurve = '' } = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case 'rsa':
      if (modulusLength < 2048 || modulusLength > 8192)
        return `RSA key of the CSR has ${modulusLength} bits; use 2048 to 8192`;
      return publicExponent >= 2n ** 31n ? 'RSA key of the CSR has too large an exponent; use 65537' : undefined;
    case 'ec':
      return LENGTHS[namedCurve] === publicKeyOf(key).length
        ? undefined
        : 'EC key of the CSR must be an uncompressed point on the named curve P-256 or P-384';
    default:
      return `${key.asymmetricKeyType ?? 'unknown'} keys are not supported in a CSR; use RSA, P-256 or P-384`;
  }
}

function problemOfExtensions({ certificationRequestInfo }: CertificationRequest, identity: string): string | undefined {
  const { attributes } = certificationRequestInfo;
  const lists = attributes.filter(({ type }) => type === EXTENSION_REQUEST).flatMap(({ values }) => values);
  for (const { extnID, extnValue } of lists.flatMap((list) => [...AsnConvert.parse(list, Extensions, parsing)])) {
    if (extnID === id_ce_basicConstraints && AsnConvert.parse(extnValue, BasicConstraints, parsing).cA)
      return 'CSR asks for a CA certificate; only workload certificates are signed';
    if (extnID === id_ce_subjectAltName && !isExactly(extnValue.buffer, identity))
      return `CSR asks for ${otherNames(extnValue.buffer, identity)}; it may only ask for ${quote(identity)}`;
  }
  return undefined;
}

/** DER has one form for each value, so no parser's view of a name matters. */
function isExactly(names: ArrayBuffer, identity: string): boolean {
  const expected = new SubjectAlternativeName([new GeneralName({ uniformResourceIdentifier: identity })]);
  return Buffer.from(names).equals(Buffer.from(AsnConvert.serialize(expected)));
}

function otherNames(der: ArrayBuffer, identity: string): string {
  const texts = AsnConvert.parse(der, SubjectAlternativeName, parsing).map(
    ({ uniformResourceIdentifier, dNSName, rfc822Name, iPAddress }) =>
      uniformResourceIdentifier ?? dNSName ?? rfc822Name ?? iPAddress,
  );
  const other = texts.find((text) => text !== identity);
  return other === undefined ? 'other names' : `the name ${quote(other)}`;
}

async function problemOfSignature(
  { signatureAlgorithm, signature, certificationRequestInfoRaw }: CertificationRequest,
  key: KeyObject,
): Promise<string | undefined> {
  const algorithm = SIGNATURE_ALGORITHMS.get(signatureAlgorithm.algorithm);
  if (algorithm === undefined || algorithm.keyType !== key.asymmetricKeyType)
    return 'CSR must be signed with its own key: RSA (PKCS#1 v1.5) or ECDSA with SHA-256, SHA-384 or SHA-512';
  const signed = Buffer.from(certificationRequestInfoRaw!);
  const valid = await verifyOutsideTheEventLoop(algorithm.hash, signed, key, Buffer.from(signature));
  return valid ? undefined : 'signature of the CSR is not valid';
}
