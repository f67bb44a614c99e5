import { X509Certificate, generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import {
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  type Extension,
  ExtendedKeyUsage,
  GeneralName,
  KeyIdentifier,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  id_ce_authorityKeyIdentifier,
  id_ce_extKeyUsage,
  id_kp_clientAuth,
  id_kp_serverAuth,
} from '@peculiar/asn1-x509';
import * as certificate from './certificate.ts';
import type { CertificateRequest } from './certificate-request.ts';
import { DEFAULT_LIFETIME, LONGEST_LIFETIME } from './lifetime.ts';
import { mergeRoots } from './roots.ts';
import { type SigningKey, keyIdentifier, publicKeyOf, signingKeyOf } from './signing-key.ts';
import type { SigningMaterial } from './signing-material.ts';

export interface Signed {
  /** PEM: the leaf, each intermediate, and last all roots in one text; `cert_chain` of IstioCertificateResponse. */
  readonly chain: readonly string[];
}

export interface Unsigned {
  /** `Lifetime`: the caller asks for too much. `Expired`: the signing certificates are out of date. */
  readonly reason: 'Lifetime' | 'Expired';
  /** One sentence for the caller. */
  readonly problem: string;
}

/** organizationalUnitName. */
const UNIT = '2.5.4.11';

/** Signs certificates of workloads, and of the control plane itself. Signatures are made outside the event loop. */
export class Authority {
  private readonly material: SigningMaterial;
  private readonly roots: string;
  private readonly lifetime: number;
  private readonly issuer: Name;
  private readonly key: SigningKey;
  /** The same in all certificates. */
  private readonly extensions: readonly Extension[];

  /** @param lifetime of certificates whose requests name none; milliseconds. */
  constructor(material: SigningMaterial, lifetime = DEFAULT_LIFETIME) {
    const issuer = certificate.readIssuer(new X509Certificate(material.certificate).raw);
    this.material = material;
    this.lifetime = lifetime;
    this.roots = mergeRoots(material.roots);
    this.issuer = issuer.subject;
    this.key = signingKeyOf(material.key);
    const issuerKey = issuer.keyIdentifier ?? keyIdentifier(publicKeyOf(material.key));
    this.extensions = [
      certificate.keyUsage(KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment),
      certificate.extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth, id_kp_clientAuth])),
      certificate.basicConstraints(false),
      certificate.extension(
        id_ce_authorityKeyIdentifier,
        new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(issuerKey) }),
      ),
    ];
  }

  /**
   * A certificate for this SPIFFE ID, which the caller has proven. A lifetime of 0 or less means the default; over 90 days
   * is refused; one that ends after the signing certificates do is cut.
   *
   * @param unit the subject's organizational unit (OU); absent: there is no subject.
   */
  sign(
    request: CertificateRequest,
    identity: string,
    ttlSeconds: number,
    now: Date,
    unit?: string,
  ): Promise<Signed | Unsigned> {
    const lifetime = ttlSeconds > 0 ? ttlSeconds * 1000 : this.lifetime;
    if (lifetime > LONGEST_LIFETIME)
      return Promise.resolve({ reason: 'Lifetime', problem: 'certificate lifetime must not be over 90 days' });
    const names = [new GeneralName({ uniformResourceIdentifier: identity })];
    return this.issue(request.publicKey, names, lifetime, now, unit === undefined ? new Name() : unitName(unit));
  }

  /** A P-256 key, and its certificate for a server with these DNS names. The lifetime is cut as in `sign`. */
  async signServer(
    names: readonly string[],
    ttlSeconds: number,
    now: Date,
  ): Promise<(Signed & { /** PKCS#8, PEM. */ readonly key: string }) | Unsigned> {
    const { publicKey, privateKey } = await promisify(generateKeyPair)('ec', {
      namedCurve: 'P-256',
      publicKeyEncoding: { type: 'spki', format: 'der' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    });
    const dnsNames = names.map((dNSName) => new GeneralName({ dNSName }));
    const signed = await this.issue(publicKey, dnsNames, ttlSeconds * 1000, now);
    return 'problem' in signed ? signed : { ...signed, key: privateKey };
  }

  private async issue(
    publicKey: Buffer<ArrayBuffer>,
    names: readonly GeneralName[],
    lifetime: number,
    now: Date,
    subject = new Name(),
  ): Promise<Signed | Unsigned> {
    const { expires, intermediates } = this.material;
    if (now >= expires)
      return { reason: 'Expired', problem: `certificates of the CA expired at ${expires.toISOString()}` };
    const leaf = await certificate.writeCertificate(
      {
        issuer: this.issuer,
        subject,
        publicKey,
        now,
        notAfter: new Date(Math.min(now.getTime() + lifetime, expires.getTime())),
        extensions: [
          certificate.alternativeNames(names),
          certificate.subjectKeyIdentifier(keyIdentifier(publicKey)),
          ...this.extensions,
        ],
      },
      this.key,
    );
    return { chain: [leaf, ...intermediates, this.roots] };
  }
}

function unitName(unit: string): Name {
  const value = new AttributeValue({ utf8String: unit });
  return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: UNIT, value })])]);
}
