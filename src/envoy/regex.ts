import type { Traits } from '../model/traits.ts';
import type { RegexMatcher, StringMatcher } from './gen/types.gen.ts';
import type { StringMatch } from '../model/route.ts';

/** The limit in Istio's bootstrap. */
const roomy = { maxProgramSize: { value: 32_768 } };

/**
 * An Envoy that was not started by Istio's agent rejects a route table if a regex has more than 100 instructions,
 * unless the regex itself allows more. The field for that is deprecated, so it is set only where it may be needed: most
 * characters are one instruction, and none is more than four, except in repetitions and Unicode classes.
 */
export function regexMatcher(regex: string, { agent }: Pick<Traits, 'agent'>): RegexMatcher {
  return agent || (regex.length <= 24 && !/\{\d|\\[pP]/.test(regex)) ? { regex } : { googleRe2: roomy, regex };
}

/** As Go's regexp.QuoteMeta: the text itself. */
export function quoted(text: string): string {
  return text.replaceAll(/[\\.+*?()|[\]{}^$]/g, '\\$&');
}

/** Any match except for presence. */
export function stringMatcher(
  match: Exclude<StringMatch, { kind: 'present' }>,
  traits: Pick<Traits, 'agent'>,
): StringMatcher {
  switch (match.kind) {
    case 'exact':
      return { exact: match.value };
    case 'prefix':
      return { prefix: match.value };
    case 'regex':
      return { safeRegex: regexMatcher(match.value, traits) };
  }
}
