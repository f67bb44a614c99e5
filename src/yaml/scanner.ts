import { Cursor, isBlank, isBlankOrEnd, isBreak, isBreakOrEnd, isWord } from './cursor.ts';
import { type DocumentError, indentedWithTab, notYaml } from './document-error.ts';
import { scanBlock, scanPlain, scanQuoted } from './scan-scalar.ts';

/** The smallest parts of a document. `block-*` and `key` appear where indentation, or a later `:`, says so. */
export type Token = { readonly at: number } & (
  | { readonly type: '[' | ']' | '{' | '}' | ',' | '-' | 'key' | 'value' }
  | { readonly type: 'block-sequence' | 'block-mapping' | 'block-end' | '---' | '...' | 'end' }
  | { readonly type: 'scalar'; readonly text: string; readonly isPlain: boolean }
  | { readonly type: 'anchor' | 'alias'; readonly name: string }
  | { readonly type: 'tag'; readonly handle: string; readonly suffix: string }
  | { readonly type: '%YAML'; readonly version: string }
  | { readonly type: '%TAG'; readonly handle: string; readonly prefix: string }
);

/** Something becomes a key if a `:` follows on the same line, no further away than this. */
const LONGEST_KEY = 1024;

interface SimpleKey {
  /** Counted from the first token of the document. */
  readonly token: number;
  readonly at: number;
  readonly line: number;
  readonly column: number;
  /** Only a key can stand there. */
  readonly isRequired: boolean;
}

/**
 * Splits a text into tokens as libyaml does (goyaml is a translation of it): YAML 1.1, except that indentation within
 * flow collections and quotes does not matter, and that `:` in a flow collection ends a plain text only before a blank,
 * as in `[::1, a:]`.
 */
export class Scanner {
  readonly #cursor: Cursor;
  readonly #queue: Token[] = [];
  #taken = 0;
  #indent = -1;
  readonly #indents: number[] = [];
  #isKeyAllowed = true;
  /** One slot per enclosing flow collection, and one for the block around them. */
  readonly #keys: (SimpleKey | undefined)[] = [undefined];
  #isHeadDecided = false;

  constructor(text: string) {
    const control = CONTROL.exec(text);
    if (control !== null) {
      const code = control[0].charCodeAt(0).toString(16).padStart(2, '0');
      throw notYaml(`control character 0x${code}; remove it, or write "\\x${code}"`, control.index);
    }
    this.#cursor = new Cursor(text);
  }

  peek(): Token {
    while (this.#queue.length === 0 || (!this.#isHeadDecided && this.#isHeadUndecided())) this.#fetch();
    this.#isHeadDecided = true;
    return this.#queue[0]!;
  }

  next(): Token {
    const token = this.peek();
    this.#queue.shift();
    this.#taken++;
    this.#isHeadDecided = false;
    return token;
  }

  /** Whether the head may still turn out to be a key. */
  #isHeadUndecided(): boolean {
    for (let level = 0; level < this.#keys.length; level++)
      if (this.#keys[level]?.token === this.#taken) return this.#validKey(level) !== undefined;
    return false;
  }

  #fetch(): void {
    const cursor = this.#cursor;
    this.#skipToToken();
    this.#unroll(cursor.column);
    if (cursor.isAtEnd) return this.#endStream();
    const character = cursor.character();
    const isSpaced = isBlankOrEnd(cursor.code(1));
    const inFlow = this.#inFlow;
    if (cursor.column === 0 && character === '%') return this.#directive();
    if (cursor.isAtMarker()) return this.#marker(character === '-' ? '---' : '...');
    switch (character) {
      case '[':
      case '{':
        this.#saveKey();
        this.#keys.push(undefined);
        this.#isKeyAllowed = true;
        return this.#indicator(character);
      case ']':
      case '}':
        this.#dropKey();
        if (inFlow) this.#keys.pop();
        this.#isKeyAllowed = false;
        return this.#indicator(character);
      case ',':
        this.#dropKey();
        this.#isKeyAllowed = true;
        return this.#indicator(',');
      case '-':
        if (isSpaced) return this.#entry();
        break;
      case '?':
        if (inFlow || isSpaced) return this.#key();
        break;
      case ':':
        if (inFlow || isSpaced) return this.#value();
        break;
      case '*':
      case '&':
        return this.#anchor(character === '*' ? 'alias' : 'anchor');
      case '!':
        return this.#tag();
      case '|':
      case '>':
        if (!inFlow) return this.#block();
        break;
      case "'":
      case '"':
        return this.#quoted();
    }
    if (character === '\t') throw indentedWithTab(cursor.at);
    if (/[#|>%@`]/.test(character) || (character === '-' && isBlank(cursor.code(1))))
      throw notYaml(`text cannot begin with ${character}; put it in quotes`, cursor.at);
    this.#plain();
  }

  get #inFlow(): boolean {
    return this.#keys.length > 1;
  }

  #push(token: Token): void {
    this.#queue.push(token);
  }

  /** A single-character indicator. */
  #indicator(type: '[' | ']' | '{' | '}' | ',' | '-' | 'key' | 'value'): void {
    this.#push({ type, at: this.#cursor.at });
    this.#cursor.at++;
  }

