/**
 * Makes equal values share one copy. Labels, owners and ports of a thousand replicas, parsed from JSON, are a thousand
 * copies of the same text. Bounded: when full, it forgets what it has shared so far, which costs memory, never
 * correctness.
 */
export class Interner {
  private readonly max: number;
  private readonly strings = new Map<string, string>();
  private readonly values = new Map<string, unknown>();

  /** Keeps up to `max` entries of each type. */
  constructor(max = 50_000) {
    this.max = max;
  }

  string(text: string): string {
    if (text.length > 256) return text;
    const known = this.strings.get(text);
    if (known !== undefined) return known;
    if (this.strings.size >= this.max) this.strings.clear();
    this.strings.set(text, text);
    return text;
  }

  /** Plain JSON; the result must not be modified. Values that differ only in key order are not shared. */
  value<T>(value: T): T {
    if (typeof value === 'string') return this.string(value) as T & string;
    if (typeof value !== 'object' || value === null) return value;
    const text = JSON.stringify(value);
    if (text.length > 2_048) return value;
    const known = this.values.get(text);
    if (known !== undefined) return known as T;
    if (this.values.size >= this.max) this.values.clear();
    this.values.set(text, value);
    return value;
  }
}
