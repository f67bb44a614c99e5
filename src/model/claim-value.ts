import { matchesText, textMatch } from './authorization.ts';

/** Which claims of other types than text a value means. */
export interface OtherTypes {
  readonly truths: readonly boolean[];
  /** `all`: any number, since Envoy cannot compare how one begins or ends. Undefined: none. */
  readonly numbers: number | 'all' | undefined;
}

/** The numbers and truth values that are written like a value, such as `5`, `tr*` or `5*`. */
export function otherTypesOf(value: string): OtherTypes {
  const match = textMatch(value);
  const truths = [true, false].filter((truth) => matchesText(match, String(truth)));
  if (match.kind === 'present') return { truths, numbers: 'all' };
  const { kind, text } = match;
  if (kind === 'exact') {
    const isNumber = /^-?\d+(\.\d+)?([eE][-+]?\d+)?$/.test(text) && Number.isFinite(Number(text));
    return { truths, numbers: isNumber ? Number(text) : undefined };
  }
  const isPart = kind === 'prefix' ? /^-?[\d.eE+-]*$/ : /^[\d.eE+-]*\d$/;
  return { truths, numbers: isPart.test(text) ? 'all' : undefined };
}
