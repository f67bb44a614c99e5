/** A position in a text. Codes are UTF-16 units, NaN past the end. */
export class Cursor {
  readonly text: string;
  at = 0;
  /** Offset of the first character of this line, and the number of lines before it. */
  lineStart = 0;
  line = 0;

  constructor(text: string) {
    this.text = text;
  }

  get column(): number {
    return this.at - this.lineStart;
  }

  get isAtEnd(): boolean {
    return this.at >= this.text.length;
  }

  code(ahead = 0): number {
    return this.text.charCodeAt(this.at + ahead);
  }

  /** The character here; empty past the end. */
  character(ahead = 0): string {
    return this.text.charAt(this.at + ahead);
  }

  /** Consumes and returns characters of one class. */
  take(is: (code: number) => boolean): string {
    const start = this.at;
    while (is(this.code())) this.at++;
    return this.text.slice(start, this.at);
  }

  /** Consumes a line break; returns it as it appears in values. */
  takeBreak(): string {
    const code = this.code();
    this.at += code === CR && this.code(1) === LF ? 2 : 1;
    this.lineStart = this.at;
    this.line++;
    return code === LS || code === PS ? String.fromCharCode(code) : '\n';
  }

  skipComment(): void {
    if (this.character() === '#') while (!isBreakOrEnd(this.code())) this.at++;
  }

  /** Whether a line begins here with `---` or `...` on its own. */
  isAtMarker(marker?: '---' | '...'): boolean {
    if (this.at !== this.lineStart || !isBlankOrEnd(this.code(3))) return false;
    const three = this.text.slice(this.at, this.at + 3);
    return marker === undefined ? three === '---' || three === '...' : three === marker;
  }
}

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const NEL = 0x85;
const LS = 0x2028;
const PS = 0x2029;

export function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

/** In YAML 1.1, which has more line breaks than 1.2. */
export function isBreak(code: number): boolean {
  return code === LF || code === CR || code === NEL || code === LS || code === PS;
}

export function isBreakOrEnd(code: number): boolean {
  return isBreak(code) || Number.isNaN(code);
}

export function isBlankOrEnd(code: number): boolean {
  return isBlank(code) || isBreakOrEnd(code);
}

/** Characters of anchor names and tag handles. */
export function isWord(code: number): boolean {
  return (
    (code >= 0x30 && code <= 0x39) ||
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x61 && code <= 0x7a) ||
    code === 0x5f ||
    code === 0x2d
  );
}
