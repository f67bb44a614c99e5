import { randomBytes, sign } from 'node:crypto';
import { promisify } from 'node:util';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  BasicConstraints,
  Certificate,
  Extension,
  Extensions,
  GeneralName,
  KeyUsage,
  Name,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
  id_ce_basicConstraints,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
} from '@peculiar/asn1-x509';
import { writePem } from './pem.ts';
import type { SigningKey } from './signing-key.ts';

const signOutsideTheEventLoop = promisify(sign);

export interface CertificateContent {
  readonly issuer: Name;
  readonly subject: Name;
  /** SubjectPublicKeyInfo, DER. */
  readonly publicKey: Uint8Array<ArrayBuffer>;
  readonly now: Date;
  readonly notAfter: Date;
  readonly extensions: readonly Extension[];
}

/** For clocks that are behind ours. */
const backdate = 2 * 60 * 1000;

/** A certificate in PEM, valid from 2 minutes ago, with a random serial number. */
export async function writeCertificate(
  content: CertificateContent,
  { key, hash, algorithm }: SigningKey,
): Promise<string> {
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: serialNumber(),
    signature: algorithm,
    issuer: content.issuer,
    validity: new Validity({ notBefore: new Date(content.now.getTime() - backdate), notAfter: content.notAfter }),
    subject: content.subject,
    subjectPublicKeyInfo: AsnConvert.parse(content.publicKey, SubjectPublicKeyInfo),
    extensions: new Extensions([...content.extensions]),
  });
  const tbsCertificateRaw = AsnConvert.serialize(tbsCertificate);
  const signatureValue = bufferOf(await signOutsideTheEventLoop(hash, Buffer.from(tbsCertificateRaw), key));
  const certificate = { tbsCertificate, tbsCertificateRaw, signatureAlgorithm: algorithm, signatureValue };
  return writePem('CERTIFICATE', Buffer.from(AsnConvert.serialize(new Certificate(certificate))));
}

/** What issuing needs to know about a CA certificate. */
export interface Issuer {
  readonly subject: Name;
  readonly keyIdentifier: Buffer | undefined;
  /** How many CA certificates may be below this one. */
  readonly pathLength: number;
}

export function readIssuer(der: Uint8Array<ArrayBuffer>): Issuer {
  const { subject, extensions = [] } = AsnConvert.parse(der, Certificate).tbsCertificate;
  const value = (id: string) => extensions.find(({ extnID }) => extnID === id)?.extnValue;
  const [identifier, constraints] = [value(id_ce_subjectKeyIdentifier), value(id_ce_basicConstraints)];
  return {
    subject,
    keyIdentifier: identifier && Buffer.from(AsnConvert.parse(identifier, SubjectKeyIdentifier).buffer),
    pathLength: (constraints && AsnConvert.parse(constraints, BasicConstraints).pathLenConstraint) ?? Infinity,
  };
}

export function extension(id: string, value: object, critical = false): Extension {
  return new Extension({ extnID: id, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

export function basicConstraints(ca: boolean): Extension {
  return extension(id_ce_basicConstraints, new BasicConstraints({ cA: ca }), true);
}

export function keyUsage(flags: number): Extension {
  return extension(id_ce_keyUsage, new KeyUsage(flags), true);
}

export function subjectKeyIdentifier(identifier: Buffer): Extension {
  return extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(bufferOf(identifier)));
}

/** Critical: most of our leaves have no subject. RFC 5280, 4.2.1.6. */
export function alternativeNames(names: readonly GeneralName[]): Extension {
  return extension(id_ce_subjectAltName, new SubjectAlternativeName([...names]), true);
}

/** Buffers may share memory with others. */
function bufferOf(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}

/** 128 random bits. The byte before them makes the number positive, and its form the shortest, whatever they are. */
function serialNumber(): ArrayBuffer {
  return bufferOf(Buffer.concat([Buffer.of(1), randomBytes(16)]));
}
