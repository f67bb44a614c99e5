/** Memory that one interner may keep for sharing, in bytes: of a mesh of 10,000 Pods, all labels and ports fit. */
const MOST_BYTES = 16 * 1024 * 1024;

/** About what an entry takes: two bytes for a character, and of a value both its text and what was parsed from it. */
const costOfString = (text: string): number => 100 + 2 * text.length;
const costOfValue = (text: string): number => 200 + 8 * text.length;

/**
 * Makes equal values share one copy. Labels, owners and ports of a thousand replicas, parsed from JSON, are a thousand
 * copies of the same text. Bounded by bytes: when full, it forgets what it has shared so far, which costs memory for
 * copies, never correctness.
 */
export class Interner {
  readonly #most: number;
  readonly #strings = new Map<string, string>();
  readonly #values = new Map<string, unknown>();
  #bytes = 0;

  /** @param most bytes that it keeps alive. */
  constructor(most = MOST_BYTES) {
    this.#most = most;
  }

  string(text: string): string {
    if (text.length > 256) return text;
    const known = this.#strings.get(text);
    if (known !== undefined) return known;
    this.#makeRoom(costOfString(text));
    this.#strings.set(text, text);
    return text;
  }

  /** Plain JSON; the result must not be modified. Values that differ only in key order are not shared. */
  value<T>(value: T): T {
    if (typeof value === 'string') return this.string(value) as T & string;
    if (typeof value !== 'object' || value === null) return value;
    const text = JSON.stringify(value);
    if (text.length > 2_048) return value;
    const known = this.#values.get(text);
    if (known !== undefined) return known as T;
    this.#makeRoom(costOfValue(text));
    this.#values.set(text, value);
    return value;
  }

  #makeRoom(bytes: number): void {
    if (this.#bytes + bytes > this.#most) {
      this.#strings.clear();
      this.#values.clear();
      this.#bytes = 0;
    }
    this.#bytes += bytes;
  }
}
