import { Buffer } from 'node:buffer';
import { RE2JS } from 're2js';

/** Istio's limit, in characters. */
const longest = 1024;
/** Instructions. Envoy's RE2 works on bytes and needs up to about eight times that; Istio's settings allow 32,768. */
const largest = 4096;

export const tooManyRegexes =
  'exceeds a limit: the regexes of this object are too complex together; use prefixes or split the object';

/**
 * Why Envoy would reject the regex, worded to follow its name; undefined if RE2 compiles it. Unlike JavaScript, RE2 has
 * no look-arounds and no back references.
 */
export function problemOfRegex(regex: string): string | undefined {
  const compiled = compile(regex);
  return typeof compiled === 'string' ? compiled : undefined;
}

/** Like {@link problemOfRegex}, for a regex whose groups the substitution uses as `\1`. */
export function problemOfRewrite(regex: string, substitution: string): string | undefined {
  const compiled = compile(regex);
  if (typeof compiled === 'string') return compiled;
  for (const [reference, digit] of substitution.matchAll(/\\([^]?)/g)) {
    if (digit === '\\') continue;
    if (digit === undefined || !/^\d$/.test(digit)) {
      return `has a rewrite with ${JSON.stringify(reference)}: after a backslash write a digit or another backslash`;
    }
    if (Number(digit) > compiled) {
      return `has ${compiled} ${compiled === 1 ? 'group' : 'groups'}, but its rewrite uses ${reference}`;
    }
  }
  return undefined;
}

/**
 * The approximate time to compile the regex, in units of 2 µs: one per instruction. Unicode classes have hundreds of
 * ranges.
 */
export function workOf(regex: string): number {
  if (regex.length > longest) return 0;
  return Math.min(expandedSize(regex), largest) + 50 * (regex.match(/\\[pP]/g) ?? []).length;
}

/** The number of groups, or the reason why the regex does not compile. */
function compile(regex: string): number | string {
  if (regex === '') return 'must not be empty';
  if (regex.length > longest) return `must have at most ${longest} characters, not ${regex.length}`;
  const tooComplex = 'is too complex for Envoy; use smaller repetitions';
  if (expandedSize(regex) > largest) return tooComplex;
  try {
    const compiled = RE2JS.compile(regex);
    if (compiled.programSize() > largest) return tooComplex;
    const unknown = unknownClass.exec(regex);
    if (unknown !== null) return `has the class ${unknown[1]}, which Envoy does not know; use another`;
    const wide = /(?<!\\)(?:\\\\)*\\x\{0*([1-9a-f][0-9a-f]{2,})\}/i.exec(regex);
    // Envoy compiles as Latin-1, where such a character cannot be named by number.
    if (wide !== null) return `cannot name the character \\x{${wide[1]}}; write the character itself`;
    if (!compilesAsBytes(regex)) return 'has a range that is reversed when encoded as bytes; use only ASCII in ranges';
    return compiled.groupCount();
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^error parsing regexp: /, '') : 'syntax error';
    return `is not a regex that Envoy (RE2) understands: ${reason}`;
  }
}

/** Scripts of Unicode 16 and 17, and category groups that Go knows but RE2 does not. */
const unknownClass =
  /(?<!\\)(?:\\\\)*(\\[pP]\{\^?(?:Assigned|Beria_Erfe|Cn|Garay|Gurung_Khema|Kirat_Rai|LC|Ol_Onal|Sidetic|Sunuwar|Tai_Yo|Todhri|Tolong_Siki|Tulu_Tigalari|Unknown)\})/;

/** Envoy compiles as Latin-1, where each byte of UTF-8 is a character: `[\xff-Ā]` is a range from 255 to 196. */
function compilesAsBytes(regex: string): boolean {
  const bytes = Buffer.from(regex).toString('latin1');
  if (bytes === regex) return true;
  try {
    RE2JS.compile(bytes);
    return true;
  } catch {
    return false;
  }
}

/**
 * The approximate number of instructions once repetitions are expanded. It determines how long compiling takes: half a
 * second for 1,024 characters chosen for it.
 */
function expandedSize(regex: string): number {
  const token = /\\[pPx]\{[^}]*\}|\\[^]|\[\^?\]?(?:\\[^]|\[:\w+:\]|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|[^]/gu;
  const open: number[] = [];
  let size = 0;
  let last = 0;
  for (const [text, least, most] of regex.matchAll(token)) {
    if (text === '(') {
      open.push(size);
      size = 0;
      last = 0;
    } else if (text === ')') {
      last = size;
      size += open.pop() ?? 0;
    } else if (least !== undefined) {
      const times = Math.max(Number(least), Number(most ?? 0), 1);
      size += last * (times - 1);
      last *= times;
    } else {
      last = 1;
      size += 1;
    }
  }
  return size;
}
