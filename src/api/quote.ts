/** Characters that would end a line, move the cursor, or change the order in which a text is read. */
const deceptive = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Characters of a value, and of a text that somebody else wrote. */
const [LONGEST, LONGEST_WORDS] = [100, 200];

/** A value in a message: quoted, and shortened if it is long. */
export function quote(text: string): string {
  return quoted(text, LONGEST);
}

function quoted(text: string, longest: number): string {
  const shown = JSON.stringify(text.length > longest ? `${text.slice(0, longest)}...` : text);
  return shown.replace(deceptive, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** What a client or another program says, for people who did not write it: it must not look like a sentence of ours. */
export function quoteWords(text: string): string {
  return quoted(text, LONGEST_WORDS);
}

/** A name that somebody else chose: as it is if it looks like one. */
export function quoteName(text: string): string {
  return /^[\w.:/~@|*;+[\]-]{0,253}$/.test(text) ? text : quoteWords(text);
}
