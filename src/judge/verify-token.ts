import { type JsonWebKey, constants, createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto';
import { type Json, isObject } from '../api/json.ts';
import type { JwtIssuer } from '../model/request-authentication.ts';

/** Seconds by which clocks may differ; Envoy's default. */
const CLOCK_SKEW = 60;

export interface VerifiedToken {
  readonly claims: Json;
  readonly payload: string;
}

/** Why a token is refused. */
export interface Failure {
  readonly problem: string;
  readonly isOfAudience?: true;
  /** The token is not for this issuer at all. */
  readonly isForeign?: true;
}

/** Source: Envoy's authenticator.cc, and jwt.cc and verify.cc of its jwt_verify_lib. */
export function verifyToken(token: string, { rule, jwks }: JwtIssuer, now: number): VerifiedToken | Failure {
  const parts = token.split('.');
  const [header, claims] = parts.slice(0, 2).map(jsonOf);
  const [, payload = '', signature = ''] = parts;
  if (parts.length !== 3 || !isBase64Url(signature) || header === undefined || claims === undefined)
    return { problem: 'the token is not a JWT' };
  const problem = malformed(header, claims);
  if (problem !== undefined) return { problem };
  const { iss = '', aud = [], exp, nbf } = claims as Claims;
  if (iss !== rule.issuer)
    return {
      problem: `the token is from the issuer ${JSON.stringify(iss)}, not from this rule's`,
      isForeign: true,
    };
  if (nbf !== undefined && nbf > now + CLOCK_SKEW) return { problem: 'the token is not valid yet' };
  if (exp !== undefined && now > exp + CLOCK_SKEW) return { problem: 'the token has expired' };
  const audiences = rule.audiences.map(plainAudience);
  if (audiences.length > 0 && ![aud].flat().some((one) => audiences.includes(plainAudience(one))))
    return { problem: 'the token has none of the audiences of the rule', isOfAudience: true };
  if (jwks === undefined) return { problem: 'there are no keys for its issuer, so no token is accepted' };
  if (!isSigned(parts.slice(0, 2).join('.'), Buffer.from(signature, 'base64url'), header, jwks))
    return { problem: "the token's signature matches none of the issuer's keys" };
  return { claims, payload };
}

interface Claims {
  readonly iss?: string;
  readonly aud?: string | readonly string[];
  readonly exp?: number;
  readonly nbf?: number;
}

const ALGORITHMS = /^(ES256|ES384|ES512|HS256|HS384|HS512|RS256|RS384|RS512|PS256|PS384|PS512|EdDSA)$/;

function malformed(header: Json, claims: Json): string | undefined {
  const { alg, kid } = header;
  if (typeof alg !== 'string' || !ALGORITHMS.test(alg)) return 'the algorithm of the token is not supported';
  if (kid !== undefined && typeof kid !== 'string') return 'the "kid" of the token is not a string';
  const isText = (value: unknown): boolean => value === undefined || typeof value === 'string';
  const text = ['iss', 'sub', 'jti'].find((name) => !isText(claims[name]));
  if (text !== undefined) return `the claim "${text}" is not a string`;
  const isTime = (value: unknown): boolean => value === undefined || (Number.isInteger(value) && Number(value) >= 0);
  const time = ['iat', 'nbf', 'exp'].find((name) => !isTime(claims[name]));
  if (time !== undefined) return `the claim "${time}" is not a timestamp`;
  const audiences: unknown = claims['aud'];
  if (Array.isArray(audiences) ? !audiences.every((one) => typeof one === 'string') : !isText(audiences))
    return 'the claim "aud" is neither a string nor a list of strings';
  return undefined;
}

/** The issuer that a token names; undefined if it is not a JWT. */
export function claimedIssuer(token: string): string | undefined {
  const issuer = jsonOf(token.split('.')[1] ?? '')?.['iss'];
  return typeof issuer === 'string' ? issuer : undefined;
}

function isBase64Url(text: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(text) && text.length % 4 !== 1;
}

function jsonOf(part: string): Json | undefined {
  if (!isBase64Url(part)) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString());
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** URLs are compared without scheme and last slash. */
function plainAudience(audience: string): string {
  return audience.replace(/^https?:\/\//, '').replace(/\/$/, '');
}

interface Key extends JsonWebKey {
  readonly kid?: string;
  readonly alg?: string;
}

function isSigned(signed: string, signature: Buffer, { alg, kid = '' }: Json, jwks: string): boolean {
  const { keys } = JSON.parse(jwks) as { readonly keys: readonly Key[] };
  return keys.some((key) => {
    if (kid !== '' && (key.kid ?? '') !== '' && key.kid !== kid) return false;
    if ((key.alg ?? '') !== '' && key.alg !== alg) return false;
    try {
      return isSignedBy(key, String(alg), Buffer.from(signed), signature);
    } catch {
      return false;
    }
  });
}

/** The kind of the key decides what is verified; of a token's algorithm, only what is meant for that kind counts. */
function isSignedBy(key: Key, alg: string, signed: Buffer, signature: Buffer): boolean {
  const family = { RSA: /^[RP]S/, EC: /^ES/, oct: /^HS/ }[key.kty ?? ''];
  const hash = family?.test(alg) === true ? `sha${alg.slice(2)}` : 'sha256';
  if (key.kty === 'oct') {
    const mac = createHmac(hash, Buffer.from(key.k ?? '', 'base64url'))
      .update(signed)
      .digest();
    return mac.length === signature.length && timingSafeEqual(mac, signature);
  }
  const publicKey = createPublicKey({ format: 'jwk', key });
  if (key.kty === 'OKP') return verify(null, signed, publicKey, signature);
  if (key.kty === 'EC') return verify(hash, signed, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature);
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  return verify(hash, signed, { key: publicKey, ...(alg.startsWith('PS') && pss) }, signature);
}
