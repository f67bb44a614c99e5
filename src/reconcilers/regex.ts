import { RE2JS } from 're2js';

/** Istio's limit, in characters. */
const longest = 1024;

/**
 * Why Envoy would refuse the regex, in words that follow its name; undefined when RE2 compiles it. RE2's syntax is not
 * JavaScript's: there are no look-arounds and no back references.
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

/** The number of groups, or the reason why there is none. */
function compile(regex: string): number | string {
  if (regex === '') return 'must not be empty';
  if (regex.length > longest) return `must have at most ${longest} characters, not ${regex.length}`;
  try {
    return RE2JS.compile(regex).groupCount();
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^error parsing regexp: /, '') : 'syntax error';
    return `is not a regex that Envoy (RE2) understands: ${reason}`;
  }
}
