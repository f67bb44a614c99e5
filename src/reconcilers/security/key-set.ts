import { isObject } from '../../api/json.ts';

/** What is wrong with a JSON Web Key Set (RFC 7517). */
export interface KeySetProblem {
  /** Envoy would not accept the set. */
  readonly isFatal: boolean;
  readonly message: string;
}

/** Envoy reads the set on its main thread, and rejects the whole listener if it cannot. */
const LONGEST = 256 * 1024;
const mostKeys = 200;

const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi'];

export function keySetProblem(text: string): KeySetProblem | undefined {
  const fatal = (message: string): KeySetProblem => ({
    isFatal: true,
    message: `${message}; no token of this issuer is accepted.`,
  });
  if (text.length > LONGEST) return fatal(`is longer than ${LONGEST / 1024} KiB`);
  let set: unknown;
  try {
    set = JSON.parse(text);
  } catch {
    return fatal('is not JSON');
  }
  const keys = isObject(set) ? set['keys'] : undefined;
  if (!Array.isArray(keys)) return fatal('is not a key set: it needs a list "keys"');
  if (keys.length > mostKeys) return fatal(`has more than ${mostKeys} keys`);
  if (!keys.some(isUsable)) return fatal('has no key that can verify a token');
  const isPrivate = keys.some((key) => isObject(key) && PRIVATE_MEMBERS.some((name) => key[name] !== undefined));
  if (!isPrivate) return undefined;
  return {
    isFatal: false,
    message: 'contains a private key: whoever can read this object can sign tokens. Leave only the public part.',
  };
}

/** Whether Envoy can take a key from it. It ignores keys that it does not understand, as long as one is left. */
function isUsable(key: unknown): boolean {
  if (!isObject(key)) return false;
  const has = (...names: readonly string[]): boolean =>
    names.every((name) => typeof key[name] === 'string' && key[name] !== '');
  switch (key['kty']) {
    case 'RSA':
      return has('n', 'e');
    case 'EC':
      return has('x', 'y');
    case 'oct':
      return has('k');
    case 'OKP':
      return has('x');
    default:
      return false;
  }
}
