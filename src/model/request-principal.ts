import { type TextMatch, textMatch } from './authorization.ts';

/** One way to read a request principal: issuer and subject of the token must match. */
export interface PrincipalReading {
  readonly issuer: TextMatch;
  /** Undefined: any, and none. */
  readonly subject: TextMatch | undefined;
}

type Readings = readonly PrincipalReading[];

const anything: TextMatch = { kind: 'present' };
const exactly = (text: string): TextMatch => ({ kind: 'exact', text });
const beginning = (text: string): TextMatch => (text === '' ? anything : { kind: 'prefix', text });
const ending = (text: string): TextMatch => (text === '' ? anything : { kind: 'suffix', text });

/** More of them are read as one that matches more: only issuers whose names continue each other have as many. */
const mostReadings = 8;

/**
 * What a value such as `https://issuer/subject` or `https://issuer/*` says of the claims `iss` and `sub`. Both may have
 * slashes, so only the issuers whose tokens are accepted tell where the subject begins. Without any, the value is split
 * at its last slash, as Istio does.
 *
 * @param isWide for what is denied: every token that the value matches as the text `iss/sub`. Otherwise, a value that
 * can name an issuer does, and the longest one, so that no other issuer can sign what is meant.
 * @returns at least one, of which one must match.
 */
export function principalReadings(value: string, issuers: readonly string[], isWide: boolean): Readings {
  const match = textMatch(value);
  if (match.kind === 'present') return [{ issuer: anything, subject: isWide ? undefined : anything }];
  const readings = issuers.length === 0 ? [] : readingsOf(match, issuers, isWide);
  if (readings.length === 0) return [splitAtLastSlash(match)];
  if (!isWide || readings.length <= mostReadings) return readings;
  const last = match.text.slice(match.text.lastIndexOf('/') + 1);
  return [{ issuer: anything, subject: match.kind === 'prefix' || last === '' ? undefined : ending(last) }];
}

type Affix = Exclude<TextMatch, { kind: 'present' }>;

function readingsOf({ kind, text }: Affix, issuers: readonly string[], isWide: boolean): Readings {
  if (kind === 'suffix') return suffixReadings(text, issuers, isWide);
  const named = issuers
    .filter((issuer) => text.startsWith(`${issuer}/`))
    .sort((a, b) => b.length - a.length)
    .map((issuer): PrincipalReading => {
      const rest = text.slice(issuer.length + 1);
      if (kind === 'exact') return { issuer: exactly(issuer), subject: exactly(rest) };
      return { issuer: exactly(issuer), subject: isWide && rest === '' ? undefined : beginning(rest) };
    });
  if (!isWide && named.length > 0) return named.slice(0, 1);
  if (kind === 'exact' || !issuers.some((issuer) => issuer.startsWith(text))) return named;
  return [...named, { issuer: beginning(text), subject: isWide ? undefined : anything }];
}

function suffixReadings(text: string, issuers: readonly string[], isWide: boolean): Readings {
  const ofSubject: PrincipalReading = { issuer: anything, subject: ending(text) };
  const split = [...text.matchAll(/\//g)]
    .map(({ index }) => index)
    .toReversed()
    .filter((at) => at === 0 || issuers.some((issuer) => issuer.endsWith(text.slice(0, at))))
    .map((at): PrincipalReading => ({ issuer: ending(text.slice(0, at)), subject: exactly(text.slice(at + 1)) }));
  const [longest] = split;
  if (isWide || longest === undefined) return [...split, ofSubject];
  // `*/a` is the subject a; `*/a/b` may be the end of one.
  const isWhole = longest.issuer !== anything || !text.slice(1).includes('/');
  return isWhole ? [longest] : [longest, ofSubject];
}

function splitAtLastSlash({ kind, text }: Affix): PrincipalReading {
  const slash = text.lastIndexOf('/');
  const [issuer, subject] = [text.slice(0, Math.max(slash, 0)), text.slice(slash + 1)];
  switch (kind) {
    case 'exact':
      return slash < 0
        ? { issuer: exactly(text), subject: exactly('') }
        : { issuer: exactly(issuer), subject: exactly(subject) };
    case 'prefix':
      return slash < 0
        ? { issuer: beginning(text), subject: anything }
        : { issuer: exactly(issuer), subject: beginning(subject) };
    case 'suffix':
      return slash < 0
        ? { issuer: anything, subject: ending(text) }
        : { issuer: ending(issuer), subject: exactly(subject) };
  }
}