  #skipToToken(): void {
    const cursor = this.#cursor;
    for (;;) {
      const tabs = this.#inFlow || !this.#isKeyAllowed;
      while (cursor.character() === ' ' || (tabs && cursor.character() === '\t')) cursor.at++;
      cursor.skipComment();
      if (!isBreak(cursor.code())) return;
      cursor.takeBreak();
      if (!this.#inFlow) this.#isKeyAllowed = true;
    }
  }

  #endStream(): void {
    this.#unroll(-1);
    this.#dropKey();
    // No more colons will come for any of the enclosing collections. Asking again gives the same answer.
    this.#keys.fill(undefined);
    this.#push({ type: 'end', at: this.#cursor.at });
  }

  /** Begins a block collection if the column is further right than the enclosing one. */
  #roll(column: number, type: 'block-sequence' | 'block-mapping', at: number, index = this.#queue.length): void {
    if (this.#inFlow || this.#indent >= column) return;
    this.#indents.push(this.#indent);
    this.#indent = column;
    this.#queue.splice(index, 0, { type, at });
  }

  /** Ends the block collections that are further right than the column. */
  #unroll(column: number): void {
    while (!this.#inFlow && this.#indent > column) {
      this.#push({ type: 'block-end', at: this.#cursor.at });
      this.#indent = this.#indents.pop()!;
    }
  }

  /** What follows may be a key. */
  #saveKey(): void {
    if (!this.#isKeyAllowed) return;
    const { at, line, column } = this.#cursor;
    this.#dropKey();
    const isRequired = !this.#inFlow && this.#indent === column;
    this.#keys[this.#keys.length - 1] = {
      ...{ token: this.#taken + this.#queue.length, at, line, column },
      isRequired,
    };
  }

  /** What might have been a key is not one. */
  #dropKey(): void {
    const key = this.#keys.at(-1);
    if (key?.isRequired === true) throw this.#missingColon(key);
    this.#keys[this.#keys.length - 1] = undefined;
  }

  #validKey(level: number): SimpleKey | undefined {
    const key = this.#keys[level];
    if (key === undefined) return undefined;
    if (key.line === this.#cursor.line && key.at + LONGEST_KEY >= this.#cursor.at) return key;
    if (key.isRequired) throw this.#missingColon(key);
    this.#keys[level] = undefined;
    return undefined;
  }

  #missingColon({ at }: SimpleKey): DocumentError {
    return notYaml('a key needs a colon and a space after it, as in "key: value"', at);
  }

  #directive(): void {
    this.#unroll(-1);
    this.#dropKey();
    this.#isKeyAllowed = false;
    const { at, text } = this.#cursor;
    const pattern = /%(?:YAML[ \t]+(\d{1,2}\.\d{1,2})|TAG[ \t]+(!(?:[\w-]*!)?)[ \t]+(\S+))[ \t]*(?:#.*)?/y;
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    this.#cursor.at += match?.[0].length ?? 0;
    if (match === null || !isBreakOrEnd(this.#cursor.code()))
      throw notYaml('a line that begins with % must be a directive, as %YAML 1.1', at);
    const [, version, handle, prefix] = match;
    if (version !== undefined) this.#push({ type: '%YAML', at, version });
    else this.#push({ type: '%TAG', at, handle: handle!, prefix: prefix! });
  }

  #marker(type: '---' | '...'): void {
    this.#unroll(-1);
    this.#dropKey();
    this.#isKeyAllowed = false;
    this.#push({ type, at: this.#cursor.at });
    this.#cursor.at += 3;
  }

  #entry(): void {
    if (!this.#inFlow) {
      if (!this.#isKeyAllowed) throw notYaml('a list cannot begin here; start it on its own line', this.#cursor.at);
      this.#roll(this.#cursor.column, 'block-sequence', this.#cursor.at);
    }
    this.#dropKey();
    this.#isKeyAllowed = true;
    this.#indicator('-');
  }

  #key(): void {
    if (!this.#inFlow) {
      if (!this.#isKeyAllowed) throw notYaml('a key cannot begin here; start it on its own line', this.#cursor.at);
      this.#roll(this.#cursor.column, 'block-mapping', this.#cursor.at);
    }
    this.#dropKey();
    this.#isKeyAllowed = !this.#inFlow;
    this.#indicator('key');
  }

  #value(): void {
    const key = this.#validKey(this.#keys.length - 1);
    if (key !== undefined) {
      const index = key.token - this.#taken;
      this.#queue.splice(index, 0, { type: 'key', at: key.at });
      this.#roll(key.column, 'block-mapping', key.at, index);
      this.#keys[this.#keys.length - 1] = undefined;
      this.#isKeyAllowed = false;
    } else {
      if (!this.#inFlow) {
        if (!this.#isKeyAllowed)
          throw notYaml('a second ": " on one line; put the value in quotes if it has one', this.#cursor.at);
        this.#roll(this.#cursor.column, 'block-mapping', this.#cursor.at);
      }
      this.#isKeyAllowed = !this.#inFlow;
    }
    this.#indicator('value');
  }

  #anchor(type: 'anchor' | 'alias'): void {
    this.#saveKey();
    this.#isKeyAllowed = false;
    const { at } = this.#cursor;
    this.#cursor.at++;
    const name = this.#cursor.take(isWord);
    if (name === '' || !(isBlankOrEnd(this.#cursor.code()) || '?:,]}%@`'.includes(this.#cursor.character())))
      throw notYaml(`${type === 'alias' ? '*' : '&'} needs a name of letters and digits, or quotes around it`, at);
    this.#push({ type, at, name });
  }

  #tag(): void {
    this.#saveKey();
    this.#isKeyAllowed = false;
    const { at, text } = this.#cursor;
    const pattern = /!<([\w\-;/?:@&=+$,.!~*'()[\]%]*)>|(!(?:[\w-]*!)?)([\w\-;/?:@&=+$,.!~*'()[\]%]*)/y;
    pattern.lastIndex = at;
    const [whole, verbatim, handle = '', rest = ''] = pattern.exec(text)!;
    this.#cursor.at += whole.length;
    const isMalformed = verbatim === '' || (handle.length > 1 && rest === '');
    if (isMalformed || !isBlankOrEnd(this.#cursor.code()))
      throw notYaml('! begins a tag; put text that begins with it in quotes', at);
    const suffix = verbatim ?? unescapeUri(rest, at);
    // A lone `!` is its own tag.
    if (handle === '!' && suffix === '') this.#push({ type: 'tag', at, handle: '', suffix: '!' });
    else this.#push({ type: 'tag', at, handle, suffix });
  }

  #block(): void {
    this.#dropKey();
    this.#isKeyAllowed = true;
    const { at } = this.#cursor;
    this.#push({ type: 'scalar', at, text: scanBlock(this.#cursor, this.#indent), isPlain: false });
  }

  #quoted(): void {
    this.#saveKey();
    this.#isKeyAllowed = false;
    const { at } = this.#cursor;
    this.#push({ type: 'scalar', at, text: scanQuoted(this.#cursor), isPlain: false });
  }

  #plain(): void {
    this.#saveKey();
    this.#isKeyAllowed = false;
    const { at } = this.#cursor;
    const { text, atNewLine } = scanPlain(this.#cursor, this.#indent + 1, this.#inFlow);
    if (atNewLine) this.#isKeyAllowed = true;
    this.#push({ type: 'scalar', at, text, isPlain: true });
  }
}

function unescapeUri(text: string, at: number): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw notYaml('the tag has a % without two hexadecimal digits', at);
  }
}

// Characters that a document may not contain, even in quotes.
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]/;
