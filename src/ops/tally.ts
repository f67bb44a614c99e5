/** Counts values by upper bounds. Costs a few comparisons, and allocates nothing: some are counted for every push. */
export class Tally {
  /** Ascending. */
  readonly bounds: readonly number[];
  /** By bound, values up to it that are above the bound before; above the last bound, at the end. */
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds } = this;
    let at = 0;
    while (at < bounds.length && value > bounds[at]!) at++;
    this.#counts[at]!++;
    this.#sum += value;
  }

  get sum(): number {
    return this.#sum;
  }

  /** How many values each bound has at or below it; at the end, how many there are. */
  get cumulative(): readonly number[] {
    let sum = 0;
    return Array.from(this.#counts, (count) => (sum += count));
  }
}
