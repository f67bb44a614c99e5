import { isObject } from '../api/json.ts';
import { quote } from '../api/quote.ts';

/** What another cluster has stored, or a sentence that says what is wrong with it. */
export type Decoded<T> = { readonly value: T } | { readonly wrong: string };

/**
 * In bytes: what an etcd takes unless it is told otherwise. The worst JSON of this length takes 0.3 s to parse, a service
 * with ten thousand back ends a tenth of that.
 */
export const LONGEST_JSON = 1.5 * 1024 * 1024;

/** Decodes JSON. Whatever it contains, nothing is thrown. */
export function decodeJson<T>(bytes: Uint8Array, read: (whole: Member) => T): Decoded<T> {
  return decoded(() => {
    if (bytes.length > LONGEST_JSON) throw new Wrong(`has more than ${LONGEST_JSON} bytes`);
    return read(new Member(parse(bytes), '', undefined));
  });
}

export function decoded<T>(read: () => T): Decoded<T> {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof Wrong) return { wrong: error.message };
    throw error;
  }
}

/** Never leaves this folder. */
export class Wrong extends Error {}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  } catch {
    // The parser's message quotes what it stumbled over.
    throw new Wrong('is not valid JSON');
  }
}

/** A field's name, an index, or a key of a map in a list. Becomes text only if the path is needed. */
type Step = string | number | readonly [key: string];

/** A value in JSON, with its path. As in Go, `null` and what is absent are empty. The first wrong value ends the reading. */
export class Member {
  readonly #value: unknown;
  readonly #parent: Member | undefined;
  readonly #step: Step;

  constructor(value: unknown, step: Step, parent: Member | undefined) {
    this.#value = value;
    this.#step = step;
    this.#parent = parent;
  }

  wrong(message: string): never {
    const path = this.#path;
    throw new Wrong(path === '' ? message : `${path} ${message}`);
  }

  get isSet(): boolean {
    return this.#value !== undefined && this.#value !== null;
  }

  get(name: string): Member {
    const value = this.#value;
    if (this.isSet && !isObject(value)) this.wrong('is not an object');
    return new Member(isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined, name, this);
  }

  /** An entry of a map. */
  at(key: string): Member {
    return new Member(this.get(key).#value, [key], this);
  }

  text(): string {
    if (!this.isSet) return '';
    if (typeof this.#value !== 'string') this.wrong('must be a string');
    if (!this.#value.isWellFormed()) this.wrong('is not valid Unicode');
    return this.#value;
  }

  /** `what`: as in "a namespace". */
  matching(pattern: RegExp, what: string): string {
    const text = this.text();
    if (!pattern.test(text)) this.wrong(`${quote(text)} is not ${what}`);
    return text;
  }

  flag(): boolean {
    if (!this.isSet) return false;
    if (typeof this.#value !== 'boolean') this.wrong('must be true or false');
    return this.#value;
  }

  /** A whole number. */
  number(min: number, max: number): number {
    const value = this.isSet ? this.#value : 0;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max)
      this.wrong(`is not a whole number from ${min} to ${max}`);
    return value;
  }

  list(most: number): readonly Member[] {
    if (!this.isSet) return [];
    const value = this.#value;
    if (!Array.isArray(value)) this.wrong('is not a list');
    if (value.length > most) this.wrong(`has ${value.length} entries; at most ${most} are read`);
    return value.map((each: unknown, index) => new Member(each, index, this));
  }

  /** Of a map, in no particular order. */
  entries(most: number): readonly (readonly [key: string, value: Member])[] {
    if (!this.isSet) return [];
    const value = this.#value;
    if (!isObject(value)) this.wrong('is not an object');
    const keys = Object.keys(value);
    if (keys.length > most) this.wrong(`has ${keys.length} entries; at most ${most} are read`);
    return keys.map((key) => [key, new Member(value[key], [key], this)]);
  }

  /** Labels or annotations. */
  texts(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      this.entries(MOST_LABELS).map(([key, value]) => {
        if (!key.isWellFormed()) value.wrong('has a name that is not valid Unicode');
        return [key, value.text()];
      }),
    );
  }

  get #path(): string {
    const step = this.#step;
    const path = this.#parent === undefined ? '' : this.#parent.#path;
    if (typeof step === 'string') return path === '' ? step : `${path}.${step}`;
    return `${path}[${typeof step === 'number' ? step : quote(step[0])}]`;
  }
}

const MOST_LABELS = 1_000;
