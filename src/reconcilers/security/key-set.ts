import { type JsonWebKey, createPublicKey } from 'node:crypto';
import { type Json, isObject } from '../../api/json.ts';

/** A JSON Web Key Set (RFC 7517) that Envoy accepts, or why it does not. */
export type KeySetReading = KeySet | { readonly problem: string };

interface KeySet {
  /** The set as it is written, if Envoy can read it so. */
  readonly text: string;
  /** Only what verifies tokens. */
  readonly essence: string;
  /** It contains a private key. */
  readonly isPrivate: boolean;
}

/** Envoy reads the set on its main thread, and rejects the whole listener if it cannot. */
const LONGEST = 256 * 1024;
const mostKeys = 200;
const workOfKey = 60;

const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi'];

/** @param spend whether there may be this much more work; see {@link Findings.spend}. */
export function readKeySet(text: string, spend: (work: number) => boolean = () => true): KeySetReading {
  if (Buffer.byteLength(text) > LONGEST) return { problem: `is longer than ${LONGEST / 1024} KiB` };
  let set: unknown;
  try {
    set = JSON.parse(text);
  } catch {
    return { problem: 'is not JSON' };
  }
  const keys = isObject(set) ? set['keys'] : undefined;
  if (!Array.isArray(keys)) return { problem: 'is not a key set: it needs a list "keys"' };
  if (keys.length > mostKeys) return { problem: `has more than ${mostKeys} keys` };
  const known = keys.filter(isObject);
  // Envoy ignores the others, as long as there is one.
  if (!known.some((key) => spend(workOfKey) && isUsable(key))) return { problem: 'has no key that can verify a token' };
  const essence = JSON.stringify({ keys: known.map(publicPart) });
  return {
    text: isPlain(text, set) ? text : essence,
    essence,
    isPrivate: known.some((key) => PRIVATE_MEMBERS.some((name) => key[name] !== undefined)),
  };
}

/**
 * Whether everybody reads the same: Envoy refuses names that occur twice, numbers out of range, unpaired surrogates and
 * deep nesting, all of which JavaScript takes.
 */
function isPlain(text: string, set: unknown): boolean {
  const mostDepth = 20;
  const withoutSpace = (some: string): string => some.replaceAll(/[ \t\r\n]/g, '');
  return (
    !/\\u[dD][89a-fA-F]/.test(text) &&
    text.isWellFormed() &&
    depthOf(set, mostDepth) < mostDepth &&
    withoutSpace(JSON.stringify(set)) === withoutSpace(text)
  );
}

function depthOf(value: unknown, most: number): number {
  if (most === 0 || typeof value !== 'object' || value === null) return 0;
  return 1 + Object.values(value).reduce((deepest: number, member) => Math.max(deepest, depthOf(member, most - 1)), 0);
}

const PUBLIC_MEMBERS = ['kty', 'kid', 'alg', 'use', 'crv', 'n', 'e', 'x', 'y', 'k'];

function publicPart(key: Json): object {
  const members = PUBLIC_MEMBERS.flatMap((name) => {
    const value = key[name];
    return typeof value === 'string' && value.isWellFormed() ? [[name, value]] : [];
  });
  return Object.fromEntries(members) as object;
}

const CURVES: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' };
/** Sizes of RSA keys that Envoy takes, and that are not too slow. */
const [smallestModulus, largestModulus] = [512, 8_192];
/** Other ones, and even moduli, are refused by Envoy 1.40. */
const EXPONENTS: ReadonlySet<bigint> = new Set([3n, 65_537n]);

function isOdd(base64Url: string): boolean {
  return (Buffer.from(base64Url, 'base64url').at(-1)! & 1) === 1;
}

/** Whether Envoy takes it for a key. Source: jwt_verify_lib, jwks.cc. */
function isUsable(key: Json): boolean {
  const alg = key['alg'];
  if (alg !== undefined && typeof alg !== 'string') return false;
  const has = (...names: readonly string[]): boolean =>
    names.every((name) => typeof key[name] === 'string' && isBase64Url(key[name]));
  switch (key['kty']) {
    case 'RSA':
      return (alg === undefined || /^(RS|PS)(256|384|512)$/.test(alg)) && has('n', 'e') && isPublicKey(key);
    case 'EC': {
      const known = alg === undefined ? 'P-256' : CURVES[alg];
      const curve = key['crv'] === undefined ? known : key['crv'];
      if (known === undefined || (alg !== undefined && curve !== known)) return false;
      return Object.values(CURVES).includes(curve as string) && has('x', 'y') && isPublicKey({ ...key, crv: curve });
    }
    case 'oct':
      return (alg === undefined || /^HS(256|384|512)$/.test(alg)) && has('k');
    case 'OKP':
      return (alg === undefined || alg === 'EdDSA') && key['crv'] === 'Ed25519' && has('x') && isPublicKey(key);
    default:
      return false;
  }
}

/** Envoy takes padding only if there is as much as there must be. */
function isBase64Url(text: string): boolean {
  const { 1: digits = '', 2: padding = '' } = /^([A-Za-z0-9_-]+)(={0,2})$/.exec(text) ?? [];
  return digits.length % 4 !== 1 && digits !== '' && (padding === '' || text.length % 4 === 0);
}

function isPublicKey({ kty, crv, n, e, x, y }: Json): boolean {
  try {
    const { asymmetricKeyDetails } = createPublicKey({
      format: 'jwk',
      key: JSON.parse(JSON.stringify({ kty, crv, n, e, x, y })) as JsonWebKey,
    });
    const { modulusLength = smallestModulus, publicExponent = 65_537n } = asymmetricKeyDetails ?? {};
    return (
      modulusLength >= smallestModulus &&
      modulusLength <= largestModulus &&
      EXPONENTS.has(publicExponent) &&
      (n === undefined || isOdd(n as string))
    );
  } catch {
    return false;
  }
}
