import { type Cursor, isBlank, isBlankOrEnd, isBreak, isBreakOrEnd } from './cursor.ts';
import { indentedWithTab, notYaml } from './document-error.ts';

/** Folds consecutive line breaks: one becomes a space, further ones are kept. */
function fold(breaks: readonly string[]): string {
  const [first = '', ...more] = breaks;
  return first === '\n' ? more.join('') || ' ' : breaks.join('');
}

/**
 * Text without quotes. Ends before `: `, before ` #`, in a flow collection before one of `,?[]{}`, and in a block
 * before a line that is indented less than `indent`. `atNewLine`: a line break ended it.
 */
export function scanPlain(cursor: Cursor, indent: number, inFlow: boolean): { text: string; atNewLine: boolean } {
  let text = '';
  let atNewLine = false;
  for (let between = ''; !cursor.isAtMarker() && cursor.character() !== '#';) {
    const start = cursor.at;
    while (!isBlankOrEnd(cursor.code())) {
      if (cursor.character() === ':' && isBlankOrEnd(cursor.code(1))) break;
      if (inFlow && ',?[]{}'.includes(cursor.character())) break;
      cursor.at++;
    }
    if (cursor.at > start) {
      text += between + cursor.text.slice(start, cursor.at);
      atNewLine = false;
    }
    if (!isBlankOrEnd(cursor.code()) || cursor.isAtEnd) break;
    between = cursor.take(isBlank);
    if (!isBreak(cursor.code())) continue;
    const breaks: string[] = [];
    while (isBreak(cursor.code())) {
      breaks.push(cursor.takeBreak());
      while (isBlank(cursor.code())) {
        if (cursor.character() === '\t' && cursor.column < indent) throw indentedWithTab(cursor.at);
        cursor.at++;
      }
    }
    between = fold(breaks);
    atNewLine = true;
    if (!inFlow && cursor.column < indent) break;
  }
  return { text, atNewLine };
}

/** Text in quotes. The indentation of its lines does not matter, even left of everything around them. */
export function scanQuoted(cursor: Cursor): string {
  const start = cursor.at;
  const quote = cursor.character();
  const isDouble = quote === '"';
  cursor.at++;
  let text = '';
  for (;;) {
    if (cursor.isAtMarker()) throw notYaml('quoted text is not closed before the document ends', start);
    if (cursor.isAtEnd) throw notYaml('quoted text is never closed', start);
    let isBroken = false;
    while (!isBroken && !isBlankOrEnd(cursor.code())) {
      const run = cursor.at;
      while (!isBlankOrEnd(cursor.code()) && cursor.character() !== quote && cursor.character() !== '\\') cursor.at++;
      text += cursor.text.slice(run, cursor.at);
      if (isBlankOrEnd(cursor.code())) break;
      if (cursor.character() === '\\') {
        cursor.at++;
        // In single quotes, it is an ordinary character; in double quotes, it removes a line break that follows.
        if (!isDouble) text += '\\';
        else if (isBreak(cursor.code())) {
          cursor.takeBreak();
          isBroken = true;
        } else text += scanEscape(cursor);
      } else if (!isDouble && cursor.character(1) === quote) {
        text += quote;
        cursor.at += 2;
      } else break;
    }
    if (cursor.character() === quote) break;
    const blanks = isBroken ? '' : cursor.take(isBlank);
    const breaks: string[] = [];
    while (isBlank(cursor.code()) || isBreak(cursor.code()))
      if (isBlank(cursor.code())) cursor.at++;
      else breaks.push(cursor.takeBreak());
    if (isBroken) text += breaks.join('');
    else text += breaks.length === 0 ? blanks : fold(breaks);
  }
  cursor.at++;
  return text;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '0': '\0',
  a: '\x07',
  b: '\b',
  t: '\t',
  '\t': '\t',
  n: '\n',
  v: '\v',
  f: '\f',
  r: '\r',
  e: '\x1b',
  ' ': ' ',
  '"': '"',
  "'": "'",
  '\\': '\\',
  N: '\x85',
  _: '\xa0',
  L: '\u2028',
  P: '\u2029',
};

const HEX_LENGTHS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** After the backslash. */
function scanEscape(cursor: Cursor): string {
  const character = cursor.character();
  const known = ESCAPES[character];
  const length = HEX_LENGTHS[character];
  if (known === undefined && length === undefined)
    throw notYaml(`\\${character} is not a valid escape; write \\\\ for a backslash`, cursor.at - 1);
  cursor.at++;
  if (length === undefined) return known!;
  const digits = cursor.text.slice(cursor.at, cursor.at + length);
  if (digits.length < length || !/^[0-9a-fA-F]+$/.test(digits))
    throw notYaml(`\\${character} needs ${length} hexadecimal digits`, cursor.at - 2);
  const point = parseInt(digits, 16);
  if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
    throw notYaml(`\\${character}${digits} is not a Unicode character`, cursor.at - 2);
  cursor.at += length;
  return String.fromCodePoint(point);
}

/** Text after `|` or `>`. `parent`: the indentation of the enclosing collection, -1 if there is none. */
export function scanBlock(cursor: Cursor, parent: number): string {
  const start = cursor.at;
  const isLiteral = cursor.character() === '|';
  cursor.at++;
  const header = /[+-]?[0-9]?[+-]?/y;
  header.lastIndex = cursor.at;
  const [signs = ''] = header.exec(cursor.text) ?? [];
  cursor.at += signs.length;
  const digit = /[0-9]/.exec(signs)?.[0];
  if (digit === '0' || signs.replace(/[0-9]/, '').length > 1)
    throw notYaml(`${isLiteral ? '|' : '>'}${signs} is not a valid block scalar header`, start);
  cursor.take(isBlank);
  cursor.skipComment();
  if (!isBreakOrEnd(cursor.code())) throw notYaml('a block of text begins on the line after its | or >', start);
  if (!cursor.isAtEnd) cursor.takeBreak();

  let indent = digit === undefined ? 0 : Math.max(parent, 0) + Number(digit);
  let breaks = '';
  const skipBlankLines = (): void => {
    let deepest = 0;
    for (;;) {
      while ((indent === 0 || cursor.column < indent) && cursor.character() === ' ') cursor.at++;
      deepest = Math.max(deepest, cursor.column);
      if ((indent === 0 || cursor.column < indent) && cursor.character() === '\t') throw indentedWithTab(cursor.at);
      if (!isBreak(cursor.code())) break;
      breaks += cursor.takeBreak();
    }
    if (indent === 0) indent = Math.max(deepest, parent + 1, 1);
  };

  skipBlankLines();
  const pieces: string[] = [];
  let lineBreak = '';
  let wasIndented = false;
  while (cursor.column === indent && !cursor.isAtEnd) {
    const isIndented = isBlank(cursor.code());
    const isFolded = !isLiteral && !wasIndented && !isIndented && lineBreak === '\n';
    if (!isFolded) pieces.push(lineBreak);
    else if (breaks === '') pieces.push(' ');
    pieces.push(breaks);
    breaks = '';
    wasIndented = isIndented;
    pieces.push(cursor.take((code) => !isBreakOrEnd(code)));
    lineBreak = cursor.isAtEnd ? '' : cursor.takeBreak();
    skipBlankLines();
  }
  if (!signs.includes('-')) pieces.push(lineBreak);
  if (signs.includes('+')) pieces.push(breaks);
  return pieces.join('');
}
