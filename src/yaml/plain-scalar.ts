import { DocumentError } from './document-error.ts';
import type { ScalarNode } from './tree.ts';

const TAG = 'tag:yaml.org,2002:';
const INT = `${TAG}int`;
const FLOAT = `${TAG}float`;

const TIMESTAMP = /^\d{4}-\d{1,2}-\d{1,2}([Tt ]\d{1,2}:\d{1,2}:\d{1,2}(\.\d+)?(Z|[-+]\d\d:\d\d)?)?$/;

const CONSTANTS = new Map<string, boolean | null | number>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((text) => [text, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map((text) => [text, false] as const),
  ...['', '~', 'null', 'Null', 'NULL'].map((text) => [text, null] as const),
  ...['.nan', '.NaN', '.NAN'].map((text) => [text, NaN] as const),
  ...['', '+'].flatMap((sign) => ['.inf', '.Inf', '.INF'].map((text) => [sign + text, Infinity] as const)),
  ...['-.inf', '-.Inf', '-.INF'].map((text) => [text, -Infinity] as const),
]);

/**
 * What a scalar means to kubectl: goyaml v2, which is YAML 1.1 without base 60 numbers and dates, and with Go's `0o17`.
 * `y` and `n` are booleans.
 */
export function valueOf({ text, tag, isPlain, at }: ScalarNode): string | number | boolean | null {
  if (tag === '') return isPlain ? resolve(text) : text;
  const wrong = (what: string): DocumentError =>
    new DocumentError(`is tagged as ${what}, but cannot be read as such`, at);
  switch (tag) {
    case `${TAG}bool`: {
      const value = resolve(text);
      if (typeof value !== 'boolean') throw wrong('a boolean');
      return value;
    }
    case INT:
    case FLOAT: {
      const value = resolve(text);
      if (typeof value !== 'number' || (tag === INT && integerOf(text) === undefined)) throw wrong('a number');
      return value;
    }
    case `${TAG}null`:
      if (resolve(text) !== null) throw wrong('null');
      return null;
    case `${TAG}timestamp`:
      if (!TIMESTAMP.test(text)) throw wrong('a timestamp');
      return text;
    case `${TAG}binary`:
      return binary(text) ?? raise(wrong('base64'));
    default:
      return text;
  }
}

function resolve(text: string): string | number | boolean | null {
  const constant = CONSTANTS.get(text);
  if (constant !== undefined) return constant;
  if (/^\.\d(_?\d)*([eE][-+]?\d(_?\d)*)?$/.test(text)) return finite(text.replaceAll('_', ''), text);
  if (!/^[-+\d]/.test(text)) return text;
  const integer = integerOf(text);
  if (integer !== undefined) return Number(integer);
  const plain = text.replaceAll('_', '');
  return /^[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?$/.test(plain) ? finite(plain, text) : text;
}

/** A number too large for a float stays text. */
function finite(plain: string, text: string): number | string {
  const value = Number(plain);
  return Number.isFinite(value) ? value : text;
}

/** A 64-bit integer in Go's notation: 0x, 0o, 0b, octal after a leading zero, and _ anywhere. */
function integerOf(text: string): bigint | undefined {
  if (!/^[-+\d]/.test(text)) return undefined;
  const match = /^([-+]?)(0[xX][\da-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9]\d*)$/.exec(text.replaceAll('_', ''));
  if (match === null) return undefined;
  const [, sign, digits = ''] = match;
  const size = BigInt(/^0\d/.test(digits) ? `0o${digits}` : digits);
  const limit = sign === '-' ? 1n << 63n : (1n << (sign === '' ? 64n : 63n)) - 1n;
  if (size > limit) return undefined;
  return sign === '-' ? -size : size;
}

/** The text of a key; undefined if the node cannot be a key. */
export function keyOf(node: ScalarNode): string | undefined {
  const value = valueOf(node);
  if (value === null) return undefined;
  if (typeof value !== 'number') return String(value);
  if (Number.isNaN(value)) return '.nan';
  if (!Number.isFinite(value)) return value > 0 ? '.inf' : '-.inf';
  const integer = node.tag === FLOAT ? undefined : integerOf(node.text);
  if (integer === undefined) return shortFloat(value);
  return integer < 1n << 63n ? String(integer) : undefined;
}

/** As `strconv.FormatFloat(value, 'g', -1, 32)`. */
function shortFloat(value: number): string {
  const single = Math.fround(value);
  const digits = [1, 2, 3, 4, 5, 6, 7, 8, 9].find((count) => Math.fround(Number(single.toPrecision(count))) === single);
  const short = Number(single.toPrecision(digits ?? 9));
  const exponent = short === 0 ? 0 : Number(short.toExponential().split('e')[1]);
  if (exponent >= -4 && exponent < 6) return String(short);
  return short.toExponential().replace(/e([-+])(\d)$/, 'e$10$2');
}

function binary(text: string): string | undefined {
  const base64 = text.replaceAll(/[\r\n]/g, '');
  if (!/^([\w+/]{4})*([\w+/]{2}==|[\w+/]{3}=)?$/.test(base64) || base64.includes('_')) return undefined;
  return Buffer.from(base64, 'base64').toString();
}

function raise(error: Error): never {
  throw error;
}
