/**
 * What was worked out once and holds wherever the same objects are involved: by identity, so that finding it costs the
 * same whatever their size. Forgotten with the objects.
 */
export class Alike<T> {
  readonly #most: number;
  #known: Level<T> = new WeakMap();
  #count = 0;

  /** @param most results that are kept; of more, all are forgotten. */
  constructor(most = Infinity) {
    this.#most = most;
  }

  /** @param from the objects that the result follows from: always as many, and none of them may change. */
  of(from: readonly [object, ...object[]], work: () => T): T {
    if (this.#count >= this.#most) {
      this.#known = new WeakMap();
      this.#count = 0;
    }
    let level = this.#known;
    for (const object of from.slice(0, -1)) {
      let next = level.get(object) as Level<T> | undefined;
      if (next === undefined) level.set(object, (next = new WeakMap()));
      level = next;
    }
    const last = from.at(-1)!;
    let known = level.get(last) as Result<T> | undefined;
    if (known === undefined) {
      level.set(last, (known = { result: work() }));
      this.#count++;
    }
    return known.result;
  }
}

interface Result<T> {
  readonly result: T;
}

type Level<T> = WeakMap<object, Result<T> | WeakMap<object, unknown>>;
